"""The form of `kubelet` of an EC2NodeClass: what Karpenter passes on to a node's kubelet.

v1.14.0 states it in the CRD; v1.14.1 takes any field there and checks these in the controller. So a field that is not
named here is no error.
"""

import re
from typing import Any

from kerf.manifests.schema import (
    BOOLEAN,
    COUNT,
    DURATION,
    TEXT,
    WHOLE,
    ListOf,
    MapOf,
    Path,
    Record,
    Report,
    Scalar,
    is_quantity,
    one_of,
    whole,
)
from kerf.model.quantities import quantity

Object = dict[str, Any]
_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pid")
_PERCENT = re.compile(r"(?:[0-9]{1,2}(?:\.[0-9]{1,2})?|100(?:\.0{1,2})?)%", re.ASCII)


def _is_threshold(value: object) -> bool:
    """The CRD takes an empty, negative or zero quantity too, and kubelet does not start with it."""
    if not isinstance(value, str):
        return False
    return _PERCENT.fullmatch(value) is not None or (is_quantity("", value) and quantity(value) > 0)


def _is_amount(value: object) -> bool:
    return isinstance(value, str) and not value.startswith("-") and is_quantity("", value)


_THRESHOLDS = MapOf(Scalar("a quantity above 0 or a percentage such as 5%", _is_threshold), one_of(*_SIGNALS))
_RESERVED = MapOf(Scalar("a quantity that is not negative, as text", _is_amount), one_of(*_RESOURCES))
KUBELET = Record(
    {
        "clusterDNS": ListOf(TEXT),
        "cpuCFSQuota": BOOLEAN,
        **dict.fromkeys(("imageGCHighThresholdPercent", "imageGCLowThresholdPercent"), whole(0, 100)),
        **dict.fromkeys(("maxPods", "podsPerCore"), COUNT),
        "evictionMaxPodGracePeriod": WHOLE,
        **dict.fromkeys(("evictionHard", "evictionSoft"), _THRESHOLDS),
        "evictionSoftGracePeriod": MapOf(DURATION, one_of(*_SIGNALS)),
        **dict.fromkeys(("kubeReserved", "systemReserved"), _RESERVED),
    }
)


def check_kubelet(kubelet: Object, path: Path, report: Report) -> None:
    """The rules between fields, where each of them has its form."""
    high, low = kubelet.get("imageGCHighThresholdPercent"), kubelet.get("imageGCLowThresholdPercent")
    if high is not None and low is not None and high <= low:
        expected = f"more than imageGCLowThresholdPercent, which is {low}"
        report.problem((*path, "imageGCHighThresholdPercent"), expected, high)
    soft, grace = kubelet.get("evictionSoft") or {}, kubelet.get("evictionSoftGracePeriod") or {}
    for signal in soft:
        if signal not in grace:
            report.problem((*path, "evictionSoftGracePeriod", signal), "a period for this signal of evictionSoft", None)
    for signal in grace:
        if signal not in soft:
            report.problem((*path, "evictionSoft", signal), "a threshold for this evictionSoftGracePeriod", None)
