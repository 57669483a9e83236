// The host's own storage account. Firn's queues and state lie in it too, because the queue triggers use the host's connection
// (AzureWebJobsStorage). Tables lie elsewhere.

param accountName string
param location string
param stateContainer string
param queue string
param packageContainer string
param softDeleteDays int
param privateNetwork bool

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: accountName
  location: location
  kind: 'StorageV2'
  // Nothing here is needed to read tables, and losing it costs a tick: the cheapest redundancy will do.
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    // Identities only: nobody can sign with a key, and no SAS made from one works.
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: privateNetwork ? 'Deny' : 'Allow'
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: softDeleteDays
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: softDeleteDays
    }
  }
}

resource state 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: stateContainer
  properties: {
    publicAccess: 'None'
  }
}

resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: packageContainer
  properties: {
    publicAccess: 'None'
  }
}

resource queues 'Microsoft.Storage/storageAccounts/queueServices@2023-05-01' existing = {
  parent: account
  name: 'default'
}

resource work 'Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01' = {
  parent: queues
  name: queue
  properties: {}
}

// Made here and not by the host: the host would need a role on the whole queue service to make it.
resource poison 'Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01' = {
  parent: queues
  name: '${queue}-poison'
  properties: {}
}

output accountId string = account.id
output blobEndpoint string = account.properties.primaryEndpoints.blob
output queueEndpoint string = account.properties.primaryEndpoints.queue
output packageUrl string = '${account.properties.primaryEndpoints.blob}${packages.name}'
output stateContainerId string = state.id
output queueId string = work.id
output poisonQueueId string = poison.id
