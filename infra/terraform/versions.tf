# azapi alone, for every resource: the same types and properties as Bicep, by the management API only. azurerm's Flex Consumption
# resource takes no custom handler and puts an empty AzureWebJobsStorage beside an identity; its storage resources ask the data plane,
# which is closed where keys are off and the network is private.
terraform {
  required_version = ">= 1.9"

  required_providers {
    azapi = {
      source  = "Azure/azapi"
      version = "~> 2.4"
    }
  }
}

provider "azapi" {
  subscription_id = var.subscription_id
}
