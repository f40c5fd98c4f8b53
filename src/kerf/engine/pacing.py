"""How many nodes may be launched at once: by a pool (`kerf.dev/max-launches-per-minute`), a bucket that refills with
time; and of a type whose last node failed in the pool, one.

What is left of it follows from when the claims that are there were created, so a restart forgets nothing. A plan
is made as if there were no pace, and then cut: with fewer nodes to choose from it would buy other ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.following import Bought
from kerf.engine.decision import Refusal
from kerf.engine.place.shapes import queue_order
from kerf.model.causes import Name, Paced
from kerf.model.groups import GroupKey, group_of
from kerf.model.market import TriedAlone
from kerf.model.plan import Launch, Stage
from kerf.model.snapshot import ClusterSnapshot

_MINUTE_MS = 60_000
"""What one launch takes of a bucket; each millisecond gives back as much as launches are allowed a minute."""


def left(created_s: Iterable[float], per_minute: int, now_s: float) -> int:
    """What is in the bucket, in launches times 60,000; below zero where a group has overdrawn it.

    It holds a minute's launches when full. Cost: claims x log(claims).
    """
    full = per_minute * _MINUTE_MS
    now_ms = _ms(now_s)
    level, last_ms = full, 0
    for at_ms in sorted(min(_ms(each), now_ms) for each in created_s):
        level = min(full, level + (at_ms - last_ms) * per_minute) - _MINUTE_MS
        last_ms = at_ms
    return min(full, level + (now_ms - last_ms) * per_minute)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


@dataclass(frozen=True)
class Pacing:
    """What of a plan may be launched now; `bought` of the launches for pods, in their order, which are the first.

    `refusals` are the pods of the others, `floors` the pools whose floor must wait.
    """

    launches: tuple[Launch, ...]
    bought: tuple[Bought, ...]
    refusals: tuple[Refusal, ...] = ()
    floors: tuple[Paced | TriedAlone, ...] = ()


def paced(
    launches: tuple[Launch, ...],
    bought: Sequence[Bought],
    snapshot: ClusterSnapshot,
    probed: Collection[tuple[str, str]] = (),
) -> Pacing:
    """The launches that may go now: first those whose first pod is first in the queue, last those without pods.

    What holds pods of one group goes whole or not at all, and may overdraw the bucket: it waits for the first launch
    that it takes, not for the last. Of each (pool, type) that is `probed` one unit goes.
    """
    levels = _levels(snapshot, {launch.node_pool for launch in launches})
    if not levels and not probed:
        return Pacing(launches, tuple(bought))
    kinds = [(launch.node_pool, launch.offering.instance_type) for launch in launches]
    if not levels and not any(kind in probed for kind in kinds):
        return Pacing(launches, tuple(bought))
    refusals: list[Refusal] = []
    floors: dict[str, Paced | TriedAlone] = {}
    going: list[int] = []
    tried: set[tuple[str, str]] = set()
    for unit in _units(bought, len(launches)):
        pools = [launches[number].node_pool for number in unit]
        late = next((pool for pool in pools if pool in levels and levels[pool][0] < _MINUTE_MS), None)
        twice = next((kinds[number] for number in unit if kinds[number] in tried), None)
        if late is None and twice is None:
            going += unit
            tried.update(kinds[number] for number in unit if kinds[number] in probed)
            for pool in pools:
                if pool in levels:
                    levels[pool] = (levels[pool][0] - _MINUTE_MS, levels[pool][1])
            continue
        cause = _paced(late, *levels[late]) if late is not None else _alone(*(twice or ("", "")))
        waiting = tuple(pod for number in unit if number < len(bought) for pod in bought[number].pods)
        if waiting:
            refusals.append(Refusal(waiting, Stage.LIMITS, cause))
        else:
            floors.setdefault(cause.pool, cause)
    going.sort()
    kept = tuple(replace(launches[at], name=f"launch-{number}") for number, at in enumerate(going))
    nodes = tuple(bought[at] for at in going if at < len(bought))
    return Pacing(kept, nodes, tuple(refusals), tuple(floors[name] for name in sorted(floors)))


def launches_left(snapshot: ClusterSnapshot, pools: Iterable[str]) -> dict[str, tuple[int, int]]:
    """By pool with a pace, (whole launches that it may make now, launches a minute)."""
    return {name: (max(0, level) // _MINUTE_MS, pace) for name, (level, pace) in _levels(snapshot, pools).items()}


def _levels(snapshot: ClusterSnapshot, pools: Iterable[str]) -> dict[str, tuple[int, int]]:
    """By pool with a pace, (what is left, launches a minute)."""
    found = ((name, snapshot.pool(name)) for name in pools)
    wanted = {name: pool.bounds.max_launches for name, pool in found if pool is not None}
    paces = {name: pace for name, pace in wanted.items() if pace is not None}
    if not paces:
        return {}
    created: Mapping[str, list[float]] = {name: [] for name in paces}
    for node in snapshot.nodes:
        if node.claim is not None and node.claim.node_pool in created:
            created[node.claim.node_pool].append(node.claim.created_s)
    return {name: (left(created[name], pace, snapshot.taken_at_s), pace) for name, pace in paces.items()}


def _units(bought: Sequence[Bought], launches: int) -> list[list[int]]:
    """What goes together, in the order of the queue; launches without pods, which are for floors, last."""
    first_of: dict[GroupKey, int] = {}
    joined = list(range(len(bought)))

    def root(number: int) -> int:
        while joined[number] != number:
            number = joined[number]
        return number

    for number, node in enumerate(bought):
        for pod in node.pods:
            key = group_of(pod)
            if key is not None:
                one, other = sorted((root(number), root(first_of.setdefault(key, number))))
                joined[other] = one
    units: dict[int, list[int]] = {}
    for number in range(len(bought)):
        units.setdefault(root(number), []).append(number)
    in_turn = sorted(
        units.values(), key=lambda unit: min(queue_order(p) for number in unit for p in bought[number].pods)
    )
    return [*in_turn, *([number] for number in range(len(bought), launches))]


def _alone(pool: str, instance_type: str) -> TriedAlone:
    return TriedAlone(Name(pool), Name(instance_type))


def _paced(pool: str, level: int, pace: int) -> Paced:
    return Paced(Name(pool), pace, -(-(_MINUTE_MS - level) // (pace * 1000)))
