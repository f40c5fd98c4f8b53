"""ClusterDump: how a cluster is written to one file, and read again."""
