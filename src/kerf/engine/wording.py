"""The sentences of a plan. Every number in them is computed from the input."""

from collections.abc import Iterable, Sequence

from kerf.engine.devices import demand_of
from kerf.engine.filling import Load
from kerf.engine.shapes import Shape
from kerf.engine.supply import Supply
from kerf.model.gpu import SliceRequest
from kerf.model.market import Market
from kerf.model.plan import Launch
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import CPU, MEMORY, PODS, quantity_text
from kerf.model.snapshot import ClusterSnapshot
from kerf.sharing.family import SHARING, Family
from kerf.sharing.registry import configured, owner_of


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
    gpu = "a GPU" if request.count == 1 else f"each of {request.count} GPUs"
    if request.memory_mib == 0 and request.memory_percent >= 100 and request.cores >= 100:
        return counted(request.count, "GPU")
    memory = f"{request.memory_mib} MiB" if request.memory_mib else f"{request.memory_percent} % of the memory"
    cores = f" and {request.cores} cores" if request.cores else ""
    return f"{memory}{cores} of {gpu}"


def why_launch(load: Load, shapes: Sequence[Shape], supply: Supply) -> str:
    """Why a node is bought: who needs what, that nothing has it free, and what was passed over for being sold out."""
    family = load.candidate.target.family
    needs = []
    gpu = False
    for number, count in enumerate(load.counts):
        if count:
            text = asked(shapes[number], family)
            gpu = gpu or "GPU" in text
            needs.append(f"{counted(count, 'pod')} {'needs' if count == 1 else 'need'} {text}")
    where = "no GPU in the cluster has that free" if gpu else "no node in the cluster has room"
    return "; ".join([", ".join(needs), where, *_passed_over(load, supply)])


def _passed_over(load: Load, supply: Supply) -> list[str]:
    """Cheaper or preferred offerings of the same pool that could not be had."""
    chosen = load.candidate
    texts = [f"{chosen.kind.name} {name} is sold out" for name in chosen.sold_out]
    for other in supply.unavailable:
        prices = [o.price_micro for o in other.kind.offerings]
        if other.pool is chosen.pool and other.refused and prices and min(prices) < load.offering.price_micro:
            texts.append(other.refused)
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
    found.extend(_sharing_notes(snapshot))
    if snapshot.assume_node_classes:
        found.extend(_assumed_classes(snapshot))
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


def _assumed_classes(snapshot: ClusterSnapshot) -> list[str]:
    given = {(c.group, c.kind, c.name) for c in snapshot.node_classes}
    wanted = sorted({(p.node_class.group, p.node_class.kind, p.node_class.name) for p in snapshot.node_pools})
    return [
        f"{kind} {name} is not in the input and taken to be ready"
        for group, kind, name in wanted
        if (group, kind, name) not in given
    ]


def _sharing_notes(snapshot: ClusterSnapshot) -> list[str]:
    """Pools whose nodes would register no card, or whose sharing mode is none that this version plans for."""
    families = configured(snapshot.config_maps)
    known = sorted({"none", *(family.name for family in families)})
    found = []
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        annotations = pool.stated_annotations
        family = owner_of(pool.labels, annotations, families)
        if family.selector is not None and pool.taints:
            found.append(
                f"NodePool {pool.name} has the taint {min(pool.taints)}: unless {family.title}'s device plugin was "
                "installed with a toleration for it, its nodes register no card"
            )
        mode = annotations.get(SHARING)
        if mode is not None and mode not in known:
            found.append(f"NodePool {pool.name}: {SHARING} {mode} is not planned for; known are {', '.join(known)}")
    return found


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
