// The app on Elastic Premium, for merges that need more memory or time than Flex Consumption has. At least one instance always runs.

param name string
param location string
param identityId string
param packageUrl string
param packageName string
param settings object
param subnetId string
param sku string
param maximumInstanceCount int

// A file share for content would need the account's key, so the package is read from its container by identity.
var premiumSettings = {
  FUNCTIONS_EXTENSION_VERSION: '~4'
  FUNCTIONS_WORKER_RUNTIME: 'custom'
  WEBSITE_RUN_FROM_PACKAGE: '${packageUrl}/${packageName}'
  WEBSITE_RUN_FROM_PACKAGE_BLOB_MI_RESOURCE_ID: identityId
}

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: 'plan-${name}'
  location: location
  kind: 'elastic'
  sku: {
    name: sku
    tier: 'ElasticPremium'
  }
  properties: {
    reserved: true
    maximumElasticWorkerCount: maximumInstanceCount
  }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  name: name
  location: location
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: subnetId == '' ? null : subnetId
    vnetRouteAllEnabled: subnetId != ''
    siteConfig: {
      linuxFxVersion: 'CUSTOM'
      minTlsVersion: '1.2'
      ftpsState: 'Disabled'
      minimumElasticInstanceCount: 1
      functionAppScaleLimit: maximumInstanceCount
      // Scaling asks the triggers from inside the app, the only way that works into a private network.
      functionsRuntimeScaleMonitoringEnabled: true
      appSettings: [for setting in items(union(settings, premiumSettings)): {
        name: setting.key
        value: setting.value
      }]
    }
  }
}

resource noPublishingPassword 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01' = {
  parent: app
  name: 'scm'
  properties: {
    allow: false
  }
}

output hostName string = app.properties.defaultHostName
