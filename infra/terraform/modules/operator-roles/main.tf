# What one person or group may do by hand: post a message, read state and the reports of dry runs.

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

variable "state_container" {
  type = string
}

variable "queue" {
  type = string
}

variable "principal_id" {
  type = string
}

locals {
  roles            = jsondecode(file("${path.module}/../../../shared/roles.json"))
  role_definitions = "/subscriptions/${split("/", var.parent_id)[2]}/providers/Microsoft.Authorization/roleDefinitions"
  account          = "${var.parent_id}/providers/Microsoft.Storage/storageAccounts/${var.account_name}"
  state            = "${local.account}/blobServices/default/containers/${var.state_container}"
  work             = "${local.account}/queueServices/default/queues/${var.queue}"
}

resource "azapi_resource" "sender" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.work
  name      = uuidv5("url", "${local.work}/${var.principal_id}/${local.roles.storageQueueDataMessageSender}")
  body = {
    properties = {
      principalId      = var.principal_id
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageQueueDataMessageSender}"
    }
  }
}

resource "azapi_resource" "reader" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.state
  name      = uuidv5("url", "${local.state}/${var.principal_id}/${local.roles.storageBlobDataReader}")
  body = {
    properties = {
      principalId      = var.principal_id
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageBlobDataReader}"
    }
  }
}
