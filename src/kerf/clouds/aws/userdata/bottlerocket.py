"""Bottlerocket: settings in TOML; ours overwrite the user's, and all others of the user stay.

Settings of version 1.46 (2026-08). Bottlerocket knows no podsPerCore.
"""

import re
import tomllib
from typing import Any

from kerf.clouds.aws.nodeclass.model import Pairs
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import INVALID_USER_DATA, NodeFacts
from kerf.clouds.aws.userdata.toml import toml_text

_DIRECTORIES = ("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
_BINDS_BY_ITSELF = (1, 46)
"""The version from which `bind` without directories takes these three."""
_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})\.[0-9]", re.ASCII)
_MOUNT = "000-mount-instance-storage"

Object = dict[str, Any]


def render(facts: NodeFacts) -> str:
    """The settings. Raises Unusable on TOML that cannot be read."""
    document = _custom(facts.custom)
    settings = _table(document, "settings")
    kubernetes = _table(settings, "kubernetes")
    kubernetes.update(_kubernetes(facts))
    labels = _table(kubernetes, "node-labels")
    labels.update({key: facts.labels[key] for key in sorted(facts.labels)})
    if not labels:
        del kubernetes["node-labels"]
    if facts.is_raid0:
        _table(settings, "bootstrap-commands")[_MOUNT] = _mount(facts.image_version)
    return toml_text(document)


def _custom(text: str) -> Object:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise Unusable(INVALID_USER_DATA, f"spec.userData: expected TOML: {error}") from error
    except RecursionError:
        raise Unusable(INVALID_USER_DATA, "spec.userData: expected TOML that is not nested so deep") from None


def _table(parent: Object, name: str) -> Object:
    found = parent.setdefault(name, {})
    if not isinstance(found, dict):
        raise Unusable(INVALID_USER_DATA, f"spec.userData: expected a table {name}, got {type(found).__name__}")
    return found


def _kubernetes(facts: NodeFacts) -> Object:
    kubelet, cluster = facts.kubelet, facts.cluster
    maps: dict[str, Pairs] = {
        "system-reserved": kubelet.system_reserved,
        "kube-reserved": kubelet.kube_reserved,
        "eviction-hard": kubelet.eviction_hard,
        "eviction-soft": kubelet.eviction_soft,
        "eviction-soft-grace-period": kubelet.eviction_soft_grace_period,
    }
    percents = {
        "image-gc-high-threshold-percent": kubelet.image_gc_high_threshold_percent,
        "image-gc-low-threshold-percent": kubelet.image_gc_low_threshold_percent,
    }
    plain = {
        "cluster-certificate": cluster.ca_bundle or None,
        "cluster-dns-ip": kubelet.cluster_dns[0] if kubelet.cluster_dns else None,
        "max-pods": kubelet.max_pods,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
        # Bottlerocket takes these two as text.
        **{name: None if value is None else str(value) for name, value in percents.items()},
    }
    return {
        "cluster-name": cluster.name,
        "api-server": cluster.endpoint,
        **{name: value for name, value in plain.items() if value is not None},
        **{name: dict(pairs) for name, pairs in maps.items() if pairs},
        "node-taints": _taints(facts),
    }


def _taints(facts: NodeFacts) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for taint in facts.taints:
        found.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    return found


def _mount(version: str) -> Object:
    found = _VERSION.match(version)
    knows = version == "latest" or (found is not None and (int(found[1]), int(found[2])) >= _BINDS_BY_ITSELF)
    bind = ["apiclient", "ephemeral-storage", "bind", *([] if knows else ["--dirs", *_DIRECTORIES])]
    init = ["apiclient", "ephemeral-storage", "init"]
    return {"commands": [init, bind], "mode": "always", "essential": True}


def image_version(alias_version: str, image_name: str) -> str:
    """The version of an image: that of the alias, else the one in its name, as in `bottlerocket-…-x86_64-v1.46.0-…`."""
    if alias_version:
        return alias_version
    return next((part for part in image_name.split("-") if part.startswith("v") and "." in part), "")
