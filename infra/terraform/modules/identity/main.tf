# The one identity of the app: it outlives the app, so roles survive when the app is made again.

terraform {
  required_providers {
    azapi = {
      source = "Azure/azapi"
    }
  }
}

variable "parent_id" {
  type = string
}

variable "name" {
  type = string
}

variable "location" {
  type = string
}

resource "azapi_resource" "identity" {
  type                   = "Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31"
  parent_id              = var.parent_id
  name                   = "id-${var.name}"
  location               = var.location
  response_export_values = ["properties.clientId", "properties.principalId"]
}

output "id" {
  value = azapi_resource.identity.id
}

output "client_id" {
  value = azapi_resource.identity.output.properties.clientId
}

output "principal_id" {
  value = azapi_resource.identity.output.properties.principalId
}
