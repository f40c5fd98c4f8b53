"""The smallest change that would place a pod, as a sentence and, where one exists, as a merge patch.

A patch is only given when planning again with it places the pod.
"""

from kerf.engine.decision import Refusal
from kerf.engine.explain import sharing as words
from kerf.engine.explain.hints.labels import agree, tolerate
from kerf.engine.explain.hints.limits import raise_limit
from kerf.engine.explain.hints.requirements import clashes, clashing_labels, give_way, lower_min_values
from kerf.engine.explain.hints.sharing import (
    as_the_reason_says,
    ask_as_shown,
    ask_otherwise,
    configure_sharing,
    select_family,
)
from kerf.engine.explain.hints.situation import Advice, Situation
from kerf.engine.explain.hints.types import allow_larger_type, raise_cap, spell_right
from kerf.engine.explain.hints.volumes import allow_place, follow_volumes
from kerf.engine.explain.volumes import volume_hint
from kerf.engine.place.shapes import Shape
from kerf.model import causes
from kerf.model.bounds import MAX_LAUNCHES
from kerf.model.constraints import NODE_POOL
from kerf.model.nodepool import NodePool
from kerf.model.placeholders import Keeper
from kerf.model.plan import Misfit, Stage
from kerf.model.quantities import NODES
from kerf.model.rejections import BoughtInVain, RejectedByScheduler
from kerf.model.times import duration_text, instant_text
from kerf.model.topology import AffinityCircle
from kerf.model.volumecauses import VolumeElsewhere, VolumesAgainstPod
from kerf.model.windows import (
    WINDOW_LABEL,
    NoWindowLabel,
    NoWindowSelects,
    WindowClosed,
    WindowElsewhere,
    WindowInvalid,
    WindowNeverOpens,
    WindowQuotaExhausted,
)

__all__ = ["Advice", "Situation", "advise", "hint_of"]


def hint_of(refusal: Refusal) -> Advice | None:
    """What helps where the cause alone says it; None where the misfits decide."""
    match refusal.cause:
        case causes.NotBought():
            return None
        case causes.InvalidPod(problem) | causes.TemplateInvalid(problem=problem):
            return Advice(problem.hint)
        case causes.AsksTooMuch():
            return Advice("say it in fewer terms: one with several values says as much as several with one")
        case causes.NotPlannedFor():
            # Claims, and resources that become claims: what a driver of dynamic resource allocation gives out.
            return Advice(f"{words.PLANNED_FOR}, in place of claims; or add nodes for it yourself")
        case causes.Gated(by_kueue=True):
            return Advice("it comes when its queue has quota for it: kubectl get workloads")
        case causes.Gated():
            return Advice("the controller that set the gate must remove it")
        case causes.OverResourceQuota():
            return Advice("no node would help: raise the quota, or wait until pods have ended")
        case causes.UnstatedForQuota():
            return Advice("no node would help: state them in the containers, or give them defaults by a LimitRange")
        case causes.NoRoomOfRequest(is_there=False):
            return Advice("apply the request, or take the annotation that names it off the pod")
        case causes.RoomLimited():
            return Advice("")
        case causes.NoRoomOfRequest(request):
            return Advice("nothing is bought for pods that take the room of a request" if request else "")
        case causes.NoIdleCapacity():
            return Advice(
                "it comes when others leave room; without its label kerf.dev/opportunistic a node would be bought"
            )
        case RejectedByScheduler(retry_s=retry_s):
            until = "" if retry_s is None else f", or until {instant_text(retry_s)}"
            return Advice(
                "Kerf plans no other node for it until the pod, its NodePool or what the scheduler names has changed"
                f"{until}"
            )
        case BoughtInVain(node):
            return Advice(f"Kerf buys no other node for it as long as node {node} is there and lacks it")
        case AffinityCircle():
            return Advice("no node would help: take the required pod affinity off one of them, or make it preferred")
        case causes.Paced(pool):
            return Advice(f"it comes by itself; a larger {MAX_LAUNCHES} of NodePool {pool} lets it come sooner")
    return Advice(
        _window_hint(refusal.cause) or volume_hint(refusal.cause) or words.hint(refusal.cause),
        change=refusal.change or {},
    )


def _window_hint(cause: causes.Cause) -> str:
    match cause:
        case WindowInvalid():
            return "fix the window"
        case WindowNeverOpens():
            return "give it a schedule that comes"
        case WindowClosed(wait_s=wait_s):
            return f"it opens in {duration_text(wait_s)}"
        case NoWindowLabel():
            return f"label the pods of its workload {WINDOW_LABEL} as a CapacityWindow selects"
        case NoWindowSelects(there=there):
            return f"there is {', '.join(there) or 'none'}"
        case WindowElsewhere(namespace=namespace):
            return f"add {namespace} to its namespaces"
        case WindowQuotaExhausted():
            return "a shorter activeDeadlineSeconds reserves less; what ended pods have not used comes back"
    return ""


def advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    """What would help pods of the shape, judged by the misfit that came furthest.

    Of room that is kept there is no pod that could be patched.
    """
    found, kept_for = _advise(shape, misfit, situation), shape.pod.kept_for
    if kept_for is None or (found.patch is not None and found.patch.kind == "NodePool"):
        return found
    cause = misfit.cause
    names_a_pool = isinstance(cause, causes.LabelMismatch) and cause.asked.key == NODE_POOL
    if names_a_pool and kept_for.keeper not in (Keeper.REQUEST, Keeper.CHECK, Keeper.BUFFER):
        return Advice(f"name a NodePool that there is in spec.nodePools of CapacityWindow {kept_for.name}")
    return Advice(found.hint)


def _advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    pool = situation.snapshot.pool(misfit.target.node_pool)
    if pool is None:
        return Advice()
    if misfit.stage == Stage.OFFERINGS:
        return _on_offerings(pool, misfit, shape, situation)
    match misfit.cause:
        case causes.LimitReached(resource=resource):
            return raise_limit(pool, resource, situation)
        case causes.UntoleratedTaint():
            return tolerate(pool.taints, shape, situation)
        case causes.LabelMismatch(asked):
            return agree(pool, asked.key, shape, situation)
        case VolumeElsewhere(asked):
            return allow_place(pool, asked)
        case VolumesAgainstPod(_, volumes):
            return follow_volumes(pool, volumes, shape, situation)
        case causes.ForeignFamily():
            return select_family(pool, shape, situation)
        case causes.HostPortTaken():
            # Nothing else runs on a node to be bought.
            return Advice(
                f"a DaemonSet has the port on nodes of NodePool {pool.name}: ask for another port or NodePool"
            )
    if misfit.stage not in (Stage.DEVICES, Stage.RESOURCES):
        return Advice()
    return (
        ask_otherwise(misfit)
        or ask_as_shown(misfit, shape, situation)
        or configure_sharing(pool, shape, situation)
        or as_the_reason_says(pool, misfit, situation)
        or allow_larger_type(pool, misfit, shape, situation)
    )


def _on_offerings(pool: NodePool, misfit: Misfit, shape: Shape, situation: Situation) -> Advice:
    match misfit.cause:
        case causes.PoolClosed(problem=problem):
            return Advice(_opening(pool, problem))
        case causes.TypeOverPriceCap(instance_type=name):
            return raise_cap(pool, name, situation)
        case causes.NamedTypesUnusable(types=types):
            unknown = (each for each in types if isinstance(each, causes.TypeUnknown) and each.nearest)
            misspelt = next(unknown, None)
            if misspelt is not None:
                return spell_right(pool, misspelt)
        case causes.MinValuesUnmet():
            return lower_min_values(pool, misfit.cause)
        case causes.ReservationUsedUp(reservation=name):
            return Advice(f"enlarge reservation {name}, or let pod and NodePool {pool.name} use other capacity types")
        case causes.OfferingsSoldOut() | causes.BacksOff():
            return Advice(_wait(pool))
        case causes.NoOfferingLeft() if _is_some_gone(misfit, situation):
            return Advice(_wait(pool))
    labels = clashing_labels(misfit.cause)
    found = give_way(pool, clashes(pool, misfit.cause), labels, shape, situation)
    asks = f"allow other instance types, zones or capacity types in NodePool {pool.name}"
    return found or Advice(f"{asks}; Kerf found no change that does")


def _wait(pool: NodePool) -> str:
    which = "allow further instance types, zones or capacity types in NodePool"
    return f"{which} {pool.name}, or wait until the offering is back"


def _is_some_gone(misfit: Misfit, situation: Situation) -> bool:
    """Whether the type has offerings that are sold out now."""
    name = misfit.target
    offered = situation.supply.by_pool.get(name.node_pool, ())
    return any(each.sold_out for each in offered if each.kind.name == name.instance_type)


def _opening(pool: NodePool, problem: causes.Cause) -> str:
    """What must happen before the pool takes nodes."""
    match problem:
        case causes.PoolStatic():
            most = None if pool.limits is None else pool.limits.get(NODES)
            is_full = most is not None and most <= (pool.replicas or 0)
            what = "spec.replicas and the limit nodes" if is_full else "spec.replicas"
            return f"raise {what} of NodePool {pool.name}, or let another NodePool take the pod"
        case causes.NodeClassNotFound(kind, name):
            return f"apply {kind} {name}"
        case causes.NodeClassUnready(kind, name):
            return f"it comes when {kind} {name} is ready"
        case causes.PoolDeleting():
            return "let another NodePool take the pod"
    if pool.bounds.invalid:
        return f"fix the annotation of NodePool {pool.name}"
    return f"fix NodePool {pool.name}: until then it takes no nodes"
