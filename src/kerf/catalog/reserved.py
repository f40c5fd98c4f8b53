"""What kubelet reserves for itself, by the rule that EKS, ACK and other managed Kubernetes services share."""


def reserved_cpu_milli(vcpu: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the third and fourth, 0.25 % of the others; rounded down."""
    in_hundredths = 6000 + (1000 if vcpu > 1 else 0) + 500 * min(max(vcpu - 2, 0), 2) + 250 * max(vcpu - 4, 0)
    return in_hundredths // 100


def reserved_memory_mib(pods: int) -> int:
    """11 MiB a pod and 255 MiB."""
    return 11 * pods + 255
