"""How pods that run stand: asked against used, where, why nothing is bought, and what would fit them better."""

from collections.abc import Iterator, Sequence

from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import Json, patch_object
from kerf.cli.render import counted, patch_command, table
from kerf.engine.explain.causes import misfit_text
from kerf.engine.explain.hints.situation import pod_patch
from kerf.engine.study.sizing.compare import Asked
from kerf.engine.study.sizing.fitting import Fitting, fitting
from kerf.engine.study.sizing.orchestrators import Batch, batches
from kerf.engine.study.sizing.workloads import Opening, Stand, Standing, openings, standing
from kerf.engine.study.usage.overload import MEASURED, NodeLoad, load_text
from kerf.engine.study.usage.requests import Recommendation, requests_patch
from kerf.model.constraints import INSTANCE_TYPE, Requirements
from kerf.model.instancetypes import price_number, price_text
from kerf.model.owners import top_owner
from kerf.model.plan import Patch
from kerf.model.pods import Pod
from kerf.model.quantities import Resources, quantity_text
from kerf.sharing.hami.config import CHART_DEFAULTS

_MOST_NODES = 10
_MANY = 2
"""Runs of one orchestrator from which its settings are worth telling."""
WHO_DECIDES = (
    "kube-scheduler has placed them all: no pod waits, so an autoscaler has nothing to buy. It goes by requests and "
    "not by use, and no controller moves pods that run"
)

BY_NAME = (
    "their manifest names the node (nodeName): no scheduler sees them, and no autoscaler has anything to buy. They "
    "fail on a node without room for them, and wait for one that is not there"
)


def _why_nothing(pods: Sequence[Pod]) -> str:
    return BY_NAME if all(pod.names_its_node for pod in pods) else WHO_DECIDES


def standing_of(pods: Sequence[Pod], read: ReadInput) -> tuple[Json, list[str]]:
    """Fields and lines of an explanation; none where none of the pods runs."""
    stand = standing(pods, read.snapshot, read.usage)
    if not stand.pods:
        return {}, []
    running = [pod for pod in pods if pod.node_name and not pod.is_ended]
    fit = fitting(running, stand, read.world, read.usage)
    found = openings(running[0], fit.containers if fit is not None else {}, read.world)
    patch = None if fit is None else _patch(running[0], fit.containers, read)
    waits = any(pod.is_pending for pod in pods)
    data: Json = {
        "requests": _texts(stand.requested),
        "usage": None if not stand.seen else {**_texts(stand.used), "pods": stand.seen},
        "nodes": [_stand_object(each, read) for each in stand.stands],
        "overloaded": list(stand.overloaded),
        "whyNothingIsBought": None if waits else _why_nothing(running),
        "asksOfNodes": _asked_of_nodes(running[0]),
        "nodePools": [_opening_object(each) for each in found],
        "advice": None if fit is None else _fitting_object(fit, patch),
        "orchestrators": [_batch_object(each) for each in batches(pods)],
    }
    return data, [
        *_lines(stand, read, "" if waits else _why_nothing(running)),
        *_advice_lines(fit, patch, running, found, stand),
        *_knobs(pods),
    ]


def _texts(amounts: Resources) -> dict[str, str]:
    return {name: quantity_text(name, amounts[name]) for name in sorted(amounts)}


def _stand_object(stand: Stand, read: ReadInput) -> Json:
    load = stand.load
    return {
        "node": stand.node,
        "instanceType": _type_of(stand, read) or None,
        "pods": stand.pods,
        "requestedPercent": None if load is None else {name: load.requested_percent(name) for name in MEASURED},
        "usedPercent": None if load is None else {name: load.used_percent(name) for name in MEASURED},
        "overloaded": list(stand.overloaded),
    }


def _opening_object(opening: Opening) -> Json:
    return {
        "nodePool": opening.pool,
        "refused": None if opening.misfit is None else misfit_text(opening.misfit),
        "largest": opening.largest or None,
        "allocatable": _texts(opening.allocatable),
        "limits": _texts(opening.limits),
        "nodesAllowed": opening.room,
    }


