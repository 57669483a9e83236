# A private address for one service of one storage account, with its name.

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

variable "subnet_id" {
  type = string
}

variable "account_id" {
  type = string
}

variable "service" {
  type = string
}

variable "zone_id" {
  type = string
}

resource "azapi_resource" "endpoint" {
  type      = "Microsoft.Network/privateEndpoints@2024-05-01"
  parent_id = var.parent_id
  name      = "pe-${var.name}"
  location  = var.location
  body = {
    properties = {
      subnet = {
        id = var.subnet_id
      }
      privateLinkServiceConnections = [
        {
          name = var.service
          properties = {
            privateLinkServiceId = var.account_id
            groupIds             = [var.service]
          }
        }
      ]
    }
  }
}

resource "azapi_resource" "zones" {
  type      = "Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-05-01"
  parent_id = azapi_resource.endpoint.id
  name      = "default"
  body = {
    properties = {
      privateDnsZoneConfigs = [
        {
          name = var.service
          properties = {
            privateDnsZoneId = var.zone_id
          }
        }
      ]
    }
  }
}
