"""EC2NodeClass of `karpenter.k8s.aws/v1`: what it says, whether it can be used, and its status."""
