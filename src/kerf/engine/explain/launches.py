"""The sentences of a plan. Every number in them is computed from the input."""

from collections.abc import Iterable, Sequence

from kerf.engine.bookings import request_of
from kerf.engine.devices import demand_of
from kerf.engine.explain import sharing as words
from kerf.engine.filling import Load
from kerf.engine.prewarm import cron_job_of, prewarm_problem, warnings
from kerf.engine.shapes import Shape
from kerf.engine.supply import Supply
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.gpu import SliceRequest
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN, group_of
from kerf.model.market import Market
from kerf.model.plan import Launch
from kerf.model.pods import VIRTUAL, Pod, PodDemand, is_virtual
from kerf.model.quantities import CPU, MEMORY, PODS, quantity_text
from kerf.model.snapshot import ClusterSnapshot
from kerf.sharing.family import Family
from kerf.sharing.registry import configured, owner_of, unknown_sharing

_MOST_NAMED = 3
"""Types that a sentence names."""


def counted(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def asked(shape: Shape, family: Family) -> str:
    """What one pod of the shape asks for, in words; GPUs if it asks for any, else its other resources."""
    demand = demand_of(shape, family)
    requests = [c.request for c in demand.containers if c.request] if isinstance(demand, PodDemand) else []
    if requests:
        return " and ".join(dict.fromkeys(_slice_text(request) for request in requests))
    parts = [
        f"{quantity_text(name, amount)} {name}"
        for name, amount in sorted(shape.requests.items())
        if amount and name != PODS
    ]
    return " and ".join(parts) or "nothing but a place"


def _slice_text(request: SliceRequest) -> str:
    if request.resource and not request.cores:
        return f"{request.count} {request.resource}"
    gpu = "a GPU" if request.count == 1 else f"each of {request.count} GPUs"
    if request.memory_mib == 0 and request.memory_percent >= 100 and request.cores >= 100:
        return counted(request.count, "GPU")
    memory = f"{request.memory_mib} MiB" if request.memory_mib else f"{request.memory_percent} % of the memory"
    cores = f" and {request.cores} cores" if request.cores else ""
    return f"{memory}{cores} of {gpu}"


def why_launch(load: Load, shapes: Sequence[Shape], supply: Supply) -> str:
    """Why a node is bought: who needs what, that nothing has it free, and what was passed over for being sold out."""
    text = needs(load, shapes)
    is_gpu = "GPU" in text or "nvidia.com/" in text
    where = "no GPU in the cluster has that free" if is_gpu else "no node in the cluster has room"
    return "; ".join([text, where, *_chosen(load), *_passed_over(load, supply)])


def needs(load: Load, shapes: Sequence[Shape]) -> str:
    """What the pods of a load need: `8 pods need 1000 MiB of a GPU, 1 pod needs 2 GPUs`."""
    family = load.candidate.target.family
    return ", ".join(_need(shapes[number], count, family) for number, count in enumerate(load.counts) if count)


def _need(shape: Shape, count: int, family: Family) -> str:
    text = asked(shape, family)
    if is_virtual(shape.pod.key):
        run = cron_job_of(shape.pod.key)
        if run:
            pods = "the pod" if count == 1 else f"{count} pods"
            return f"{pods} of the next run of CronJob {run} {'needs' if count == 1 else 'need'} {text}"
        request = request_of(shape.pod.key)
        if request:
            return (
                f"{counted(count, 'pod')} of ProvisioningRequest {request} {'needs' if count == 1 else 'need'} {text}"
            )
        window = shape.pod.namespace.partition(VIRTUAL)[2]
        return f"CapacityWindow {window} keeps {counted(count, 'place')} ready for {text}"
    return f"{counted(count, 'pod')} {'needs' if count == 1 else 'need'} {text}"


def _chosen(load: Load) -> list[str]:
    """The labels that were chosen for the node where its pool leaves them open."""
    labels = load.candidate.pool.chosen_labels
    return ["labelled " + ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))] if labels else []


