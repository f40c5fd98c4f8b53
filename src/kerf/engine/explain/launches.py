"""Why a node is bought, or labelled again: who needs what, and what was passed over."""

from collections.abc import Sequence

from kerf.engine.buy.filling import Load
from kerf.engine.buy.launching import Needed
from kerf.engine.buy.relabelling import IdleNodeFits
from kerf.engine.explain.causes import cause_text, counted, some
from kerf.engine.place.devices import demand_of
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import Supply
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID, Requirements
from kerf.model.gpu import SliceRequest
from kerf.model.instancetypes import ON_DEMAND, SPOT, allowed_offerings, price_text
from kerf.model.placeholders import Keeper
from kerf.model.plan import Launch, Repartition
from kerf.model.pods import PodDemand
from kerf.model.quantities import PODS, quantity_text
from kerf.sharing.family import Family

_MOST_NAMED = 3
"""Types that a sentence names."""


def asked(shape: Shape, family: Family) -> str:
    """What one pod of the shape asks for, in words; GPUs if it asks for any, else its other resources."""
    demand = demand_of(shape, family)
    if isinstance(demand, PodDemand) and not demand.is_empty:
        return _slices_text(demand)
    parts = [
        f"{quantity_text(name, amount)} {name}"
        for name, amount in sorted(shape.requests.items())
        if amount and name != PODS
    ]
    return " and ".join(parts) or "nothing but a place"


def _asks_gpu(shape: Shape, family: Family) -> bool:
    demand = demand_of(shape, family)
    asks_slices = isinstance(demand, PodDemand) and not demand.is_empty
    return asks_slices or any(amount and name.startswith("nvidia.com/") for name, amount in shape.requests.items())


def _slices_text(demand: PodDemand) -> str:
    """What the containers ask for, equal ones together; those that end before the others start count no more."""
    alike: dict[str, int] = {}
    for container in demand.containers:
        if container.request is not None:
            stays = not container.is_init or container.is_sidecar
            text = _slice_text(container.request)
            alike[text] = alike.get(text, 0) + stays
    each = (f"{text} for each of {number} containers" if number > 1 else text for text, number in alike.items())
    return " and ".join(each)


def _slice_text(request: SliceRequest) -> str:
    if request.resource and not request.cores:
        return f"{request.count} {request.resource}"
    gpu = "a GPU" if request.count == 1 else f"each of {request.count} GPUs"
    if request.memory_mib == 0 and request.memory_percent >= 100 and request.cores >= 100:
        return counted(request.count, "GPU")
    memory = f"{request.memory_mib} MiB" if request.memory_mib else f"{request.memory_percent} % of the memory"
    cores = f" and {request.cores} cores" if request.cores else ""
    return f"{memory}{cores} of {gpu}"


def why_launched(launch: Launch) -> str:
    """Why a node is bought; what is said already stays."""
    cause = launch.cause
    relaxed = "; it names fewer types than minValues of the pool ask for" if launch.is_relaxed else ""
    return launch.why or (_why_needed(cause) if isinstance(cause, Needed) else cause_text(cause)) + relaxed


def why_relabelled(relabel: Repartition) -> str:
    """Why an idle node gets other labels."""
    cause = relabel.cause
    return _why_idle(cause) if isinstance(cause, IdleNodeFits) else relabel.why


def _why_needed(needed: Needed) -> str:
    """Who needs what, that nothing has it free, and what was passed over for being sold out."""
    load = needed.load
    text = needs(load, needed.shapes)
    family = load.offered.target.family
    is_gpu = any(_asks_gpu(needed.shapes[number], family) for number, count in load.held)
    where = "no GPU in the cluster has that free" if is_gpu else "no node in the cluster has room"
    if needed.kept_off:
        where = f"every node with room is ruled out by {' and '.join(needed.kept_off)}"
    return "; ".join(
        [text, where, *_chosen(load), *_costs_more(load, needed.supply), *_passed_over(load, needed.supply)]
    )


def _why_idle(fits: IdleNodeFits) -> str:
    stated = ", ".join(f"{key}={value}" for key, value in fits.labels)
    text = needs(fits.load, fits.shapes)
    return f"{text}; no pod uses a GPU of the node: labelled {stated} it has room, and no launch"


