"""Pods that do not exist and for which room is kept: the capacity that a window has ready before its pods come.

They are planned after all that wait, as pods of the least rank, and fewer of them the more of the window's own pods
hold or are about to get such room.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kerf.engine.decision import Decision
from kerf.engine.headroom.grants import Grants
from kerf.engine.headroom.windows.phases import Windows
from kerf.engine.place.devices import demand_of
from kerf.engine.place.shapes import Shape
from kerf.model.causes import RoomLimited
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.pods import Pod, PodDemand, PodSpec
from kerf.model.quantities import CPU, MEMORY
from kerf.model.uses import Use
from kerf.model.windows import OPEN, WARMING, CapacityWindow, WarmCapacity
from kerf.sharing.family import Family

_LAST_RANK = -1
_ROUNDING = 1e-9
"""Thirds that are taken one after the other leave nothing."""


def virtual_pods(
    windows: Windows, own: Mapping[str, list[Pod]], families: tuple[Family, ...], grants: Grants
) -> tuple[Pod, ...]:
    """The places that warming and open windows still need and are granted, by window, in the order of their manifests.

    `own` are the pods of each window that are on nodes or may come now.
    """
    found: list[Pod] = []
    for window in windows.windows:
        if window.warm and windows.turns[window.name].phase in (WARMING, OPEN):
            needed = still_needed(window, own.get(window.name, ()), families)
            for index, (warm, replicas) in enumerate(zip(window.warm, needed, strict=True)):
                kept = Placeholder(Keeper.WINDOW, window.name, warm.is_exclusive)
                specs = _granted(window, warm, replicas, grants)
                found += (_virtual(window, warm, kept, index, number, spec) for number, spec in enumerate(specs))
    return tuple(found)


def _granted(window: CapacityWindow, warm: WarmCapacity, replicas: int, grants: Grants) -> list[PodSpec]:
    """One spec for each replica that is granted: the namespaces of the window are charged one after the other."""
    specs: list[PodSpec] = []
    limited = None
    for namespace in window.namespaces or ("",):
        left = replicas - len(specs)
        if left > 0:
            granted = grants.grant(Use.WINDOW, _of_window(window), warm.pod, left, namespace)
            specs += [granted.spec] * granted.number
            limited = limited or granted.limited
    if limited is not None and len(specs) < replicas:
        grants.limited.append(replace(limited, wanted=replicas, granted=len(specs)))
    return specs


def _of_window(window: CapacityWindow) -> Placeholder:
    return Placeholder(Keeper.WINDOW, window.name)


def _virtual(
    window: CapacityWindow, warm: WarmCapacity, kept: Placeholder, index: int, number: int, spec: PodSpec
) -> Pod:
    name = kept.pod_name(index, number)
    held = replace(warm.pod, namespace=kept.namespace, name=name, spec=spec, created_s=window.created_s)
    return replace(held, queue_priority=_LAST_RANK, uid="")


def still_needed(window: CapacityWindow, own: Iterable[Pod], families: tuple[Family, ...]) -> list[int]:
    """By entry of `spec.warm`, how many replicas no pod of the window's own has taken.

    Pods take of the first entry that has any left, in parts of what one replica asks: of GPUs where the entry asks for
    some, else of cpu and memory. A replica of which a part is taken is needed no more.
    """
    left = [float(warm.replicas) for warm in window.warm]
    sizes = [_size(warm.pod, families) for warm in window.warm]
    for pod in own:
        asked = _size(pod, families)
        rest = 1.0
        for index, size in enumerate(sizes):
            times = _times(asked, size) * rest
            if times <= 0 or left[index] <= 0:
                continue
            taken = min(left[index], times)
            left[index] -= taken
            rest -= taken / (times / rest)
            if rest <= 0:
                break
    return [int(amount + _ROUNDING) for amount in left]


def _size(pod: Pod, families: tuple[Family, ...]) -> tuple[int, ...]:
    """Cards, MiB, percent of memory and of cores, in sums over its containers; without GPUs cpu and memory."""
    shape = Shape((pod,))
    for family in families:
        demand = demand_of(shape, family)
        if isinstance(demand, PodDemand) and not demand.is_empty:
            asked = [c.request for c in demand.containers if c.request is not None and not c.is_init]
            return (
                sum(r.count for r in asked),
                sum(r.count * r.memory_mib for r in asked),
                sum(r.count * r.memory_percent for r in asked if not r.memory_mib),
                sum(r.count * r.cores for r in asked),
            )
    requests = pod.spec.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _times(asked: tuple[int, ...], size: tuple[int, ...]) -> float:
    """How many of `size` a pod that asks so much takes; 0 where the two cannot be compared."""
    if len(asked) != len(size):
        return 0.0
    # Cards are counted only where nothing distinguishes a part of one from a whole one.
    ratios = [a / s for a, s in zip(asked[1:], size[1:], strict=True) if s > 0] if len(size) > 2 else []
    ratios = ratios or [a / s for a, s in zip(asked, size, strict=True) if s > 0]
    return max(ratios, default=0.0)


def warm_counts(window: CapacityWindow, decision: Decision) -> tuple[int, int]:
    """(asked, ready) replicas of a window: ready is what its pods hold, or what has its place on a node that is up."""
    asked = sum(warm.replicas for warm in window.warm)
    up = {node.name for node in decision.world.snapshot.nodes if node.is_initialized and node.node is not None}
    placed = [placement for placement in decision.placements if is_kept_by(window, placement.pod.pod)]
    missing = sum(is_kept_by(window, each.pod) for launch in decision.launches for each in launch.pods)
    missing += sum(is_kept_by(window, pod.key) for refusal in decision.refusals for pod in refusal.pods)
    missing += sum(placement.node not in up for placement in placed)
    limited = (note for note in decision.notes if isinstance(note, RoomLimited) and note.kept == _of_window(window))
    missing += sum(note.wanted - note.granted for note in limited)
    return asked, asked - missing


def is_kept_by(window: CapacityWindow, key: str) -> bool:
    """Whether a pod's `namespace/name` stands for room that the window keeps."""
    kept = Placeholder.of(key)
    return kept is not None and (kept.keeper, kept.name) == (Keeper.WINDOW, window.name)
