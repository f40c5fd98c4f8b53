"""PodMetrics and NodeMetrics of metrics.k8s.io to model values.

Usage is for advice only, and metrics can be wrong: a kubelet that has just started, a clock that was set, an
adapter in the metrics server's place. So nothing here is an error. What cannot be true is left out, with a doubt that
names its place, and the rest counts.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kerf.manifests.schema import QUANTITY_HINT, Path, Report, is_quantity
from kerf.model.quantities import CPU, MEMORY, quantity_of
from kerf.model.times import instant_s
from kerf.model.usage import ContainerUsage, NodeUsage, PodUsage, Usage

KINDS = frozenset({"PodMetrics", "NodeMetrics"})
_MOST = {CPU: 10**9, MEMORY: 2**53}
"""A million cores and eight pebibytes: no container and no node has more."""
# Go's time.Duration as metav1.Duration writes it: 17.1s, 1m0s, 1m30.5s.
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h))+", re.ASCII)
_PART = re.compile(r"([\d.]+)(ns|us|µs|ms|s|m|h)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def pod_usage_of(raw: dict[str, Any], report: Report) -> PodUsage | None:
    """A PodMetrics; containers that cannot be true are left out, and None is what has none left."""
    name, window = _name(raw, report), _window(raw, report)
    if name is None or window is None:
        return None
    containers = tuple(sorted(_containers(raw.get("containers"), report), key=lambda container: container.name))
    namespace = raw["metadata"].get("namespace")
    if not containers:
        return None
    return PodUsage(namespace if isinstance(namespace, str) and namespace else "default", name, *window, containers)


def node_usage_of(raw: dict[str, Any], report: Report) -> NodeUsage | None:
    """A NodeMetrics; None is one that cannot be true."""
    name, window = _name(raw, report), _window(raw, report)
    used = _used(raw.get("usage"), ("usage",), report)
    return None if name is None or window is None or used is None else NodeUsage(name, *window, *used)


def newest(samples: Iterable[PodUsage | NodeUsage]) -> Usage:
    """The last sample of each pod and node of samples in `age_order`."""
    pods: dict[str, PodUsage] = {}
    nodes: dict[str, NodeUsage] = {}
    for sample in samples:
        if isinstance(sample, PodUsage):
            pods[f"{sample.namespace}/{sample.name}"] = sample
        else:
            nodes[sample.name] = sample
    return Usage(dict(sorted(pods.items())), dict(sorted(nodes.items())))


def age_order(sample: PodUsage | NodeUsage) -> tuple[float, str, str, int, int]:
    """From the oldest on; of two of one pod and one instant the larger is the later, whatever the order of input."""
    namespace = sample.namespace if isinstance(sample, PodUsage) else ""
    return sample.at_s, namespace, sample.name, sample.cpu_millis, sample.memory_bytes


def _name(raw: dict[str, Any], report: Report) -> str | None:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(name, str) and name:
        return name
    report.doubt(("metadata", "name"), "text that is not empty", name)
    return None


def _window(raw: dict[str, Any], report: Report) -> tuple[float, float] | None:
    """When the window ended, and how many seconds it was."""
    at, window = raw.get("timestamp"), raw.get("window")
    try:
        at_s = instant_s(at) if isinstance(at, str) else None
    except ValueError:
        at_s = None
    if at_s is None:
        report.doubt(("timestamp",), "an RFC 3339 instant such as 2026-01-05T07:00:00Z", at)
    window_s = _seconds(window) if isinstance(window, str) else 0.0
    if window_s <= 0:
        report.doubt(("window",), "a duration above 0 such as 17.1s", window)
    if at_s is None or window_s <= 0:
        return None
    return at_s, window_s


def _seconds(duration: str) -> float:
    """0 for what is no duration."""
    if _DURATION.fullmatch(duration) is None:
        return 0.0
    return sum((float(number) * _UNIT_S[unit] for number, unit in _PART.findall(duration)), 0.0)


def _containers(raws: Any, report: Report) -> Iterator[ContainerUsage]:
    if not isinstance(raws, list):
        report.doubt(("containers",), "a list", raws)
        return
    names = [raw.get("name") if isinstance(raw, dict) else None for raw in raws]
    for index, (name, raw) in enumerate(zip(names, raws, strict=True)):
        path: Path = ("containers", index)
        if not isinstance(name, str) or not name:
            report.doubt((*path, "name"), "text that is not empty", name)
        elif names.count(name) > 1:
            # Which of them is meant is not known.
            report.doubt((*path, "name"), "every container once", name)
        else:
            used = _used(raw.get("usage"), (*path, "usage"), report)
            if used is not None:
                yield ContainerUsage(name, *used)


def _used(raw: Any, path: Path, report: Report) -> tuple[int, int] | None:
    """cpu in milli and memory in bytes."""
    if not isinstance(raw, dict):
        report.doubt(path, "cpu and memory", raw)
        return None
    amounts = [_amount(name, raw.get(name), (*path, name), report) for name in (CPU, MEMORY)]
    cpu, memory = amounts
    return None if cpu is None or memory is None else (cpu, memory)


def _amount(name: str, raw: Any, path: Path, report: Report) -> int | None:
    if raw is None or not is_quantity(name, raw):
        report.doubt(path, "a quantity", raw, QUANTITY_HINT)
        return None
    amount = quantity_of(name, raw)
    if 0 <= amount <= _MOST[name]:
        return amount
    report.doubt(path, "a quantity that is not negative" if amount < 0 else "a quantity that a machine can have", raw)
    return None
