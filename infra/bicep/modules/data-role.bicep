// What the app may do on one container with tables. The account is somebody else's: nothing of it is changed.

param accountName string
param container string
param principalId string

var roles = loadJsonContent('../../shared/roles.json')

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' existing = {
  name: accountName
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' existing = {
  parent: account
  name: 'default'
}

resource tables 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' existing = {
  parent: blobs
  name: container
}

resource tableBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(tables.id, principalId, roles.storageBlobDataContributor)
  scope: tables
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}
