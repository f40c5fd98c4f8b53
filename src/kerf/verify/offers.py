"""Each node to buy is for sale as planned: by its pool, at its price, within limits, and with types that stand in."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.model.constraints import (
    ALIASES,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION,
    RESERVATION_LABELS,
    WELL_KNOWN,
    ZONE,
)
from kerf.model.gpu import SliceRequest
from kerf.model.instancetypes import InstanceType, Offering, price_text
from kerf.model.nodepool import NodePool
from kerf.model.plan import Launch
from kerf.model.pods import PodDemand
from kerf.model.promises import offering_of, planned_type
from kerf.model.quantities import COST_PER_HOUR, NODES, NOTHING, Resources, quantity_text
from kerf.model.snapshot import ClusterNode
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.sharing.registry import demand_of
from kerf.verify.after import After, TakingNode, counted_specs, labels_of, leaves_open, meets
from kerf.verify.alike import for_each

_OF_TYPES = ("karpenter.k8s.aws", "karpenter.k8s.alibabacloud", "karpenter.kwok.sh")
"""Domains of labels that clouds give their types; a type without one of them does not have it."""


def violations(after: After) -> Iterator[Violation]:
    """What is not for sale. Cost: kinds of nodes to buy times their alternatives, then launches and nodes."""
    for site, launches in after.bought:
        found = [*_sold(after, launches[0])]
        found = found or [*_stand_in(after, site, launches[0])]
        for each in found:
            yield from for_each(each, launches)
    yield from _within_limits(after)
    yield from _reserved(after)


def _part(launch: Launch) -> PlanPart:
    return PlanPart(PartKind.LAUNCH, launch.name)


def _sold(after: After, launch: Launch) -> Iterator[Violation]:
    """Whether its pool sells the type so, and at that price."""
    pool, key = after.pool(launch.node_pool), launch.offering
    if pool is None or pool.deleted_s is not None or pool.invalid:
        yield violation(
            PlanRule.OFFERING, launch.name, "a NodePool that buys", f"NodePool {launch.node_pool}", _part(launch)
        )
        return
    kind = after.kind(pool.name, key.instance_type)
    if kind is None:
        expected = f"a type that NodePool {pool.name} offers"
        yield violation(PlanRule.OFFERING, launch.name, expected, key.instance_type, _part(launch))
        return
    offering = _offering(kind, launch)
    is_sold_out = key in after.world.market.sold_out_keys
    if offering is None or not offering.is_available or is_sold_out:
        yield violation(PlanRule.OFFERING, launch.name, "an offering that can be had", key, _part(launch))
        return
    labelled = _mislabelled(kind, pool, offering)
    if labelled is not None:
        yield violation(PlanRule.OFFERING, launch.name, f"{labelled}, a label of its template", key, _part(launch))
    asked = pool.requirements
    labels, stated = labels_of(launch, kind, pool)
    clash = meets(asked.without((ZONE, RESERVATION)), labels, stated)
    zone = asked.get(ZONE)
    if clash is not None or (zone is not None and not zone.has(offering.zone)):
        wanted = asked[clash] if clash is not None else zone
        yield violation(PlanRule.OFFERING, launch.name, wanted, key, _part(launch))
    for label, value in sorted(launch.labels.items()):
        # What a node is that takes a reservation, the cloud says.
        is_of_offering = label in RESERVATION_LABELS and bool(key.reservation)
        if is_of_offering and (label != RESERVATION or value == key.reservation):
            continue
        if not leaves_open(pool, label, value) and (pool.name, label, value) not in after.chosen:
            expected = f"labels that NodePool {pool.name} gives its nodes, or leaves open"
            yield violation(PlanRule.OFFERING, launch.name, expected, f"{label}={value}", _part(launch))
    if offering.price_micro != launch.price_micro:
        expected, got = price_text(offering.price_micro), price_text(launch.price_micro)
        yield violation(PlanRule.PRICE, launch.name, expected, got, _part(launch))


def _mislabelled(kind: InstanceType, pool: NodePool, offering: Offering | None = None) -> str | None:
    """The first label of the pool's template that machines of the type do not have; None where they may have all.

    Karpenter takes such labels for requirements. Of labels that no cloud gives its types a type says nothing.
    """
    sold = {} if offering is None else {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    for key, value in sorted(pool.labels.items()):
        name = ALIASES.get(key, key)
        own = {INSTANCE_TYPE: kind.name, **sold}.get(name)
        held = kind.requirements.get(name)
        is_lacking = held is None and name in WELL_KNOWN and name.partition("/")[0] in _OF_TYPES
        is_other = held is not None and not held.has(value)
        if is_other or (is_lacking and name not in RESERVATION_LABELS) or (own is not None and own != value):
            return f"{key} {value}"
    return None


def _offering(kind: InstanceType, launch: Launch) -> Offering | None:
    key = launch.offering
    return next((each for each in kind.offerings if each.key_of(kind.name) == key), None)


def _stand_in(after: After, site: TakingNode, launch: Launch) -> Iterator[Violation]:
    """Whether each type that the cloud may give instead holds the pods of the launch too.

    What is compared is what no way of sharing could change: sums over the node, and of its cards the largest slice,
    memory, cores and number.
    """
    pool = after.pool(launch.node_pool)
    if pool is None or not launch.alternatives:
        return
    pods = [pod for placed in launch.pods if (pod := after.pods.get(placed.pod)) is not None]
    asked = Resources.total((spec.requests, number) for spec, number in counted_specs(pods))
    # Many pods of a node may ask for the same labels, and for the same slices.
    wanted = dict.fromkeys(spec.own_alternatives for spec, _ in counted_specs(pods))
    demands = [demand for pod in pods if isinstance(demand := demand_of(pod, site.family), PodDemand)]
    requests = [c.request for d in demands for c in d.asking if c.request is not None and not c.is_init]
    for name in launch.alternatives:
        kind = after.kind(pool.name, name)
        if kind is None:
            expected = f"types that NodePool {pool.name} offers"
            yield violation(PlanRule.ALTERNATIVES, launch.name, expected, name, _part(launch))
            continue
        labelled = _mislabelled(kind, pool)
        if labelled is not None:
            expected = f"types with {labelled}, a label of its template"
            yield violation(PlanRule.ALTERNATIVES, launch.name, expected, name, _part(launch))
            continue
        missing = _missing(after, site, launch, kind, pool, asked)
        labels, stated = labels_of(launch, kind, pool)
        clash = next((terms for terms in wanted if all(meets(term, labels, stated) for term in terms)), None)
        if clash is not None:
            missing = missing or str(clash[0])
        missing = missing or _cards_missing(after, launch, kind, pool, requests)
        if missing:
            yield violation(
                PlanRule.ALTERNATIVES, launch.name, f"types that hold its pods: {missing}", name, _part(launch)
            )


def _missing(
    after: After, site: TakingNode, launch: Launch, kind: InstanceType, pool: NodePool, asked: Resources
) -> str:
    """The first resource of which the type has too little, by its amount; empty where it has enough."""
    # What machines have that are bought as the planned one is; where that differs by zone the most counts.
    same = [each for each in kind.offerings if each.capacity_type == launch.offering.capacity_type]
    if not same:
        return launch.offering.capacity_type
    free = kind.allocatable
    for offering in same:
        if offering.capacity:
            free = free.largest(replace(kind, capacity=kind.capacity.replaced(offering.capacity)).allocatable)
    family, devices = after.devices_of(launch, kind, pool)
    free = after.shown(free, family, devices)
    for name in sorted(asked):
        if 0 < asked[name] > free.get(name, 0) and name not in after.uncounted(family):
            return f"{quantity_text(name, asked[name])} {name}"
    return ""


def _cards_missing(
    after: After, launch: Launch, kind: InstanceType, pool: NodePool, requests: Sequence[SliceRequest]
) -> str:
    """The same of its cards."""
    if not requests:
        return ""
    _, devices = after.devices_of(launch, kind, pool)
    if any(device.partitions or device.profiles for device in devices):
        return ""
    if max(request.count for request in requests) > len(devices):
        return f"{max(request.count for request in requests)} cards"
    largest = max(devices, key=lambda device: device.memory_mib)
    memory = max(request.memory_on(largest) for request in requests)
    if memory > largest.memory_mib:
        return f"a card of {memory} MiB"
    cores = sum(min(request.cores, 100) * request.count for request in requests)
    slots = sum(request.count for request in requests)
    held = sum(request.memory_on(min(devices, key=lambda d: d.memory_mib)) * request.count for request in requests)
    if held > sum(device.memory_mib for device in devices):
        return f"{held} MiB of cards"
    if cores > sum(device.cores for device in devices):
        return f"{cores}% of cores of cards"
    return f"{slots} slices" if slots > sum(device.slots for device in devices) else ""


def _within_limits(after: After) -> Iterator[Violation]:
    """Whether what each pool has and buys is within its limits; the launches that go beyond are the later ones."""
    by_pool = defaultdict[str, list[Launch]](list)
    for launch in after.proposal.launches:
        by_pool[launch.node_pool].append(launch)
    limited = {pool.name: pool.limits for pool in after.snapshot.node_pools if pool.limits and pool.name in by_pool}
    used = _used(after, limited) if limited else {}
    for launch in after.proposal.bought if limited else ():
        if launch.node_pool in used:
            used[launch.node_pool] = used[launch.node_pool] + _charge(after, launch)
    for name, limits in sorted(limited.items()):
        counted, beyond = used[name], dict[str, list[Launch]]()
        for launch in by_pool[name]:
            charge = _charge(after, launch)
            over = [key for key in limits if charge.get(key, 0) > 0 and counted.get(key, 0) + charge[key] > limits[key]]
            for key in over:
                beyond.setdefault(key, []).append(launch)
            if not over:
                counted = counted + charge
        for key, launches in sorted(beyond.items()):
            got = counted.get(key, 0) + sum(_charge(after, launch).get(key, 0) for launch in launches)
            parts = [_part(launch) for launch in launches]
            expected = f"at most {quantity_text(key, limits[key])} {key}"
            yield violation(
                PlanRule.POOL_LIMITS, f"NodePool {name}", expected, f"{quantity_text(key, got)} {key}", *parts
            )


def _charge(after: After, launch: Launch) -> Resources:
    """What a launch counts: what its type has, and where it states more for types that may stand in, that."""
    kind = after.kind(launch.node_pool, launch.offering.instance_type)
    own = kind.sold_as(launch.offering).capacity if kind is not None else NOTHING
    return (own + {NODES: 1, COST_PER_HOUR: launch.price_micro}).largest(launch.charge)


def _used(after: After, pools: object) -> dict[str, Resources]:
    """What the nodes of pools with limits count, those on their way too."""
    assert isinstance(pools, dict)
    found = dict.fromkeys(pools, NOTHING)
    for node in after.snapshot.nodes:
        claim = node.claim
        if claim is None or claim.node_pool not in found:
            continue
        kind = after.world.market.find(planned_type(claim), claim.node_class)
        shown = kind.capacity if kind is not None else node.node.capacity if node.node is not None else NOTHING
        counted = (claim.capacity or shown) + {NODES: 1}
        if COST_PER_HOUR in (pools[claim.node_pool] or ()):
            counted = counted + {COST_PER_HOUR: price_of(after, node)}
        found[claim.node_pool] = found[claim.node_pool] + counted
    return found


def price_of(after: After, node: ClusterNode) -> int:
    """What a node costs an hour now, in micro-units; 0 where nothing says it."""
    claim = node.claim
    planned = offering_of(claim.annotations) if claim is not None else None
    labels = node.labels
    name = labels.get(INSTANCE_TYPE) or (planned_type(claim) if claim is not None else "")
    pool = claim.node_pool if claim is not None else ""
    kind = after.kind(pool, name) or after.world.market.find(name, claim.node_class if claim is not None else None)
    if kind is None:
        return 0
    zone = labels.get(ZONE) or (planned.zone if planned is not None else "")
    capacity_type = labels.get(CAPACITY_TYPE) or (planned.capacity_type if planned is not None else "")
    reservation = labels.get(RESERVATION) or (planned.reservation if planned is not None else "")
    same = sorted(
        (each for each in kind.offerings if each.capacity_type == capacity_type),
        key=lambda each: (each.reservation != reservation, each.zone != zone, each.price_micro, each.zone),
    )
    return same[0].price_micro if same else 0


def _reserved(after: After) -> Iterator[Violation]:
    """Whether no more nodes take of a reservation than it has instances."""
    taking = defaultdict[str, list[Launch]](list)
    for launch in after.proposal.launches:
        if launch.offering.reservation:
            taking[launch.offering.reservation].append(launch)
    for name, launches in sorted(taking.items()):
        kind = after.kind(launches[0].node_pool, launches[0].offering.instance_type)
        most = next((o.most for o in (kind.offerings if kind else ()) if o.reservation == name), None)
        if most is None:
            continue
        there = sum(_reservation_of(node) == name for node in after.snapshot.nodes)
        there += sum(launch.offering.reservation == name for launch in after.proposal.bought)
        if there + len(launches) > most:
            beyond = [_part(launch) for launch in launches[max(0, most - there) :]]
            expected, got = f"at most {most} nodes of it", f"{there + len(launches)} nodes"
            yield violation(PlanRule.OFFERING, f"reservation {name}", expected, got, *beyond)


def _reservation_of(node: ClusterNode) -> str:
    if node.labels.get(RESERVATION):
        return node.labels[RESERVATION]
    planned = offering_of(node.claim.annotations) if node.claim is not None else None
    return planned.reservation if planned is not None else ""
