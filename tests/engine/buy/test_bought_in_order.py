"""What is bought for pods that go by other pods holds when the scheduler binds them one by one, in queue order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.shapes import queue_order
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT
from kerf.model.plan import Launch, Plan
from kerf.model.pods import RUNNING, Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_node, a_pod, a_pool, an_instance_type
from tests.engine.worlds import planned
from tests.examples import examples

ZONES = ("za", "zb", "zc")


@dataclass
class Spot:
    """A node and the pods on it, as the checker sees them."""

    labels: Mapping[str, str]
    pods: list[Pod] = field(default_factory=list)


def meant(selector: Requirements, pod: Pod) -> bool:
    """All pods here are of one namespace."""
    return selector.unsatisfied_by(pod.labels) is None


def allows(pod: Pod, spot: Spot, spots: Sequence[Spot]) -> bool:
    """Whether the scheduler lets the pod onto the node: every rule by counting all pods again."""
    wanted = pod.spec.node_selector

    def count(key: str, value: str, selector: Requirements) -> int:
        return sum(meant(selector, p) for s in spots if s.labels.get(key) == value for p in s.pods)

    keys = [c.key for c in pod.spec.spread]
    for c in pod.spec.spread:
        counting = [s for s in spots if all(k in s.labels for k in keys) and wanted.unsatisfied_by(s.labels) is None]
        sizes = {
            s.labels[c.key]: sum(
                meant(c.selector, p) for t in counting if t.labels[c.key] == s.labels[c.key] for p in t.pods
            )
            for s in counting
        }
        least = 0 if len(sizes) < c.min_domains else min(sizes.values(), default=0)
        if sizes[spot.labels[c.key]] + meant(c.selector, pod) - least > c.max_skew:
            return False
    terms = pod.spec.pod_affinity.required
    company = [p for s in spots for p in s.pods if all(meant(t.selector, p) for t in terms)]
    is_first = not company and all(meant(t.selector, pod) for t in terms)
    for t in terms:
        near = [s for s in spots if s.labels.get(t.key) == spot.labels[t.key]]
        if not is_first and not any(p in company for s in near for p in s.pods):
            return False
    if any(count(t.key, spot.labels[t.key], t.selector) for t in pod.spec.pod_anti_affinity.required):
        return False
    return not any(
        meant(t.selector, pod) and s.labels[t.key] == spot.labels[t.key]
        for s in spots
        for p in s.pods
        for t in p.spec.pod_anti_affinity.required
    )


def unbound(pods: Sequence[Pod], places: Mapping[str, Spot], spots: Sequence[Spot]) -> list[str]:
    """Pods that cannot be bound where they are planned, tried again as long as any can."""
    waiting = sorted(pods, key=queue_order)
    while waiting:
        left = []
        for pod in waiting:
            spot = places[pod.key]
            if allows(pod, spot, spots):
                spot.pods.append(pod)
            else:
                left.append(pod)
        if len(left) == len(waiting):
            break
        waiting = left
    return [pod.key for pod in waiting]


def spot_of(launch: Launch) -> Spot:
    """The node as it is planned."""
    offering = launch.offering
    return Spot({HOSTNAME: launch.name, ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type})


def goes_by_zone(pod: Pod) -> bool:
    """Whether a constraint of the pod reads zones."""
    spec = pod.spec
    terms = (*spec.pod_affinity.required, *spec.pod_anti_affinity.required)
    return ZONE in {*(term.key for term in terms), *(constraint.key for constraint in spec.spread)}


APPS = st.sampled_from(["a", "b", "c"]).map(lambda app: Requirements.of_labels({"app": app}))
KEYS = st.sampled_from([ZONE, ZONE, HOSTNAME, CAPACITY_TYPE])
TERMS = st.builds(PodAffinityTerm, KEYS, APPS)
SPREADS = st.builds(TopologySpreadConstraint, KEYS, st.integers(1, 2), APPS, min_domains=st.integers(1, 3))
RELATIONS = st.one_of(
    st.just({}),
    st.lists(SPREADS, min_size=1, max_size=2, unique_by=lambda c: c.key).map(lambda found: {"spread": tuple(found)}),
    TERMS.map(lambda term: {"pod_affinity": PodAffinity((term,))}),
    TERMS.map(lambda term: {"pod_anti_affinity": PodAffinity((term,))}),
    st.tuples(SPREADS, TERMS).map(lambda t: {"spread": (t[0],), "pod_anti_affinity": PodAffinity((t[1],))}),
    st.tuples(SPREADS, TERMS).map(lambda t: {"spread": (t[0],), "pod_affinity": PodAffinity((t[1],))}),
)


@st.composite
def workloads(draw: st.DrawFn) -> list[Pod]:
    """Some equal pods of one label, which come at random times."""
    app, given_ = draw(st.sampled_from("abc")), draw(RELATIONS)
    zones = draw(st.sampled_from([(), (), ("za",), ("za", "zb")]))
    selector = Requirements([Requirement.of(ZONE, "In", zones)]) if zones else Requirements()
    first = a_pod("p", labels={"app": app}, cpu=draw(st.integers(1, 3)), **given_)
    first = replace(first, spec=replace(first.spec, node_selector=selector))
    times = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    return [replace(first, name=f"{app}-{n}", created_s=float(at)) for n, at in enumerate(times)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Pod], list[Pod], dict[str, Any]]:
    """Pods that wait, pods that run, and what could be bought beside the nodes of the latter."""
    made = draw(st.lists(workloads(), min_size=1, max_size=4))
    waiting = [replace(pod, name=f"{number}-{pod.name}") for number, pods in enumerate(made) for pod in pods]
    running, nodes = [], []
    for number, zone in enumerate(draw(st.lists(st.sampled_from(ZONES), max_size=3))):
        name = f"n{number}"
        labels = {HOSTNAME: name, ZONE: zone, CAPACITY_TYPE: ON_DEMAND}
        nodes.append(a_node(name, allocatable={"cpu": "100m"}, labels=labels))
        for pod in draw(st.lists(workloads(), max_size=1)):
            running.append(replace(pod[0], name=f"r{number}", node_name=name, phase=RUNNING))
    sold = st.sampled_from([ZONES, ZONES[:2], ZONES[1:]])
    types = [
        an_instance_type(name, cpu=cpu, price=price, zones=draw(sold), capacity_types=(SPOT, ON_DEMAND))
        for name, cpu, price in (("small", 4, "0.2"), ("large", 16, "0.7"))
    ]
    limits = draw(st.sampled_from([None, None, {"nodes": 2}, {"cpu": 24}]))
    capacity_types = draw(st.sampled_from([(ON_DEMAND,), (SPOT, ON_DEMAND)]))
    pools = [a_pool(limits=limits, capacity_types=capacity_types)]
    return waiting, running, {"pools": pools, "types": types, "nodes": nodes}


def checked(plan: Plan, waiting: Sequence[Pod], running: Sequence[Pod], nodes: Sequence[Any]) -> list[str]:
    """The pods of launches that cannot be bound."""
    there = {node.name: Spot(node.labels) for node in nodes}
    for pod in running:
        there[pod.node_name].pods.append(pod)
    new = {launch.name: spot_of(launch) for launch in plan.launches}
    places = {placed.pod: new[launch.name] for launch in plan.launches for placed in launch.pods}
    bought = [pod for pod in waiting if pod.key in places]
    return unbound(bought, places, [*there.values(), *new.values()])


@examples(120)
@given(worlds())
def test_pods_of_launches_can_be_bound_in_queue_order(world: tuple[list[Pod], list[Pod], dict[str, Any]]) -> None:
    """Checked by counting every pod again for each pod; and nodes that pods go to by zone name one zone."""
    waiting, running, market = world
    pools, types, nodes = market["pools"], market["types"], market["nodes"]

    plan = planned([*waiting, *running], pools, types, nodes=nodes)

    assert [] == checked(plan, waiting, running, nodes)
    by_zone = {pod.key for pod in waiting if goes_by_zone(pod)}
    for launch in plan.launches:
        zone = launch.requirements.get(ZONE)
        if any(placed.pod in by_zone for placed in launch.pods):
            assert zone is not None
            assert (1, False) == (len(zone.values), zone.complement)