def _passed_over(load: Load, supply: Supply) -> list[str]:
    """Cheaper or preferred offerings of the same pool that could not be had, and types it names that are too dear."""
    chosen = load.candidate
    texts = [f"{chosen.kind.name} {name} is sold out" for name in chosen.sold_out]
    for other in supply.unavailable:
        prices = [o.price_micro for o in other.kind.offerings]
        if other.pool is chosen.pool and other.refused and prices and min(prices) < load.offering.price_micro:
            texts.append(other.refused)
    named = chosen.pool.requirements.get(INSTANCE_TYPE)
    if named is not None and not named.complement:
        dear = [c.refused for c in supply.unavailable if c.pool is chosen.pool and c.too_dear]
        texts += [text for text in dear if text not in texts][:_MOST_NAMED]
    return texts


def notes(snapshot: ClusterSnapshot, market: Market, pods: Iterable[Pod]) -> tuple[str, ...]:
    """What an operator should know beside the plan."""
    found = [*market.notes]
    pending = list(pods)
    silent = [
        pod
        for pod in pending
        if not pod.spec.requests.get(CPU)
        and not pod.spec.requests.get(MEMORY)
        and not any(amount for name, amount in pod.spec.requests.items() if name not in (CPU, MEMORY, PODS))
    ]
    if silent:
        whose = sorted(
            {f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else f"Pod {pod.key}" for pod in silent}
        )
        found.append(
            f"{counted(len(silent), 'pod')} {'asks' if len(silent) == 1 else 'ask'} for nothing ({_some(whose)}): "
            "a node takes them until its pod limit, however busy it is; give them cpu and memory requests"
        )
    for constraint in sorted({name for pod in pending for name in pod.spec.not_planned}):
        number = sum(1 for pod in pending if constraint in pod.spec.not_planned)
        found.append(f"{counted(number, 'pod')} with {constraint}: this version plans as if it were not there")
    alone = sum(1 for pod in pending if POD_GROUP_MIN in {**pod.annotations, **pod.labels} and group_of(pod) is None)
    if alone:
        found.append(
            f"{counted(alone, 'pod')} with {POD_GROUP_MIN} and no label {POD_GROUP}: of no group, planned alone"
        )
    found.extend(_sharing_notes(snapshot))
    claims = [node.claim for node in snapshot.nodes if node.claim is not None]
    for cron_job in snapshot.cron_jobs:
        found += (f"CronJob {cron_job.key}: {why}" for why in warnings(cron_job, snapshot.node_pools, claims))
    return tuple(found)


def estimates(launches: Sequence[Launch]) -> tuple[str, ...]:
    """That some prices of the plan were quoted by nobody."""
    number = sum(1 for launch in launches if launch.is_estimate)
    if not number:
        return ()
    what = "1 spot launch is" if number == 1 else f"{number} spot launches is"
    return (
        f"the price of {what} an estimate: on-demand less the average saving that the catalogue states with its date",
    )


def _sharing_notes(snapshot: ClusterSnapshot) -> list[str]:
    """Pools whose nodes would register no card, or whose sharing mode is none that this version plans for."""
    families = configured(snapshot.config_maps)
    found = []
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        annotations = pool.stated_annotations
        family = owner_of(pool.labels, annotations, families)
        if family.selector is not None and pool.taints:
            found.append(
                f"NodePool {pool.name} has the taint {min(pool.taints)}: unless {family.title}'s device plugin was "
                "installed with a toleration for it, its nodes register no card"
            )
        if pool.bounds.invalid:
            found.append(f"NodePool {pool.name}: {pool.bounds.invalid}; it takes no nodes until then")
        if pool.bounds.invalid_floor:
            found.append(f"NodePool {pool.name}: {pool.bounds.invalid_floor}; none of its nodes is removed until then")
        if prewarm_problem(pool):
            found.append(f"NodePool {pool.name}: {prewarm_problem(pool)}; it counts as absent")
        unknown = unknown_sharing(annotations, families)
        if unknown is not None:
            found.append(f"NodePool {pool.name}: {words.reason(unknown)}; it counts as absent")
    return found


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
