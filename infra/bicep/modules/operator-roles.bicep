// What one person or group may do by hand: post a message, read state and the reports of dry runs.

param accountName string
param stateContainer string
param queue string
param principalId string

var roles = loadJsonContent('../../shared/roles.json')

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' existing = {
  name: accountName
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' existing = {
  parent: account
  name: 'default'
}

resource state 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' existing = {
  parent: blobs
  name: stateContainer
}

resource queues 'Microsoft.Storage/storageAccounts/queueServices@2023-05-01' existing = {
  parent: account
  name: 'default'
}

resource work 'Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01' existing = {
  parent: queues
  name: queue
}

resource sender 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(work.id, principalId, roles.storageQueueDataMessageSender)
  scope: work
  properties: {
    principalId: principalId
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataMessageSender)
  }
}

resource reader 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(state.id, principalId, roles.storageBlobDataReader)
  scope: state
  properties: {
    principalId: principalId
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataReader)
  }
}
