"""What the containers of a workload should ask for, from what they used, with the evidence.

A request is what kube-scheduler and every autoscaler count, so advice errs on the large side: cpu can be taken away
for a while, and so a percentile will do; memory cannot, and who exceeds it is killed, so the peak counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kerf.engine.study.usage.history import History
from kerf.model.pods import Container
from kerf.model.quantities import CPU, MEMORY, MIB, quantity_text
from kerf.sharing.hami.config import HamiConfig

CPU_PERCENTILE, CPU_MARGIN_PERCENT, PEAK_MARGIN_PERCENT = 95, 15, 20
"""The margin of cpu is VPA's default (`--recommendation-margin-fraction` 0.15, vertical-pod-autoscaler/docs/flags.md);
its target is the p90 and its upper bound the p95. The margin of memory is what VPA adds after a container was killed
for want of memory (`--oom-bump-up-ratio` 1.2, vertical-pod-autoscaler/docs/features.md)."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One container and resource, in base units (`gpumem`: MiB). `advised` None: no sample, so no advice.

    `request` and `limit` are today's; None where there is none.
    """

    container: str
    resource: str
    samples: int = 0
    p50: int = 0
    p95: int = 0
    peak: int = 0
    request: int | None = None
    limit: int | None = None
    advised: int | None = None


def advised_requests(
    history: History, containers: Sequence[Container], gpu_memory: str = ""
) -> tuple[Recommendation, ...]:
    """A row for cpu and memory of each container, and for GPU memory where there are samples of it.

    `gpu_memory` is the resource by which the pod asks for it; empty: it does not, and gets no advice on it.
    """
    rows = []
    for container in containers:
        for resource in (CPU, MEMORY, *((gpu_memory,) if gpu_memory else ())):
            row = _recommendation(history, container, resource)
            if row.samples or resource != gpu_memory:
                rows.append(row)
    return tuple(rows)


def gpu_memory_of(containers: Sequence[Container], config: HamiConfig) -> str:
    """The resource in which these containers ask HAMi for GPU memory; empty where they ask HAMi for nothing."""
    asked = {name for container in containers for name in (*container.requests, *container.limits)}
    return config.memory if asked & {config.memory, config.memory_percent, config.cores} else ""


def _recommendation(history: History, container: Container, resource: str) -> Recommendation:
    request, limit = container.requests.get(resource), container.limits.get(resource)
    sketch = history.sketches.get((container.name, resource))
    if sketch is None or not sketch.count:
        return Recommendation(container.name, resource, request=request, limit=limit)
    if not _was_seen(history, container):
        return Recommendation(container.name, resource, sketch.count, request=request, limit=limit)
    p95, peak = sketch.percentile(CPU_PERCENTILE), sketch.peak
    if resource == CPU:
        advised = _with_margin(p95, CPU_MARGIN_PERCENT)
    else:
        unit = MIB if resource == MEMORY else 1
        advised = -(-_with_margin(peak, PEAK_MARGIN_PERCENT) // unit) * unit
    # A request of nothing is what this is to fix, also for a container that only slept.
    least = MIB if resource == MEMORY else 1
    return Recommendation(
        container.name, resource, sketch.count, sketch.percentile(50), p95, peak, request, limit, max(advised, least)
    )


def _was_seen(history: History, container: Container) -> bool:
    """Whether any sample of it is above zero: what only ever shows zeros was not measured."""
    mine = (sketch for (name, _), sketch in history.sketches.items() if name == container.name)
    return any(sketch.count and sketch.peak for sketch in mine)


def _with_margin(amount: int, percent: int) -> int:
    return -(-amount * (100 + percent) // 100)


_TEMPLATES = {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}
_TEMPLATE = ("spec", "template")


def requests_patch(
    kind: str, rows: Sequence[Recommendation], containers: Sequence[Container], config: HamiConfig
) -> dict[str, Any]:
    """A strategic merge patch that sets the advised requests; limits only where a request would exceed them.

    Sidecars are among `containers`, and stand among the init containers of the patch. HAMi reads limits, so GPU memory
    is one; a percentage of it beside that would be refused, and is taken away.
    """
    in_percent = {c.name for c in containers if config.memory_percent in {*c.requests, *c.limits}}
    changed: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.advised is None:
            continue
        resources = changed.setdefault(row.container, {})
        text = quantity_text(row.resource, row.advised)
        if row.resource == config.memory:
            limits = resources.setdefault("limits", {})
            limits[row.resource] = text
            if row.container in in_percent:
                limits[config.memory_percent] = None
            continue
        resources.setdefault("requests", {})[row.resource] = text
        if row.limit is not None and row.limit < row.advised:
            resources.setdefault("limits", {})[row.resource] = text
    sidecars = {each.name for each in containers if each.is_sidecar}
    spec: dict[str, list[dict[str, Any]]] = {}
    for name, resources in changed.items():
        listed = spec.setdefault("initContainers" if name in sidecars else "containers", [])
        listed.append({"name": name, "resources": resources})
    patch: dict[str, Any] = {"spec": spec or {"containers": []}}
    for step in reversed(_TEMPLATES.get(kind, _TEMPLATE)):
        patch = {step: patch}
    return patch
