"""Flags of kubelet, for images whose bootstrap script takes them: AL2 and Windows."""

import re

from kerf.clouds.aws.nodeclass.model import Pairs
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import INVALID_USER_DATA, NodeFacts

_UNSAFE = re.compile(r"""['"`$\\\x00-\x1f]""")


def kubelet_flags(facts: NodeFacts) -> str:
    """All flags in one text, in a fixed order. Raises Unusable where a value could end its quotes."""
    kubelet = facts.kubelet
    texts = {
        "node-labels": _joined(tuple(sorted(facts.labels.items())), "="),
        "register-with-taints": ",".join(map(str, facts.taints)),
        "system-reserved": _joined(kubelet.system_reserved, "="),
        "kube-reserved": _joined(kubelet.kube_reserved, "="),
        "eviction-hard": _joined(kubelet.eviction_hard, "<"),
        "eviction-soft": _joined(kubelet.eviction_soft, "<"),
        "eviction-soft-grace-period": _joined(kubelet.eviction_soft_grace_period, "="),
    }
    plain = {
        "max-pods": kubelet.max_pods,
        "pods-per-core": kubelet.pods_per_core,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold": kubelet.image_gc_high_threshold_percent,
        "image-gc-low-threshold": kubelet.image_gc_low_threshold_percent,
        "cpu-cfs-quota": None if kubelet.cpu_cfs_quota is None else str(kubelet.cpu_cfs_quota).lower(),
    }
    quoted = [f'--{name}="{safe(text)}"' for name, text in texts.items() if text]
    return " ".join([*quoted, *(f"--{name}={value}" for name, value in plain.items() if value is not None)])


def safe(text: str) -> str:
    """The text, which stays one word between quotes. Raises Unusable."""
    if _UNSAFE.search(text) is not None:
        expected = "expected a value without quotes, $, backslashes and control characters"
        raise Unusable(INVALID_USER_DATA, f"{expected}, got {text[:80]!r}")
    return text


def _joined(pairs: Pairs, sign: str) -> str:
    return ",".join(f"{name}{sign}{value}" for name, value in pairs)
