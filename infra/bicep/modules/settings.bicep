// App settings that both plans share. No resource: other modules take the result.

param blobEndpoint string
param queueEndpoint string
param clientId string
param insightsConnectionString string
param timersEnabled bool
param orphansEnabled bool
param vaultUri string
param secrets object

var plain = {
  // The host's connection, which the queue triggers use too: by identity, no connection string.
  AzureWebJobsStorage__blobServiceUri: blobEndpoint
  AzureWebJobsStorage__queueServiceUri: queueEndpoint
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__clientId: clientId
  APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnectionString
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${clientId};Authorization=AAD'
  // Alerts are queries on the event lines: not one may be sampled away.
  AzureFunctionsJobHost__logging__applicationInsights__samplingSettings__isEnabled: 'false'
  'AzureWebJobs.plan.Disabled': timersEnabled ? 'false' : 'true'
  'AzureWebJobs.expire-snapshots.Disabled': timersEnabled ? 'false' : 'true'
  'AzureWebJobs.clean-orphans.Disabled': orphansEnabled ? 'false' : 'true'
  FIRN_TIMER: '0 */5 * * * *'
  FIRN_CONFIG: 'firn.yaml'
  FIRN_CLIENT_ID: clientId
}

var references = toObject(items(secrets), secret => secret.key, secret => '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/${secret.value}/)')

output settings object = union(plain, references)
