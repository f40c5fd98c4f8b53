"""Room that is kept for pods that are not there: windows, runs of CronJobs, ProvisioningRequests."""
