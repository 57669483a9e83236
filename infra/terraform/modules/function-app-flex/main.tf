# The app on Flex Consumption: no instance between ticks, one message an instance.

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

variable "identity_id" {
  type = string
}

variable "package_url" {
  type = string
}

variable "settings" {
  type = map(string)
}

variable "subnet_id" {
  type = string
}

variable "instance_memory_mb" {
  type = number
}

variable "maximum_instance_count" {
  type = number
}

resource "azapi_resource" "plan" {
  type      = "Microsoft.Web/serverfarms@2024-04-01"
  parent_id = var.parent_id
  name      = "plan-${var.name}"
  location  = var.location
  body = {
    kind = "functionapp"
    sku = {
      name = "FC1"
      tier = "FlexConsumption"
    }
    properties = {
      reserved = true
    }
  }
}

resource "azapi_resource" "app" {
  type      = "Microsoft.Web/sites@2024-04-01"
  parent_id = var.parent_id
  name      = var.name
  location  = var.location

  identity {
    type         = "UserAssigned"
    identity_ids = [var.identity_id]
  }

  body = {
    kind = "functionapp,linux"
    properties = {
      serverFarmId              = azapi_resource.plan.id
      httpsOnly                 = true
      keyVaultReferenceIdentity = var.identity_id
      virtualNetworkSubnetId    = var.subnet_id == "" ? null : var.subnet_id
      functionAppConfig = {
        deployment = {
          storage = {
            type  = "blobContainer"
            value = var.package_url
            authentication = {
              type                           = "UserAssignedIdentity"
              userAssignedIdentityResourceId = var.identity_id
            }
          }
        }
        runtime = {
          name    = "custom"
          version = "1.0"
        }
        scaleAndConcurrency = {
          instanceMemoryMB     = var.instance_memory_mb
          maximumInstanceCount = var.maximum_instance_count
        }
      }
      siteConfig = {
        minTlsVersion = "1.2"
        appSettings   = [for key, value in var.settings : { name = key, value = value }]
      }
    }
  }
  response_export_values = ["properties.defaultHostName"]
}

# Deployment by identity only: the publishing user and password are switched off.
resource "azapi_update_resource" "no_publishing_password" {
  type      = "Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01"
  parent_id = azapi_resource.app.id
  name      = "scm"
  body = {
    properties = {
      allow = false
    }
  }
}

output "host_name" {
  value = azapi_resource.app.output.properties.defaultHostName
}
