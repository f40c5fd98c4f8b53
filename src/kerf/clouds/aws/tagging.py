"""Tags of all that Kerf makes in AWS: by them it finds its own things again, and leaves alone all others.

The keys are Karpenter's, so its policies hold for Kerf, and a way back stays open. `kerf.dev/owned` is ours: what
Karpenter made for the same cluster has none.
"""

from collections.abc import Mapping

from kerf.clouds.aws.nodeclass.hashing import versioned
from kerf.clouds.aws.nodeclass.model import NODE_CLASS_LABEL, EC2NodeClass
from kerf.model.constraints import NODE_POOL
from kerf.model.nodeclaim import NodeClaim

EKS_CLUSTER = "eks:eks-cluster-name"
OWNED = "kerf.dev/owned"
"""Tag of launch templates and instance profiles that Kerf made; its value is `true`."""

NODE_CLAIM = "karpenter.sh/nodeclaim"
CLAIM_UID = "kerf.dev/claim-uid"
"""Tag of an instance: the uid of its claim, by which a launch is found again, whatever became of its reply."""
NODE_CLASS_HASH = "kerf.dev/nodeclass-hash"
"""Tag of an instance: version and digest of the EC2NodeClass that it was launched by; drift is judged against it."""

Tag = dict[str, str]


def made_for(node_class: EC2NodeClass, cluster: str) -> dict[str, str]:
    """Tags of what is made for an EC2NodeClass, by key: its own, and over them those that say whose it is."""
    return {
        **dict(node_class.spec.tags),
        cluster_tag(cluster): "owned",
        EKS_CLUSTER: cluster,
        NODE_CLASS_LABEL: node_class.name,
    }


def tag_list(tags: Mapping[str, str]) -> list[Tag]:
    """Tags as the APIs take them, by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def read_tags(raw: Mapping[str, object]) -> dict[str, str]:
    """The tags of a thing that was listed."""
    listed = raw.get("Tags") or ()
    tagged = listed if isinstance(listed, list | tuple) else ()
    return {tag["Key"]: tag.get("Value") or "" for tag in tagged if tag.get("Key")}


def cluster_tag(cluster: str) -> str:
    """The key whose value `owned` says that a resource lives and ends with the cluster."""
    return f"kubernetes.io/cluster/{cluster}"


def instance_tags(claim: NodeClaim, node_class: EC2NodeClass, cluster: str, digest: str) -> dict[str, str]:
    """The tags of a claim's instance and its volumes, all of them set when it is created.

    Karpenter's policy for tags after that allows a few names only.
    """
    named = {"Name": f"{claim.node_pool}/{claim.name}", **made_for(node_class, cluster)}
    of_claim = {NODE_POOL: claim.node_pool, NODE_CLAIM: claim.name, CLAIM_UID: claim.uid}
    return {**named, **of_claim, NODE_CLASS_HASH: versioned(digest)}


def of_cluster(cluster: str) -> list[dict[str, object]]:
    """The filters that take only instances which an autoscaler launched for this cluster."""
    return [
        {"Name": f"tag:{cluster_tag(cluster)}", "Values": ["owned"]},
        {"Name": "tag-key", "Values": [NODE_POOL]},
    ]
