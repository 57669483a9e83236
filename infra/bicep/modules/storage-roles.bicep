// What the app may do on its own storage account.

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

resource poison 'Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01' existing = {
  parent: queues
  name: '${queue}-poison'
}

// The host: keys of functions, timer status, locks by lease, the package. It makes its containers itself, hence the account.
resource hostBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account.id, principalId, roles.storageBlobDataOwner)
  scope: account
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataOwner)
  }
}

// Contained in the one above as long as state lies in the host's account; said for itself, because it is Firn's own need.
resource stateBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(state.id, principalId, roles.storageBlobDataContributor)
  scope: state
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

// Trigger and scaling read the queue's metadata, peek, receive, change and delete its messages, and put into the poison queue: all of
// it is asked of a queue by its name, nothing lists the account's queues. So the two queues are enough.
resource workMessages 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(work.id, principalId, roles.storageQueueDataContributor)
  scope: work
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataContributor)
  }
}

resource poisonMessages 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(poison.id, principalId, roles.storageQueueDataContributor)
  scope: poison
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageQueueDataContributor)
  }
}
