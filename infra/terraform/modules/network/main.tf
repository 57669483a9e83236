# A network of its own with one subnet for the app and one for private endpoints, and the names by which storage is found in it.

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

variable "address_prefix" {
  type = string
}

variable "storage_suffix" {
  type = string
}

variable "subnet_delegation" {
  type = string
}

resource "azapi_resource" "network" {
  type      = "Microsoft.Network/virtualNetworks@2024-05-01"
  parent_id = var.parent_id
  name      = "vnet-${var.name}"
  location  = var.location
  # Two subnets of 64 addresses: from the length of the prefix to 26.
  body = {
    properties = {
      addressSpace = {
        addressPrefixes = [var.address_prefix]
      }
      subnets = [
        {
          name = "functions"
          properties = {
            addressPrefix = cidrsubnet(var.address_prefix, 26 - tonumber(split("/", var.address_prefix)[1]), 0)
            delegations = [
              {
                name = "functions"
                properties = {
                  serviceName = var.subnet_delegation
                }
              }
            ]
          }
        },
        {
          name = "endpoints"
          properties = {
            addressPrefix = cidrsubnet(var.address_prefix, 26 - tonumber(split("/", var.address_prefix)[1]), 1)
          }
        }
      ]
    }
  }
}

resource "azapi_resource" "blob_zone" {
  type      = "Microsoft.Network/privateDnsZones@2020-06-01"
  parent_id = var.parent_id
  name      = "privatelink.blob.${var.storage_suffix}"
  location  = "global"
}

resource "azapi_resource" "queue_zone" {
  type      = "Microsoft.Network/privateDnsZones@2020-06-01"
  parent_id = var.parent_id
  name      = "privatelink.queue.${var.storage_suffix}"
  location  = "global"
}

resource "azapi_resource" "blob_link" {
  type      = "Microsoft.Network/privateDnsZones/virtualNetworkLinks@2020-06-01"
  parent_id = azapi_resource.blob_zone.id
  name      = "vnet-${var.name}"
  location  = "global"
  body = {
    properties = {
      registrationEnabled = false
      virtualNetwork = {
        id = azapi_resource.network.id
      }
    }
  }
}

resource "azapi_resource" "queue_link" {
  type      = "Microsoft.Network/privateDnsZones/virtualNetworkLinks@2020-06-01"
  parent_id = azapi_resource.queue_zone.id
  name      = "vnet-${var.name}"
  location  = "global"
  body = {
    properties = {
      registrationEnabled = false
      virtualNetwork = {
        id = azapi_resource.network.id
      }
    }
  }
}

output "functions_subnet_id" {
  value = "${azapi_resource.network.id}/subnets/functions"
}

output "endpoints_subnet_id" {
  value = "${azapi_resource.network.id}/subnets/endpoints"
}

output "blob_zone_id" {
  value = azapi_resource.blob_zone.id
}

output "queue_zone_id" {
  value = azapi_resource.queue_zone.id
}
