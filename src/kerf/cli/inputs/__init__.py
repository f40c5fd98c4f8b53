"""What commands read: files, a live cluster, a dump, Prometheus, the leader."""
