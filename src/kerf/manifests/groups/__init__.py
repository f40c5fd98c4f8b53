"""PodGroups, ProvisioningRequests and CapacityBuffers: their form, and how they are read."""
