# App settings that both plans share. No resource: other modules take the result.

variable "blob_endpoint" {
  type = string
}

variable "queue_endpoint" {
  type = string
}

variable "client_id" {
  type = string
}

variable "insights_connection_string" {
  type = string
}

variable "timers_enabled" {
  type = bool
}

variable "orphans_enabled" {
  type = bool
}

variable "vault_uri" {
  type = string
}

variable "secrets" {
  type = map(string)
}

locals {
  plain = {
    # The host's connection, which the queue triggers use too: by identity, no connection string.
    AzureWebJobsStorage__blobServiceUri       = var.blob_endpoint
    AzureWebJobsStorage__queueServiceUri      = var.queue_endpoint
    AzureWebJobsStorage__credential           = "managedidentity"
    AzureWebJobsStorage__clientId             = var.client_id
    APPLICATIONINSIGHTS_CONNECTION_STRING     = var.insights_connection_string
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING = "ClientId=${var.client_id};Authorization=AAD"
    # Alerts are queries on the event lines: not one may be sampled away.
    AzureFunctionsJobHost__logging__applicationInsights__samplingSettings__isEnabled = "false"
    "AzureWebJobs.plan.Disabled"                                                     = var.timers_enabled ? "false" : "true"
    "AzureWebJobs.expire-snapshots.Disabled"                                         = var.timers_enabled ? "false" : "true"
    "AzureWebJobs.clean-orphans.Disabled"                                            = var.orphans_enabled ? "false" : "true"
    FIRN_TIMER                                                                       = "0 */5 * * * *"
    FIRN_CONFIG                                                                      = "firn.yaml"
    FIRN_CLIENT_ID                                                                   = var.client_id
  }

  references = { for setting, secret in var.secrets : setting => "@Microsoft.KeyVault(SecretUri=${var.vault_uri}secrets/${secret}/)" }
}

output "settings" {
  value = merge(local.plain, local.references)
}
