# The host's own storage account. Firn's queues and state lie in it too, because the queue triggers use the host's connection
# (AzureWebJobsStorage). Tables lie elsewhere.

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

variable "account_name" {
  type = string
}

variable "location" {
  type = string
}

variable "state_container" {
  type = string
}

variable "queue" {
  type = string
}

variable "package_container" {
  type = string
}

variable "soft_delete_days" {
  type = number
}

variable "private_network" {
  type = bool
}

resource "azapi_resource" "account" {
  type      = "Microsoft.Storage/storageAccounts@2023-05-01"
  parent_id = var.parent_id
  name      = var.account_name
  location  = var.location
  body = {
    kind = "StorageV2"
    # Nothing here is needed to read tables, and losing it costs a tick: the cheapest redundancy will do.
    sku = {
      name = "Standard_LRS"
    }
    properties = {
      # Identities only: nobody can sign with a key, and no SAS made from one works.
      allowSharedKeyAccess         = false
      allowBlobPublicAccess        = false
      defaultToOAuthAuthentication = true
      minimumTlsVersion            = "TLS1_2"
      supportsHttpsTrafficOnly     = true
      publicNetworkAccess          = "Enabled"
      networkAcls = {
        bypass        = "AzureServices"
        defaultAction = var.private_network ? "Deny" : "Allow"
      }
    }
  }
  response_export_values = ["properties.primaryEndpoints.blob", "properties.primaryEndpoints.queue"]
}

# Comes with the account, hence changed and not made.
resource "azapi_update_resource" "blobs" {
  type      = "Microsoft.Storage/storageAccounts/blobServices@2023-05-01"
  parent_id = azapi_resource.account.id
  name      = "default"
  body = {
    properties = {
      deleteRetentionPolicy = {
        enabled = true
        days    = var.soft_delete_days
      }
      containerDeleteRetentionPolicy = {
        enabled = true
        days    = var.soft_delete_days
      }
    }
  }
}

resource "azapi_resource" "state" {
  type      = "Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01"
  parent_id = azapi_update_resource.blobs.id
  name      = var.state_container
  body = {
    properties = {
      publicAccess = "None"
    }
  }
}

resource "azapi_resource" "packages" {
  type      = "Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01"
  parent_id = azapi_update_resource.blobs.id
  name      = var.package_container
  body = {
    properties = {
      publicAccess = "None"
    }
  }
}

resource "azapi_resource" "work" {
  type      = "Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01"
  parent_id = "${azapi_resource.account.id}/queueServices/default"
  name      = var.queue
  body = {
    properties = {}
  }
}

# Made here and not by the host: the host would need a role on the whole queue service to make it.
resource "azapi_resource" "poison" {
  type      = "Microsoft.Storage/storageAccounts/queueServices/queues@2023-05-01"
  parent_id = "${azapi_resource.account.id}/queueServices/default"
  name      = "${var.queue}-poison"
  body = {
    properties = {}
  }
}

output "account_id" {
  value = azapi_resource.account.id
}

output "blob_endpoint" {
  value = azapi_resource.account.output.properties.primaryEndpoints.blob
}

output "queue_endpoint" {
  value = azapi_resource.account.output.properties.primaryEndpoints.queue
}

output "package_url" {
  value = "${azapi_resource.account.output.properties.primaryEndpoints.blob}${azapi_resource.packages.name}"
}

output "state_container_id" {
  value = azapi_resource.state.id
}

output "queue_id" {
  value = azapi_resource.work.id
}

output "poison_queue_id" {
  value = azapi_resource.poison.id
}
