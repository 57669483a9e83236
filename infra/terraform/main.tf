# Firn on Azure. The same deployment as infra/bicep; a test compares the two.
# What firn.yaml says is taken from there: accounts, names, the interval of ticks, the memory of a merge.

locals {
  firn     = yamldecode(file(var.firn))
  group_id = "/subscriptions/${var.subscription_id}/resourceGroups/${var.resource_group}"

  account_name     = local.firn.storage.account
  state_container  = try(local.firn.storage.stateContainer, "firn-state")
  queue            = try(local.firn.storage.queue, "firn-compact")
  interval_minutes = try(local.firn.compaction.backlogCheckIntervalMinutes, 15)
  memory_mb        = try(local.firn.compaction.memoryMb, 512)
  warehouse        = try(local.firn.catalog.warehouse, "")

  # Two days are the most that a log query of an alert looks back.
  no_tick_minutes = min(max(3 * local.interval_minutes, 60), 2880)

  # The host takes about 400 MB beside the handler, and the handler about 300 MB beside memoryMb.
  derived_memory_mb = local.memory_mb <= 1280 ? 2048 : 4096
  flex_memory_mb    = var.instance_memory_mb == 0 ? local.derived_memory_mb : var.instance_memory_mb

  # abfss://container@account.dfs.core.windows.net/folder
  warehouse_parts = strcontains(local.warehouse, "@") ? split("@", split("/", split("://", local.warehouse)[1])[0]) : []
  warehouse_containers = [for part in slice(local.warehouse_parts, 0, min(length(local.warehouse_parts), 1)) : {
    account         = split(".", local.warehouse_parts[1])[0]
    container       = part
    resource_group  = null
    subscription_id = null
  }]
  containers = [for given in(length(var.data_containers) == 0 ? local.warehouse_containers : var.data_containers) : {
    account   = given.account
    container = given.container
    parent_id = "/subscriptions/${coalesce(given.subscription_id, var.subscription_id)}/resourceGroups/${coalesce(given.resource_group, var.resource_group)}"
  }]
  data_account_ids = distinct([for place in local.containers : "${place.parent_id}/providers/Microsoft.Storage/storageAccounts/${place.account}"])
  vault_group_id   = "/subscriptions/${var.subscription_id}/resourceGroups/${coalesce(var.key_vault_resource_group, var.resource_group)}"
}

module "identity" {
  source    = "./modules/identity"
  parent_id = local.group_id
  name      = var.name
  location  = var.location
}

module "storage" {
  source            = "./modules/storage"
  parent_id         = local.group_id
  account_name      = local.account_name
  location          = var.location
  state_container   = local.state_container
  queue             = local.queue
  package_container = var.package_container
  soft_delete_days  = var.soft_delete_days
  private_network   = var.private_network
}

module "storage_roles" {
  source          = "./modules/storage-roles"
  parent_id       = local.group_id
  account_name    = local.account_name
  state_container = local.state_container
  queue           = local.queue
  principal_id    = module.identity.principal_id
  depends_on      = [module.storage]
}

module "operator_roles" {
  source          = "./modules/operator-roles"
  for_each        = toset(var.operators)
  parent_id       = local.group_id
  account_name    = local.account_name
  state_container = local.state_container
  queue           = local.queue
  principal_id    = each.value
  depends_on      = [module.storage]
}

module "data_roles" {
  source       = "./modules/data-role"
  for_each     = { for place in local.containers : "${place.account}/${place.container}" => place }
  parent_id    = each.value.parent_id
  account_name = each.value.account
  container    = each.value.container
  principal_id = module.identity.principal_id
}

module "secret_roles" {
  source       = "./modules/secret-role"
  for_each     = var.secrets
  parent_id    = local.vault_group_id
  vault_name   = var.key_vault_name
  secret_name  = each.value
  principal_id = module.identity.principal_id
}

