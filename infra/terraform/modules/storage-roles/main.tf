# What the app may do on its own storage account.

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
  poison           = "${local.account}/queueServices/default/queues/${var.queue}-poison"
}

# The host: keys of functions, timer status, locks by lease, the package. It makes its containers itself, hence the account.
resource "azapi_resource" "host_blobs" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.account
  name      = uuidv5("url", "${local.account}/${var.principal_id}/${local.roles.storageBlobDataOwner}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageBlobDataOwner}"
    }
  }
}

# Contained in the one above as long as state lies in the host's account; said for itself, because it is Firn's own need.
resource "azapi_resource" "state_blobs" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.state
  name      = uuidv5("url", "${local.state}/${var.principal_id}/${local.roles.storageBlobDataContributor}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageBlobDataContributor}"
    }
  }
}

# Trigger and scaling read the queue's metadata, peek, receive, change and delete its messages, and put into the poison queue: all of
# it is asked of a queue by its name, nothing lists the account's queues. So the two queues are enough.
resource "azapi_resource" "work_messages" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.work
  name      = uuidv5("url", "${local.work}/${var.principal_id}/${local.roles.storageQueueDataContributor}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageQueueDataContributor}"
    }
  }
}

resource "azapi_resource" "poison_messages" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.poison
  name      = uuidv5("url", "${local.poison}/${var.principal_id}/${local.roles.storageQueueDataContributor}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.storageQueueDataContributor}"
    }
  }
}