def _fitting_object(fit: Fitting, patch: Patch | None) -> Json:
    variant = fit.variant
    return {
        "requests": _texts(fit.requests),
        "containers": [{"name": name, "requests": _texts(amounts)} for name, amounts in fit.containers.items()],
        "why": fit.why,
        "patch": None if patch is None else patch_object(patch),
        "nodes": variant.nodes,
        "instanceTypes": {name: number for (name, _), number in variant.types.items()},
        "perHour": price_number(variant.price_micro),
        "podsPerNode": {"least": variant.pods_a_node[0], "most": variant.pods_a_node[1]},
        "unplaced": variant.plan.unserved,
    }


def _batch_object(batch: Batch) -> Json:
    return {
        "name": batch.orchestrator.name,
        "pods": batch.pods,
        "owners": batch.owners,
        "groups": list(batch.groups),
        "settings": list(batch.orchestrator.knobs),
        "requests": batch.orchestrator.requests,
    }


def _patch(pod: Pod, requests: Asked, read: ReadInput) -> Patch | None:
    """Of what makes the pod in the end; a strategic merge, by container. A lower limit rises with its request.

    Containers that a webhook has added to the pod are not in the template, which they would break there: no patch is
    for them, and there is none where nothing is left.
    """
    known = _in_template(pod, read)
    mine = [each for each in pod.spec.lasting if each.name in requests and (known is None or each.name in known)]
    rows = [
        Recommendation(each.name, name, limit=each.limits.get(name), advised=amount)
        for each in mine
        for name, amount in requests[each.name].items()
    ]
    change = requests_patch("Pod", rows, mine, CHART_DEFAULTS)
    return pod_patch(pod, change, read.snapshot.cron_job_keys) if rows else None


def _in_template(pod: Pod, read: ReadInput) -> frozenset[str] | None:
    """The containers in the template of what makes the pod in the end; None where the input does not have that."""
    owner = top_owner(pod, read.snapshot.cron_job_keys)
    for each in read.decoded.workloads:
        if owner is not None and (each.kind, each.namespace, each.name) == (owner.kind, pod.namespace, owner.name):
            return frozenset(container.name for container in each.template.spec.lasting)
    return None


def _lines(stand: Standing, read: ReadInput, why: str) -> Iterator[str]:
    asked = " and ".join(f"{quantity_text(name, stand.requested.get(name, 0))} {name}" for name in MEASURED)
    others = [f"{quantity_text(n, a)} {n}" for n, a in sorted(stand.requested.items()) if n not in MEASURED and a]
    all_of_them = "1 pod runs and asks" if stand.pods == 1 else f"{stand.pods} pods run and ask together"
    yield f"  {all_of_them} {', '.join([asked, *others])}{_used_text(stand)}"
    if any(each.load is not None for each in stand.stands):
        headers = ("NODE", "TYPE", "PODS", "CPU ASKED", "CPU USED", "MEMORY ASKED", "MEMORY USED")
        yield from table(headers, (_row(each, read) for each in stand.stands[:_MOST_NODES]), indent="  ")
        if len(stand.stands) > _MOST_NODES:
            yield f"  and {counted(len(stand.stands) - _MOST_NODES, 'node')} with fewer pods"
    if why:
        yield f"  {why}"
    for each in stand.stands:
        if each.load is not None and each.overloaded:
            yield f"  overloaded: node {each.node} {load_text(each.load, each.overloaded)}"


def _used_text(stand: Standing) -> str:
    if not stand.seen:
        return "; what they use is not known"
    used = " and ".join(f"{quantity_text(name, stand.used[name])} {name}" for name in MEASURED)
    whose = "" if stand.seen == stand.pods else f" ({stand.seen} of them seen)"
    return f"; {'it uses' if stand.pods == 1 else 'they use'} {used}{whose}"


def _row(stand: Stand, read: ReadInput) -> tuple[str, ...]:
    return (stand.node, _type_of(stand, read) or "-", str(stand.pods), *(_cells(stand.load)))


def _type_of(stand: Stand, read: ReadInput) -> str:
    node = read.snapshot.node(stand.node)
    return node.labels.get(INSTANCE_TYPE, "") if node is not None else ""


