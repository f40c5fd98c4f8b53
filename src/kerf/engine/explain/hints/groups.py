"""Advice on limits where groups compete: what one of them lacks is not all that the limit has to allow.

Under a higher limit a group that was left out comes back and takes what another was promised. So the figure is that
of the plan with all groups, and it is only said where planning again under it places the pod.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from kerf.model.nodepool import NodePool
from kerf.model.plan import Patch, Plan, Unplaced
from kerf.model.quantities import Resources

Again = Callable[[tuple[NodePool, ...]], Plan]
"""The plan, groups and all, with these pools in the place of those of their names."""


def with_limits_for_all(made: Plan, everyone: Plan, pools: Mapping[str, NodePool], again: Again) -> Plan:
    """`made` with advice on limits that holds; `everyone` is the plan in which no group is left out.

    Cost: a plan for each pool whose limit is in the way.
    """
    advised = {each.patch.name: each for each in everyone.unplaced if each.patch is not None and _limits(each.patch)}
    served: dict[Patch, frozenset[str]] = {}

    def held(each: Unplaced) -> Unplaced:
        if each.patch is None or not _limits(each.patch):
            return each
        best = advised.get(each.patch.name, each)
        assert best.patch is not None
        pool, raised = pools[best.patch.name], _limits(best.patch)
        if best.patch not in served:
            limits = (pool.limits or Resources()).replaced(raised)
            served[best.patch] = _served(again((replace(pool, limits=limits),)))
        if each.pod in served[best.patch]:
            return replace(each, hint=best.hint, patch=best.patch)
        return replace(each, hint=f"raise limit {', '.join(sorted(raised))} of NodePool {pool.name}", patch=None)

    return replace(made, unplaced=tuple(map(held, made.unplaced)))


def _limits(patch: Patch) -> Mapping[str, int]:
    """The limits that a patch of a NodePool sets; empty for every other patch."""
    if patch.kind != "NodePool":
        return {}
    return Resources.parse(json.loads(patch.text)["spec"].get("limits", {}))


def _served(made: Plan) -> frozenset[str]:
    bought = {placed.pod for launch in made.launches for placed in launch.pods}
    return frozenset(bought | {placement.pod.pod for placement in made.placements})
