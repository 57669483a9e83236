# Where the handler's lines arrive. Local authentication is off: the connection string alone lets nobody write.

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

variable "retention_days" {
  type = number
}

variable "principal_id" {
  type = string
}

locals {
  roles            = jsondecode(file("${path.module}/../../../shared/roles.json"))
  role_definitions = "/subscriptions/${split("/", var.parent_id)[2]}/providers/Microsoft.Authorization/roleDefinitions"
}

resource "azapi_resource" "workspace" {
  type      = "Microsoft.OperationalInsights/workspaces@2023-09-01"
  parent_id = var.parent_id
  name      = "log-${var.name}"
  location  = var.location
  body = {
    properties = {
      retentionInDays = var.retention_days
      sku = {
        name = "PerGB2018"
      }
      features = {
        disableLocalAuth = true
      }
    }
  }
}

resource "azapi_resource" "insights" {
  type      = "Microsoft.Insights/components@2020-02-02"
  parent_id = var.parent_id
  name      = "appi-${var.name}"
  location  = var.location
  body = {
    kind = "web"
    properties = {
      Application_Type    = "web"
      WorkspaceResourceId = azapi_resource.workspace.id
      DisableLocalAuth    = true
    }
  }
  response_export_values = ["properties.ConnectionString"]
}

resource "azapi_resource" "telemetry" {
  type      = "Microsoft.Authorization/roleAssignments@2022-04-01"
  parent_id = azapi_resource.insights.id
  name      = uuidv5("url", "${azapi_resource.insights.id}/${var.principal_id}/${local.roles.monitoringMetricsPublisher}")
  body = {
    properties = {
      principalId      = var.principal_id
      principalType    = "ServicePrincipal"
      roleDefinitionId = "${local.role_definitions}/${local.roles.monitoringMetricsPublisher}"
    }
  }
}

output "insights_id" {
  value = azapi_resource.insights.id
}

output "connection_string" {
  value = azapi_resource.insights.output.properties.ConnectionString
}
