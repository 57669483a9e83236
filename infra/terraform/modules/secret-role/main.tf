# The app may read one secret of a vault that is there already, and none beside it.

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

variable "vault_name" {
  type = string
}

variable "secret_name" {
  type = string
}

variable "principal_id" {
  type = string
}

locals {
  roles            = jsondecode(file("${path.module}/../../../shared/roles.json"))
  role_definitions = "/subscriptions/${split("/", var.parent_id)[2]}/providers/Microsoft.Authorization/roleDefinitions"
  secret           = "${var.parent_id}/providers/Microsoft.KeyVault/vaults/${var.vault_name}/secrets/${var.secret_name}"
}

resource "azapi_resource" "secret_reader" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = local.secret
  name      = uuidv5("url", "${local.secret}/${var.principal_id}/${local.roles.keyVaultSecretsUser}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.keyVaultSecretsUser}"
    }
  }
}
