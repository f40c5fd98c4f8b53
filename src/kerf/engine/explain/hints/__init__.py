"""The smallest change that would place a pod, as a sentence and, where one exists, as a merge patch.

A patch is only given when planning again with it places the pod.
"""

from kerf.engine.explain.hints.labels import agree, tolerate
from kerf.engine.explain.hints.limits import raise_limit
from kerf.engine.explain.hints.sharing import as_the_reason_says, ask_otherwise, configure_sharing, select_family
from kerf.engine.explain.hints.situation import Advice, Situation
from kerf.engine.explain.hints.types import CAP, TYPO, allow_larger_type, raise_cap, spell_right
from kerf.engine.bookings import request_of
from kerf.engine.shapes import Shape
from kerf.engine.virtual import window_of
from kerf.model.constraints import NODE_POOL
from kerf.model.plan import FAMILY, Misfit, Stage
from kerf.model.pods import is_virtual


def advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    """What would help pods of the shape, judged by the misfit that came furthest.

    Of room that a window keeps there is no pod that could be patched.
    """
    found = _advise(shape, misfit, situation)
    if not is_virtual(shape.pod.key) or (found.patch is not None and found.patch.kind == "NodePool"):
        return found
    if misfit.stage == Stage.REQUIREMENTS and misfit.detail == NODE_POOL and not request_of(shape.pod.key):
        return Advice(f"name a NodePool that there is in spec.nodePools of CapacityWindow {window_of(shape.pod.key)}")
    return Advice(found.hint)


def _advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    pool = situation.snapshot.pool(misfit.node_pool)
    if pool is None:
        return Advice()
    if pool.bounds.invalid and misfit.stage == Stage.OFFERINGS:
        return Advice(f"mend the annotation of NodePool {pool.name}")
    if misfit.stage == Stage.LIMITS:
        return raise_limit(pool, misfit.detail, situation)
    if misfit.stage == Stage.TAINTS:
        return tolerate(pool, shape, situation)
    if misfit.stage == Stage.REQUIREMENTS:
        return agree(pool, misfit.detail, shape, situation)
    if misfit.stage == Stage.DEVICES and misfit.detail.startswith(FAMILY):
        return select_family(pool, shape, situation)
    if misfit.stage in (Stage.DEVICES, Stage.RESOURCES):
        return (
            ask_otherwise(misfit)
            or configure_sharing(pool, shape, situation)
            or as_the_reason_says(pool, misfit)
            or allow_larger_type(pool, shape, situation)
        )
    if misfit.stage == Stage.OFFERINGS and misfit.detail.startswith(TYPO):
        return spell_right(pool, shape, misfit.detail, situation)
    if misfit.stage == Stage.OFFERINGS and misfit.detail.startswith(CAP):
        return raise_cap(pool, shape, misfit.detail, situation)
    if misfit.stage == Stage.OFFERINGS and pool.invalid:
        return Advice(f"mend NodePool {pool.name}: until then it takes no nodes")
    if misfit.stage == Stage.OFFERINGS:
        return Advice(
            "allow further instance types, zones or capacity types in NodePool "
            f"{pool.name}, or wait until the offering is back"
        )
    return Advice()