def _cells(load: NodeLoad | None) -> tuple[str, ...]:
    if load is None:
        return ("-",) * 2 * len(MEASURED)
    percents = ((load.requested_percent(name), load.used_percent(name)) for name in MEASURED)
    return tuple(f"{percent} %" for pair in percents for percent in pair)


def _asked_of_nodes(pod: Pod) -> list[str]:
    """What the pod asks of nodes' labels; several are alternatives."""
    return [_requirements_text(each) for each in pod.spec.alternatives if each]


def _requirements_text(requirements: Requirements) -> str:
    return " and ".join(str(each) for _, each in sorted(requirements.items()))


def _advice_lines(
    fit: Fitting | None, patch: Patch | None, pods: Sequence[Pod], found: Sequence[Opening], stand: Standing
) -> Iterator[str]:
    if fit is None:
        if not stand.seen and not any(stand.requested.get(name) for name in MEASURED):
            yield "  advice: give them cpu and memory requests; `kerf advise per-node N` divides a node"
        return
    yield f"  advice: let each ask {_asked_text(fit, pods[0])} ({fit.why})"
    if patch is not None:
        yield f"    {patch_command(patch)}"
    yield f"    {_outcome(fit, len(pods))}"
    for constraint in _asked_of_nodes(pods[0]):
        yield f"    they ask of nodes: {constraint}"
    yield from (f"    {_opening_text(each)}" for each in found)


def _asked_text(fit: Fitting, pod: Pod) -> str:
    """`cpu 580m, memory 120Mi`; with several containers `cpu 580m in main; memory 120Mi in proxy`."""
    texts = {
        container: ", ".join(f"{name} {text}" for name, text in _texts(amounts).items())
        for container, amounts in fit.containers.items()
    }
    if len(pod.spec.lasting) == 1:
        return "".join(texts.values())
    return "; ".join(f"{text} in container {container}" for container, text in texts.items())


def _outcome(fit: Fitting, pods: int) -> str:
    variant = fit.variant
    if not variant.nodes:
        return "no NodePool would buy for such pods"
    types = ", ".join(f"{number} x {name}" for (name, _), number in variant.types.items())
    price = f"{price_text(variant.price_micro)} {variant.plan.cost.currency}/h"
    least, most = variant.pods_a_node
    a_node = str(most) if least == most else f"at most {most}"
    text = f"{counted(pods, 'such pod')} on new nodes: {types}, {price}, {a_node} a node"
    if fit.is_no_relief:
        text += f", which spreads nothing: an overloaded node has {fit.crowd} now"
    return text + (f"; {variant.plan.unserved} would wait" if variant.plan.unserved else "")


def _opening_text(opening: Opening) -> str:
    if not opening.largest:
        why = misfit_text(opening.misfit) if opening.misfit is not None else "it offers no instance type"
        return f"NodePool {opening.pool} takes none of them: {why}"
    size = " and ".join(f"{text} {name}" for name, text in _texts(opening.allocatable).items())
    limits = ", ".join(f"{name} {text}" for name, text in _texts(opening.limits).items())
    more = "any number of nodes" if opening.room is None else counted(opening.room, "more node")
    allowed = f"its limits ({limits}) allow {more}" if limits else "it has no limits"
    return f"NodePool {opening.pool} takes them, the largest type is {opening.largest} with {size}; {allowed}"


def _knobs(pods: Sequence[Pod]) -> Iterator[str]:
    """How to let fewer run at once, where another orchestrator than Kubernetes starts them."""
    for batch in batches(pods):
        if batch.pods < _MANY:
            continue
        who, runs = batch.orchestrator, counted(batch.pods, "pod")
        of = f" of {', '.join(batch.groups[:3])}" if batch.groups else ""
        more = f" and {len(batch.groups) - 3} more" if len(batch.groups) > 3 else ""
        made = f", made by {counted(batch.owners, 'owner')}" if batch.owners else ""
        yield f"  {who.name} runs {runs}{of}{more} at once{made}; to run fewer:"
        yield from (f"    {knob}" for knob in who.knobs)
        yield f"    its pods ask what is written in: {who.requests}"
