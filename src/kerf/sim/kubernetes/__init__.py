"""The in-memory API, its scheduler, kubelets and workload controllers."""