module "monitoring" {
  source         = "./modules/monitoring"
  parent_id      = local.group_id
  name           = var.name
  location       = var.location
  retention_days = var.log_retention_days
  principal_id   = module.identity.principal_id
}

module "alerts" {
  source          = "./modules/alerts"
  parent_id       = local.group_id
  name            = var.name
  location        = var.location
  insights_id     = module.monitoring.insights_id
  email           = var.alert_email
  poison_queue    = "${local.queue}-poison"
  no_tick_minutes = local.no_tick_minutes
  timers_enabled  = var.timers_enabled
}

module "network" {
  source            = "./modules/network"
  count             = var.private_network ? 1 : 0
  parent_id         = local.group_id
  name              = var.name
  location          = var.location
  address_prefix    = var.address_prefix
  storage_suffix    = var.storage_suffix
  subnet_delegation = var.plan == "flex" ? "Microsoft.App/environments" : "Microsoft.Web/serverFarms"
}

module "host_blob_endpoint" {
  source     = "./modules/private-endpoint"
  count      = var.private_network ? 1 : 0
  parent_id  = local.group_id
  name       = "${var.name}-host-blob"
  location   = var.location
  subnet_id  = module.network[0].endpoints_subnet_id
  account_id = module.storage.account_id
  service    = "blob"
  zone_id    = module.network[0].blob_zone_id
}

module "host_queue_endpoint" {
  source     = "./modules/private-endpoint"
  count      = var.private_network ? 1 : 0
  parent_id  = local.group_id
  name       = "${var.name}-host-queue"
  location   = var.location
  subnet_id  = module.network[0].endpoints_subnet_id
  account_id = module.storage.account_id
  service    = "queue"
  zone_id    = module.network[0].queue_zone_id
}

module "data_endpoints" {
  source     = "./modules/private-endpoint"
  for_each   = { for index, account_id in local.data_account_ids : tostring(index) => account_id if var.private_network }
  parent_id  = local.group_id
  name       = "${var.name}-data-${each.key}"
  location   = var.location
  subnet_id  = module.network[0].endpoints_subnet_id
  account_id = each.value
  service    = "blob"
  zone_id    = module.network[0].blob_zone_id
}

module "settings" {
  source                     = "./modules/settings"
  blob_endpoint              = module.storage.blob_endpoint
  queue_endpoint             = module.storage.queue_endpoint
  client_id                  = module.identity.client_id
  insights_connection_string = module.monitoring.connection_string
  timers_enabled             = var.timers_enabled
  orphans_enabled            = var.orphans_enabled
  vault_uri                  = "https://${var.key_vault_name}${var.vault_suffix}/"
  secrets                    = var.secrets
}

module "flex" {
  source                 = "./modules/function-app-flex"
  count                  = var.plan == "flex" ? 1 : 0
  parent_id              = local.group_id
  name                   = var.name
  location               = var.location
  identity_id            = module.identity.id
  package_url            = module.storage.package_url
  settings               = module.settings.settings
  subnet_id              = var.private_network ? module.network[0].functions_subnet_id : ""
  instance_memory_mb     = local.flex_memory_mb
  maximum_instance_count = var.maximum_instance_count
  # The host asks for its storage as soon as it is made.
  depends_on = [module.storage_roles, module.secret_roles, module.host_blob_endpoint, module.host_queue_endpoint]
}

module "premium" {
  source                 = "./modules/function-app-premium"
  count                  = var.plan == "premium" ? 1 : 0
  parent_id              = local.group_id
  name                   = var.name
  location               = var.location
  identity_id            = module.identity.id
  package_url            = module.storage.package_url
  package_name           = var.package_name
  settings               = module.settings.settings
  subnet_id              = var.private_network ? module.network[0].functions_subnet_id : ""
  sku                    = var.premium_sku
  maximum_instance_count = var.maximum_instance_count
  depends_on             = [module.storage_roles, module.secret_roles, module.host_blob_endpoint, module.host_queue_endpoint]
}
