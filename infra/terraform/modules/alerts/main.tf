# One rule an alert, each a query on the event lines (docs/events.md). Queries stand in shared/alerts.json.

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

variable "insights_id" {
  type = string
}

variable "email" {
  type = string
}

variable "poison_queue" {
  type = string
}

variable "no_tick_minutes" {
  type = number
}

variable "timers_enabled" {
  type = bool
}

locals {
  alerts = jsondecode(file("${path.module}/../../../shared/alerts.json"))
}

resource "azapi_resource" "group" {
  count     = var.email != "" ? 1 : 0
  type      = "Microsoft.Insights/actionGroups@2023-01-01"
  parent_id = var.parent_id
  name      = "ag-${var.name}"
  location  = "global"
  body = {
    properties = {
      groupShortName = "firn"
      enabled        = true
      emailReceivers = [
        {
          name                 = "email"
          emailAddress         = var.email
          useCommonAlertSchema = true
        }
      ]
    }
  }
}

resource "azapi_resource" "rules" {
  for_each  = { for alert in local.alerts : alert.name => alert }
  type      = "Microsoft.Insights/scheduledQueryRules@2022-06-15"
  parent_id = var.parent_id
  name      = "${var.name}-${each.value.name}"
  location  = var.location
  body = {
    kind = "LogAlert"
    properties = {
      displayName = "${var.name}: ${each.value.name}"
      description = each.value.description
      severity    = each.value.severity
      # A planner that is switched off ticks never.
      enabled             = var.timers_enabled || !each.value.needsTimers
      scopes              = [var.insights_id]
      evaluationFrequency = each.value.evaluationFrequency
      windowSize          = each.value.windowSize
      criteria = {
        allOf = [
          {
            query           = replace(replace(join("\n", each.value.query), "{poisonQueue}", var.poison_queue), "{noTickMinutes}", tostring(var.no_tick_minutes))
            timeAggregation = "Count"
            operator        = "GreaterThan"
            threshold       = 0
          }
        ]
      }
      autoMitigate = true
      actions = {
        actionGroups = var.email == "" ? [] : [azapi_resource.group[0].id]
      }
    }
  }
}
