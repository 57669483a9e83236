# The app on Elastic Premium, for merges that need more memory or time than Flex Consumption has. At least one instance always runs.

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

variable "package_name" {
  type = string
}

variable "settings" {
  type = map(string)
}

variable "subnet_id" {
  type = string
}

variable "sku" {
  type = string
}

variable "maximum_instance_count" {
  type = number
}

locals {
  # A file share for content would need the account's key, so the package is read from its container by identity.
  premium_settings = {
    FUNCTIONS_EXTENSION_VERSION                  = "~4"
    FUNCTIONS_WORKER_RUNTIME                     = "custom"
    WEBSITE_RUN_FROM_PACKAGE                     = "${var.package_url}/${var.package_name}"
    WEBSITE_RUN_FROM_PACKAGE_BLOB_MI_RESOURCE_ID = var.identity_id
  }
}

resource "azapi_resource" "plan" {
  type      = "Microsoft.Web/serverfarms@2024-04-01"
  parent_id = var.parent_id
  name      = "plan-${var.name}"
  location  = var.location
  body = {
    kind = "elastic"
    sku = {
      name = var.sku
      tier = "ElasticPremium"
    }
    properties = {
      reserved                  = true
      maximumElasticWorkerCount = var.maximum_instance_count
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
      vnetRouteAllEnabled       = var.subnet_id != ""
      siteConfig = {
        linuxFxVersion              = "CUSTOM"
        minTlsVersion               = "1.2"
        ftpsState                   = "Disabled"
        minimumElasticInstanceCount = 1
        functionAppScaleLimit       = var.maximum_instance_count
        # Scaling asks the triggers from inside the app, the only way that works into a private network.
        functionsRuntimeScaleMonitoringEnabled = true
        appSettings                            = [for key, value in merge(var.settings, local.premium_settings) : { name = key, value = value }]
      }
    }
  }
  response_export_values = ["properties.defaultHostName"]
}

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
