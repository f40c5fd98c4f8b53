"""Tags of all that Kerf makes in AWS: by them it finds its own things again, and leaves alone all others.

The keys are Karpenter's, so its policies hold for Kerf, and a way back stays open. `kerf.dev/owned` is ours: what
Karpenter made for the same cluster has none.
"""

from collections.abc import Mapping

from kerf.clouds.aws.nodeclass.model import NODE_CLASS_LABEL, EC2NodeClass

EKS_CLUSTER = "eks:eks-cluster-name"
OWNED = "kerf.dev/owned"
"""Tag of launch templates and instance profiles that Kerf made; its value is `true`."""

Tag = dict[str, str]


def made_for(node_class: EC2NodeClass, cluster: str) -> dict[str, str]:
    """Tags of what is made for an EC2NodeClass, by key: its own, and over them those that say whose it is."""
    return {
        **dict(node_class.spec.tags),
        f"kubernetes.io/cluster/{cluster}": "owned",
        EKS_CLUSTER: cluster,
        NODE_CLASS_LABEL: node_class.name,
    }


def tag_list(tags: Mapping[str, str]) -> list[Tag]:
    """Tags as the APIs take them, by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def read_tags(raw: Mapping[str, object]) -> dict[str, str]:
    """The tags of a thing that was listed."""
    listed = raw.get("Tags") or ()
    return {tag["Key"]: tag["Value"] for tag in listed} if isinstance(listed, list | tuple) else {}