def needs(load: Load, shapes: Sequence[Shape]) -> str:
    """What the pods of a load need: `8 pods need 1000 MiB of a GPU, 1 pod needs 2 GPUs`.

    Pods that ask the same amounts are counted together, however else they differ.
    """
    family = load.offered.target.family
    alike: dict[str, tuple[Shape, int]] = {}
    for number, count in load.held:
        one = _need(shapes[number], 1, family)
        first, before = alike.get(one, (shapes[number], 0))
        alike[one] = first, before + count
    return ", ".join(_need(shape, count, family) for shape, count in alike.values())


def _need(shape: Shape, count: int, family: Family) -> str:
    text = asked(shape, family)
    kept = shape.pod.kept_for
    if kept is None:
        return f"{counted(count, 'pod')} {'needs' if count == 1 else 'need'} {text}"
    if kept.keeper == Keeper.WINDOW:
        return f"CapacityWindow {kept.name} keeps {counted(count, 'place')} ready for {text}"
    if kept.keeper == Keeper.RUN:
        pods = "the pod" if count == 1 else f"{count} pods"
        return f"{pods} of {_runs(shape)} {'needs' if count == 1 else 'need'} {text}"
    if kept.keeper == Keeper.BUFFER:
        keeps = "keeps" if len(shape.keepers) == 1 else "keep"
        return f"{_buffers(shape)} {keeps} {counted(count, 'place')} ready for {text}"
    pods = counted(count, "pod")
    return f"{pods} of ProvisioningRequest {kept.name} {'needs' if count == 1 else 'need'} {text}"


def _buffers(shape: Shape) -> str:
    names = shape.keepers
    return f"CapacityBuffer {names[0]}" if len(names) == 1 else f"{len(names)} CapacityBuffers ({some(names)})"


def _runs(shape: Shape) -> str:
    """Whose room it is; a node for equal pods of several CronJobs is for any of them."""
    names = shape.keepers
    if len(names) == 1:
        return f"the next run of CronJob {names[0]}"
    return f"the next runs of {len(names)} CronJobs ({some(names)})"


def _chosen(load: Load) -> list[str]:
    """The labels that were chosen for the node where its pool leaves them open."""
    labels = load.offered.pool.chosen_labels
    return ["labelled " + ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))] if labels else []


def _costs_more(load: Load, supply: Supply) -> list[str]:
    """Who asks for spot where the same machine costs less on demand: a pool or pods that allow spot alone."""
    chosen, offering = load.offered, load.offering
    if offering.capacity_type != SPOT or ON_DEMAND in chosen.sold_out:
        return []
    zones = Requirements(asked for asked in load.room.requirements.values() if asked.key in (ZONE, ZONE_ID))
    others = [o for o in allowed_offerings(chosen.kind.offerings, zones) if o.is_available]
    least = min((o.price_micro for o in others if o.capacity_type == ON_DEMAND), default=offering.price_micro)
    if least >= offering.price_micro:
        return []
    kinds = chosen.pool.template_requirements().get(CAPACITY_TYPE)
    by_pool = kinds is not None and not kinds.has(ON_DEMAND)
    who = f"NodePool {chosen.pool.name} does" if by_pool else "its pods do"
    return [f"on demand it costs {price_text(least)} {supply.market.currency}/h, which {who} not allow"]


def _passed_over(load: Load, supply: Supply) -> list[str]:
    """Cheaper or preferred offerings of the pool that were refused, and types it names that are over the price cap."""
    chosen = load.offered
    texts = [f"{chosen.kind.name} {name} is sold out" for name in chosen.sold_out]
    for other in supply.unavailable:
        prices = [o.price_micro for o in other.kind.offerings]
        if other.pool is chosen.pool and other.refused and prices and min(prices) < load.offering.price_micro:
            texts.append(cause_text(other.refused))
    named = chosen.pool.requirements.get(INSTANCE_TYPE)
    if named is not None and not named.complement:
        refused = (c.refused for c in supply.unavailable if c.pool is chosen.pool and c.over_price_cap)
        over_cap = [cause_text(cause) for cause in refused if cause is not None]
        texts += [text for text in over_cap if text not in texts][:_MOST_NAMED]
    return texts
