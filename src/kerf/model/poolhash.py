"""The digest of what a NodePool makes of a node: a node with another one has drifted.

Karpenter writes its own digest, made by a Go library that nothing else computes, under the same annotations, with a
version. Digests of different versions say nothing about each other. So ours has a version word of its own: neither
program takes the nodes of the other for drifted on the day of a switch, in either direction.
"""

import hashlib
import json
from collections.abc import Mapping

from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool

HASH, HASH_VERSION = "karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"
"""Annotations of pools and of their claims."""
VERSION = "kerf-v1"
"""Goes up when the digest of an unchanged pool changes."""


def stamp(pool: NodePool) -> Mapping[str, str]:
    """The annotations with the digest of the pool's template.

    As in Karpenter the requirements are no part of it, for these are compared with the node's labels; and neither the
    order of taints nor a field that is empty counts.
    """
    template = {
        "labels": dict(pool.labels),
        "annotations": dict(pool.annotations),
        "taints": sorted(map(str, pool.taints)),
        "startupTaints": sorted(map(str, pool.startup_taints)),
        "nodeClass": [pool.node_class.group, pool.node_class.kind, pool.node_class.name],
        "expireAfter": pool.expire_after_s,
        "terminationGracePeriod": pool.termination_grace_period_s,
    }
    text = json.dumps({key: value for key, value in template.items() if value}, sort_keys=True)
    return {HASH: hashlib.sha256(text.encode()).hexdigest()[:16], HASH_VERSION: VERSION}


def is_stamped(annotations: Mapping[str, str]) -> bool:
    """Whether there is a digest that can be compared."""
    return bool(annotations.get(HASH)) and annotations.get(HASH_VERSION) == VERSION


def has_drifted(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether the claim was made of another template; False where its digest has another version."""
    return is_stamped(claim.annotations) and claim.annotations[HASH] != stamp(pool)[HASH]
