output "app_name" {
  value = var.name
}

output "host_name" {
  value = var.plan == "flex" ? module.flex[0].host_name : module.premium[0].host_name
}

output "identity_client_id" {
  value = module.identity.client_id
}

output "identity_principal_id" {
  value = module.identity.principal_id
}

output "storage_account" {
  value = local.account_name
}

output "state_container" {
  value = local.state_container
}

output "queue" {
  value = local.queue
}

output "package_url" {
  value = module.storage.package_url
}

output "insights_id" {
  value = module.monitoring.insights_id
}

output "no_tick_minutes" {
  value = local.no_tick_minutes
}

output "instance_memory_mb" {
  value = local.flex_memory_mb
}
