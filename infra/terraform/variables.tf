variable "subscription_id" {
  description = "Where to deploy to."
  type        = string
}

variable "resource_group" {
  description = "Where to deploy to; it is there already."
  type        = string
}

variable "name" {
  description = "Name of the app: letters, digits and hyphens, unique in the whole of Azure. Other resources are called after it."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{2,32}$", var.name))
    error_message = "name needs 2 to 32 letters, digits and hyphens."
  }
}

variable "location" {
  type = string
}

variable "firn" {
  description = "Path of firn.yaml."
  type        = string
  default     = "../../firn.yaml"
}

variable "data_containers" {
  description = "Containers with tables. Empty: that of catalog.warehouse."
  type = list(object({
    account         = string
    container       = string
    resource_group  = optional(string)
    subscription_id = optional(string)
  }))
  default = []
}

variable "plan" {
  description = "flex, or premium where a merge needs more than 4 GB."
  type        = string
  default     = "flex"

  validation {
    condition     = contains(["flex", "premium"], var.plan)
    error_message = "plan is flex or premium."
  }
}

variable "instance_memory_mb" {
  description = "Memory of an instance on flex. 0: 2048, or 4096 where compaction.memoryMb asks for it."
  type        = number
  default     = 0

  validation {
    condition     = contains([0, 512, 2048, 4096], var.instance_memory_mb)
    error_message = "instance_memory_mb is 0, 512, 2048 or 4096."
  }
}

variable "premium_sku" {
  description = "Size of an instance on premium: 3.5, 7 or 14 GB."
  type        = string
  default     = "EP1"

  validation {
    condition     = contains(["EP1", "EP2", "EP3"], var.premium_sku)
    error_message = "premium_sku is EP1, EP2 or EP3."
  }
}

variable "maximum_instance_count" {
  description = "How many instances, and so partitions at the same time, at most. Flex Consumption takes 40 to 1000, premium up to 100."
  type        = number
  default     = 40

  validation {
    condition     = var.maximum_instance_count >= 1 && var.maximum_instance_count <= 1000
    error_message = "maximum_instance_count is 1 to 1000."
  }
}

variable "timers_enabled" {
  description = "Whether the timers of planner and expiry run. Switched on after the first dry run."
  type        = bool
  default     = false
}

variable "orphans_enabled" {
  description = "Whether the timer of orphan cleanup runs. Switched on after its own dry run (firn orphans --dry-run)."
  type        = bool
  default     = false
}

variable "alert_email" {
  description = "Where alerts go; empty: they only show in the portal."
  type        = string
  default     = ""
}

variable "operators" {
  description = "Object ids of people and groups that post messages and read reports by hand."
  type        = list(string)
  default     = []
}

variable "key_vault_name" {
  description = "Key Vault with the secrets; it is there already."
  type        = string
  default     = ""
}

variable "key_vault_resource_group" {
  description = "Its resource group; null: the one deployed to."
  type        = string
  default     = null
}

variable "secrets" {
  description = "App setting -> name of its secret. firn.yaml writes the setting as a dollar sign and the name in braces."
  type        = map(string)
  default     = {}
}

variable "private_network" {
  description = "A network of its own, storage by private endpoints."
  type        = bool
  default     = false
}

variable "address_prefix" {
  type    = string
  default = "10.60.0.0/24"
}

variable "package_container" {
  type    = string
  default = "app-package"
}

variable "package_name" {
  description = "The package that premium reads; flex is told by the deployment."
  type        = string
  default     = "firn.zip"
}

variable "soft_delete_days" {
  type    = number
  default = 14

  validation {
    condition     = var.soft_delete_days >= 1 && var.soft_delete_days <= 365
    error_message = "soft_delete_days is 1 to 365."
  }
}

variable "log_retention_days" {
  type    = number
  default = 30

  validation {
    condition     = var.log_retention_days >= 30 && var.log_retention_days <= 730
    error_message = "log_retention_days is 30 to 730."
  }
}

variable "storage_suffix" {
  type    = string
  default = "core.windows.net"
}

variable "vault_suffix" {
  type    = string
  default = ".vault.azure.net"
}
