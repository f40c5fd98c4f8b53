"""Pods that ask for less: the largest request that the nearest type has room for."""

from collections.abc import Iterable
from dataclasses import replace

from kerf.engine.explain.hints.situation import Advice, Situation, changing_pod
from kerf.engine.place.shapes import Shape
from kerf.model.causes import Insufficient
from kerf.model.plan import Misfit
from kerf.model.pods import Container, PodSpec
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, quantity_text

_SIZES = {CPU: 1, MEMORY: 1 << 20, EPHEMERAL_STORAGE: 1 << 20}
"""Resources of which less may do, and to what a request is rounded: a workload without its GPU is another one."""


def ask_less(misfit: Misfit, shape: Shape, situation: Situation) -> Advice | None:
    """The requests with which the pod would fit on the type; None where no smaller request does."""
    cause, spec = misfit.cause, shape.spec
    # What is stated for the pod as a whole is not what its containers ask.
    if not isinstance(cause, Insufficient) or spec.pod_requests:
        return None
    changed: PodSpec | None = spec
    for short in cause.shortages:
        unit = _SIZES.get(short.resource)
        changed = None if unit is None or changed is None else _within(changed, short.resource, short.free, unit)
    if changed is None:
        return None
    lists = {
        "containers": _less(spec.containers, changed.containers),
        "initContainers": _less(spec.init_containers, changed.init_containers),
    }
    texts = [
        f"{amount} {resource} of container {name}"
        for entries in lists.values()
        for name, asked in entries.items()
        for resource, amount in sorted(asked.items())
    ]
    change: dict[str, object] = {
        key: [{"name": name, "resources": {"requests": asked}} for name, asked in entries.items()]
        for key, entries in lists.items()
        if entries
    }
    return changing_pod(
        f"{' and '.join(texts)} is the most that fits in NodePool {misfit.target.node_pool}",
        shape,
        changed,
        change,
        situation,
    )


def _within(spec: PodSpec, resource: str, free: int, unit: int) -> PodSpec | None:
    """The spec with so much less in its largest containers that it fits; None where there is none to take it from."""
    most = free // unit * unit
    for _ in range(1 + len(spec.init_containers)):
        running = sum(each.requests.get(resource, 0) for each in (*spec.containers, *_sidecars(spec)))
        excess = running + spec.overhead.get(resource, 0) - most
        if excess > 0:
            spec = replace(spec, containers=_cut(spec.containers, resource, excess))
        else:
            spec = replace(spec, init_containers=_cut(spec.init_containers, resource, spec.requests[resource] - most))
        asked = [each.requests.get(resource, 0) for each in (*spec.containers, *spec.init_containers)]
        if min(asked) < 0 or not any(asked):
            return None
        if spec.requests.get(resource, 0) <= most:
            return spec
    return None


def _sidecars(spec: PodSpec) -> Iterable[Container]:
    return (each for each in spec.init_containers if each.is_sidecar)


def _cut(containers: tuple[Container, ...], resource: str, excess: int) -> tuple[Container, ...]:
    """The same with so much less in the one that asks most and is no sidecar."""
    best = max(
        (at for at, each in enumerate(containers) if not each.is_sidecar),
        key=lambda at: (containers[at].requests.get(resource, 0), -at),
        default=None,
    )
    if best is None:
        return containers
    held = containers[best]
    less = held.requests.replaced({resource: held.requests.get(resource, 0) - excess})
    return (*containers[:best], replace(held, requests=less), *containers[best + 1 :])


def _less(before: tuple[Container, ...], after: tuple[Container, ...]) -> dict[str, dict[str, str]]:
    """The requests that changed, by the names of their containers."""
    found = {}
    for held, changed in zip(before, after, strict=True):
        asked = {
            name: quantity_text(name, amount)
            for name, amount in changed.requests.items()
            if amount != held.requests.get(name, 0)
        }
        if asked:
            found[held.name] = asked
    return found
