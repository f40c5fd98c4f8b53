"""The embedded cluster: an API server, its controllers, schedulers, nodes and a cloud, all in virtual time."""
