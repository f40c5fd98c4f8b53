"""The digest of what an EC2NodeClass makes of a node: a node with another one has drifted.

Karpenter writes its own digest, made by a Go library that nothing else computes, under the same annotations, with a
version. Digests of different versions say nothing about each other. So ours has a version word of its own, and nodes
that come from Karpenter do not drift on the day of the switch.
"""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

from kerf.clouds.aws.nodeclass.model import EC2NodeClass

HASH_ANNOTATION = "karpenter.k8s.aws/ec2nodeclass-hash"
HASH_VERSION_ANNOTATION = "karpenter.k8s.aws/ec2nodeclass-hash-version"
HASH_VERSION = "kerf-v1"
"""Goes up when the digest of an unchanged EC2NodeClass changes."""
_LEFT_OUT = frozenset(
    {
        "ami_selector_terms",
        "subnet_selector_terms",
        "security_group_selector_terms",
        "capacity_reservation_selector_terms",
        "placement_group_selector",
        "ami_family",
        "ip_prefix_count",
    }
)
"""What selects among things of AWS drifts by what it selects; `amiFamily` counts as what it comes to."""


def digest(node_class: EC2NodeClass, ca_bundle: str = "") -> str:
    """Sixteen hexadecimal digits of the canonical spec.

    Neither the order of lists nor a field at its default counts, so a field that a later version adds changes none.
    """
    canonical = {"family": node_class.family, "caBundle": ca_bundle, "spec": _filled(node_class.spec, _LEFT_OUT)}
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def versioned(digest: str) -> str:
    """A digest with its version in one text, as an instance carries it."""
    return f"{HASH_VERSION}-{digest}"


def _filled(value: Any, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults; lists in the order of their texts."""
    found = {}
    for each in fields(value):
        held = getattr(value, each.name)
        if each.name not in left_out and held != each.default:
            found[each.name] = _plain(held)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return sorted(map(_plain, value), key=lambda item: json.dumps(item, sort_keys=True))
    return _filled(value) if is_dataclass(value) else value
