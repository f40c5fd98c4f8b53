"""Hints on limits where groups compete: what one of them lacks is not all that the limit has to allow.

Under a higher limit a group that was left out comes back and takes what another was promised. So the figure is that of
the try with all groups, and it is only said where deciding again under it places the pod.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kerf.engine.decision import Decision
from kerf.engine.explain.hints.tries import Tries
from kerf.model.nodepool import NodePool
from kerf.model.plan import Patch, Unplaced
from kerf.model.quantities import Resources

Again = Callable[[NodePool], Decision]
"""The decision, groups and all, with this pool in the place of the one of its name."""


def with_limits_for_all(
    unplaced: Iterable[Unplaced],
    everyone: Iterable[Unplaced],
    pools: Mapping[str, NodePool],
    again: Again,
    tries: Tries,
    expected: int,
) -> tuple[Unplaced, ...]:
    """The same with hints on limits that hold; `everyone` is what was refused before any group was left out.

    `expected` is what a decision is likely to cost, as its `work`. Cost: a decision, which is a try, for each pool
    whose limit is in the way.
    """
    advised = {each.patch.name: each for each in everyone if each.patch is not None and limits_of(each.patch)}
    served: dict[str, frozenset[str]] = {}

    def held(each: Unplaced) -> Unplaced:
        if each.patch is None or not limits_of(each.patch):
            return each
        if each.cause is not each.innermost and not is_of_limits(each.patch):
            # With what else such a patch changes, it was decided again for the group.
            return each
        best = advised.get(each.patch.name, each)
        assert best.patch is not None
        pool, raised = pools[best.patch.name], limits_of(best.patch)
        if best.patch.name not in served:
            limits = (pool.limits or Resources()).replaced(raised)
            raised_pool = replace(pool, limits=limits)
            served[best.patch.name] = frozenset()
            if tries.take_decision(expected):
                made = again(raised_pool)
                tries.cost(made.work, expected)
                served[best.patch.name] = _served(made)
        if each.pod in served[best.patch.name]:
            return replace(each, hint=best.hint, patch=best.patch)
        return replace(each, hint=f"raise limit {', '.join(sorted(raised))} of NodePool {pool.name}", patch=None)

    return tuple(map(held, unplaced))


def is_of_limits(patch: Patch) -> bool:
    """Whether limits of a NodePool are all that it changes."""
    spec = patch.change.get("spec")
    return isinstance(spec, Mapping) and set(spec) == {"limits"}


def limits_of(patch: Patch) -> Mapping[str, int]:
    """The limits that a patch of a NodePool sets; empty for every other patch."""
    spec = patch.change.get("spec")
    limits = spec.get("limits") if patch.kind == "NodePool" and isinstance(spec, Mapping) else None
    return Resources.parse(limits) if isinstance(limits, Mapping) else {}


def _served(made: Decision) -> frozenset[str]:
    bought = {placed.pod for launch in made.launches for placed in launch.pods}
    return frozenset(bought | {placement.pod.pod for placement in made.placements})
