"""PodGroups and ProvisioningRequests: their form, and how they are read."""
