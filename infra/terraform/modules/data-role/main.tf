# What the app may do on one container with tables. The account is somebody else's: nothing of it is changed.

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

variable "container" {
  type = string
}

variable "principal_id" {
  type = string
}

locals {
  roles            = jsondecode(file("${path.module}/../../../shared/roles.json"))
  role_definitions = "/subscriptions/${split("/", var.parent_id)[2]}/providers/Microsoft.Authorization/roleDefinitions"
  tables           = "${var.parent_id}/providers/Microsoft.Storage/storageAccounts/${var.account_name}/blobServices/default/containers/${var.container}"
}

resource "azapi_resource" "table_blobs" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.tables
  name      = uuidv5("url", "${local.tables}/${var.principal_id}/${local.roles.storageBlobDataContributor}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageBlobDataContributor}"
    }
  }
}
