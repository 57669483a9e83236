// Firn on Azure. The same deployment as infra/terraform; a test compares the two.
// What firn.yaml says is taken from there: accounts, names, the interval of ticks, the memory of a merge.

@description('Name of the app: letters, digits and hyphens, unique in the whole of Azure. Other resources are called after it.')
@minLength(2)
@maxLength(32)
param name string

param location string = resourceGroup().location

@description('firn.yaml, as main.bicepparam loads it.')
param firn object

@description('Containers with tables: account, container, and resourceGroup and subscriptionId where they differ from those deployed to. Empty: that of catalog.warehouse.')
param dataContainers array = []

@description('flex, or premium where a merge needs more than 4 GB.')
@allowed(['flex', 'premium'])
param plan string = 'flex'

@description('Memory of an instance on flex. 0: 2048, or 4096 where compaction.memoryMb asks for it.')
@allowed([0, 512, 2048, 4096])
param instanceMemoryMB int = 0

@description('Size of an instance on premium: 3.5, 7 or 14 GB.')
@allowed(['EP1', 'EP2', 'EP3'])
param premiumSku string = 'EP1'

@description('How many instances, and so partitions at the same time, at most. Flex Consumption takes 40 to 1000, premium up to 100.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int = 40

@description('Whether the timers of planner and expiry run. Switched on after the first dry run.')
param timersEnabled bool = false

@description('Whether the timer of orphan cleanup runs. Switched on after its own dry run (firn orphans --dry-run).')
param orphansEnabled bool = false

@description('Where alerts go; empty: they only show in the portal.')
param alertEmail string = ''

@description('Object ids of people and groups that post messages and read reports by hand.')
param operators array = []

@description('Key Vault with the secrets; it is there already.')
param keyVaultName string = ''
param keyVaultResourceGroup string = resourceGroup().name

@description('App setting -> name of its secret. firn.yaml writes the setting as a dollar sign and the name in braces.')
param secrets object = {}

@description('A network of its own, storage by private endpoints.')
param privateNetwork bool = false
param addressPrefix string = '10.60.0.0/24'

param packageContainer string = 'app-package'

@description('The package that premium reads; flex is told by the deployment.')
param packageName string = 'firn.zip'

@minValue(1)
@maxValue(365)
param softDeleteDays int = 14

@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

param storageSuffix string = environment().suffixes.storage
param vaultSuffix string = environment().suffixes.keyvaultDns

var accountName = firn.storage.account
var stateContainer = firn.storage.?stateContainer ?? 'firn-state'
var queue = firn.storage.?queue ?? 'firn-compact'
var intervalMinutes = firn.?compaction.?backlogCheckIntervalMinutes ?? 15
var memoryMb = firn.?compaction.?memoryMb ?? 512
var warehouse = firn.catalog.?warehouse ?? ''

// Two days are the most that a log query of an alert looks back.
var noTickMinutes = min(max(3 * intervalMinutes, 60), 2880)

// The host takes about 400 MB beside the handler, and the handler about 300 MB beside memoryMb.
var derivedMemoryMB = memoryMb <= 1280 ? 2048 : 4096
var flexMemoryMB = instanceMemoryMB == 0 ? derivedMemoryMB : instanceMemoryMB

// abfss://container@account.dfs.core.windows.net/folder
var warehouseParts = contains(warehouse, '@') ? split(split(split(warehouse, '://')[1], '/')[0], '@') : []
var warehouseContainers = empty(warehouseParts) ? [] : [
  {
    account: split(warehouseParts[1], '.')[0]
    container: warehouseParts[0]
  }
]
var containers = [for given in (empty(dataContainers) ? warehouseContainers : dataContainers): {
  account: given.account
  container: given.container
  resourceGroup: given.?resourceGroup ?? resourceGroup().name
  subscriptionId: given.?subscriptionId ?? subscription().subscriptionId
}]
var dataAccountIds = union(map(containers, place => resourceId(place.subscriptionId, place.resourceGroup, 'Microsoft.Storage/storageAccounts', place.account)), [])

module identity 'modules/identity.bicep' = {
  name: 'firn-identity'
  params: {
    name: name
    location: location
  }
}

module storage 'modules/storage.bicep' = {
  name: 'firn-storage'
  params: {
    accountName: accountName
    location: location
    stateContainer: stateContainer
    queue: queue
    packageContainer: packageContainer
    softDeleteDays: softDeleteDays
    privateNetwork: privateNetwork
  }
}

module storageRoles 'modules/storage-roles.bicep' = {
  name: 'firn-storage-roles'
  params: {
    accountName: accountName
    stateContainer: stateContainer
    queue: queue
    principalId: identity.outputs.principalId
  }
  dependsOn: [
    storage
  ]
}

module operatorRoles 'modules/operator-roles.bicep' = [for (operator, index) in operators: {
  name: 'firn-operator-roles-${index}'
  params: {
    accountName: accountName
    stateContainer: stateContainer
    queue: queue
    principalId: operator
  }
  dependsOn: [
    storage
  ]
}]

module dataRoles 'modules/data-role.bicep' = [for (place, index) in containers: {
  name: 'firn-data-role-${index}'
  scope: resourceGroup(place.subscriptionId, place.resourceGroup)
  params: {
    accountName: place.account
    container: place.container
    principalId: identity.outputs.principalId
  }
}]

module secretRoles 'modules/secret-role.bicep' = [for (secret, index) in items(secrets): {
  name: 'firn-secret-role-${index}'
  scope: resourceGroup(keyVaultResourceGroup)
  params: {
    vaultName: keyVaultName
    secretName: secret.value
    principalId: identity.outputs.principalId
  }
}]

module monitoring 'modules/monitoring.bicep' = {
  name: 'firn-monitoring'
  params: {
    name: name
    location: location
    retentionDays: logRetentionDays
    principalId: identity.outputs.principalId
  }
}

module alerts 'modules/alerts.bicep' = {
  name: 'firn-alerts'
  params: {
    name: name
    location: location
    insightsId: monitoring.outputs.insightsId
    email: alertEmail
    poisonQueue: '${queue}-poison'
    noTickMinutes: noTickMinutes
    timersEnabled: timersEnabled
  }
}

module network 'modules/network.bicep' = if (privateNetwork) {
  name: 'firn-network'
  params: {
    name: name
    location: location
    addressPrefix: addressPrefix
    storageSuffix: storageSuffix
    subnetDelegation: plan == 'flex' ? 'Microsoft.App/environments' : 'Microsoft.Web/serverFarms'
  }
}

module hostBlobEndpoint 'modules/private-endpoint.bicep' = if (privateNetwork) {
  name: 'firn-endpoint-host-blob'
  params: {
    name: '${name}-host-blob'
    location: location
    subnetId: network!.outputs.endpointsSubnetId
    accountId: storage.outputs.accountId
    service: 'blob'
    zoneId: network!.outputs.blobZoneId
  }
}

module hostQueueEndpoint 'modules/private-endpoint.bicep' = if (privateNetwork) {
  name: 'firn-endpoint-host-queue'
  params: {
    name: '${name}-host-queue'
    location: location
    subnetId: network!.outputs.endpointsSubnetId
    accountId: storage.outputs.accountId
    service: 'queue'
    zoneId: network!.outputs.queueZoneId
  }
}

module dataEndpoints 'modules/private-endpoint.bicep' = [for (accountId, index) in dataAccountIds: if (privateNetwork) {
  name: 'firn-endpoint-data-${index}'
  params: {
    name: '${name}-data-${index}'
    location: location
    subnetId: network!.outputs.endpointsSubnetId
    accountId: accountId
    service: 'blob'
    zoneId: network!.outputs.blobZoneId
  }
}]

module settings 'modules/settings.bicep' = {
  name: 'firn-settings'
  params: {
    blobEndpoint: storage.outputs.blobEndpoint
    queueEndpoint: storage.outputs.queueEndpoint
    clientId: identity.outputs.clientId
    insightsConnectionString: monitoring.outputs.connectionString
    timersEnabled: timersEnabled
    orphansEnabled: orphansEnabled
    vaultUri: 'https://${keyVaultName}${vaultSuffix}/'
    secrets: secrets
  }
}

module flex 'modules/function-app-flex.bicep' = if (plan == 'flex') {
  name: 'firn-flex'
  params: {
    name: name
    location: location
    identityId: identity.outputs.id
    packageUrl: storage.outputs.packageUrl
    settings: settings.outputs.settings
    subnetId: privateNetwork ? network!.outputs.functionsSubnetId : ''
    instanceMemoryMB: flexMemoryMB
    maximumInstanceCount: maximumInstanceCount
  }
  // The host asks for its storage as soon as it is made.
  dependsOn: [
    storageRoles
    secretRoles
    hostBlobEndpoint
    hostQueueEndpoint
  ]
}

module premium 'modules/function-app-premium.bicep' = if (plan == 'premium') {
  name: 'firn-premium'
  params: {
    name: name
    location: location
    identityId: identity.outputs.id
    packageUrl: storage.outputs.packageUrl
    packageName: packageName
    settings: settings.outputs.settings
    subnetId: privateNetwork ? network!.outputs.functionsSubnetId : ''
    sku: premiumSku
    maximumInstanceCount: maximumInstanceCount
  }
  dependsOn: [
    storageRoles
    secretRoles
    hostBlobEndpoint
    hostQueueEndpoint
  ]
}

output appName string = name
output hostName string = plan == 'flex' ? flex!.outputs.hostName : premium!.outputs.hostName
output identityClientId string = identity.outputs.clientId
output identityPrincipalId string = identity.outputs.principalId
output storageAccount string = accountName
output stateContainer string = stateContainer
output queue string = queue
output packageUrl string = storage.outputs.packageUrl
output insightsId string = monitoring.outputs.insightsId
output noTickMinutes int = noTickMinutes
output instanceMemoryMB int = flexMemoryMB
