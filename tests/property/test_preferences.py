"""Preferences cost no pod its place, and what is not dropped holds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.place.preferences import in_order
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, PREFER_NO_SCHEDULE, ZONE, Requirements, Taint
from kerf.model.pods import Pod
from kerf.model.policies import IGNORE, RESPECT
from kerf.model.preferences import PrefersNode, PrefersUntainted
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_node, a_pool, a_snapshot, an_instance_type
from tests.engine.worlds import some
from tests.examples import examples

BOUNDED = examples(60, derandomize=True)
Draw = st.DrawFn
ZONES = ("za", "zb")
MARKET = a_market(
    an_instance_type("small", cpu=2, price="0.2", zones=ZONES),
    an_instance_type("large", cpu=8, price="0.7", zones=ZONES),
)
SLOW = Taint("slow", effect=PREFER_NO_SCHEDULE)
APPS = st.sampled_from(["a", "b"]).map(lambda app: Requirements.of_labels({"app": app}))
KEYS = st.sampled_from([ZONE, HOSTNAME])
TERMS = st.builds(PodAffinityTerm, KEYS, APPS)
WEIGHED = st.lists(st.tuples(st.integers(1, 3), TERMS), max_size=2).map(tuple)


@st.composite
def workloads(draw: Draw, number: int) -> list[Pod]:
    """A few equal pods with preferences, some with required constraints beside them."""
    wanted = st.sampled_from(["za", "zb", "nowhere"]).map(lambda zone: Requirements.of_labels({ZONE: zone}))
    asked: dict[str, Any] = {
        "cpu": draw(st.sampled_from(["500m", "1500m"])),
        "labels": {"app": draw(st.sampled_from("ab"))},
        "preferred": tuple(draw(st.lists(st.tuples(st.integers(1, 3), wanted), max_size=2))),
        "pod_affinity": PodAffinity(preferred=draw(WEIGHED)),
        "pod_anti_affinity": PodAffinity(tuple(draw(st.lists(TERMS, max_size=1))), draw(WEIGHED)),
        "spread": tuple(
            draw(st.lists(st.builds(TopologySpreadConstraint, KEYS, st.just(1), APPS, st.booleans()), max_size=2))
        ),
    }
    return some(draw(st.integers(1, 4)), f"w{number}", **asked)


@st.composite
def clusters(draw: Draw) -> ClusterSnapshot:
    """A few workloads that wait, small nodes, and pools with and without limits and taints."""
    pods = [pod for number in range(draw(st.integers(1, 3))) for pod in draw(workloads(number))]
    limits = draw(st.sampled_from([None, {"cpu": 4}, {"cpu": 10}]))
    taints = st.sampled_from([(), (SLOW,)])
    nodes = [
        a_node(f"n{number}", labels={HOSTNAME: f"n{number}", ZONE: zone}, allocatable={"cpu": 2}, taints=draw(taints))
        for number, zone in enumerate(draw(st.lists(st.sampled_from(ZONES), max_size=2)))
    ]
    return a_snapshot(pools=[a_pool(limits=limits, taints=draw(taints))], nodes=nodes, pods=pods)


def decided(snapshot: ClusterSnapshot, preferences: str = RESPECT) -> Decision:
    """The decision on the market of this file."""
    return decide(World(snapshot, MARKET), Options(with_bound=False, preferences=preferences))


@BOUNDED
@given(clusters())
def test_preferences_leave_no_more_pods_without_a_place(snapshot: ClusterSnapshot) -> None:
    """Respected, they serve at least as many pods as ignored: a preference may cost a node and never a place."""
    assert decided(snapshot).unserved <= decided(snapshot, IGNORE).unserved


@BOUNDED
@given(clusters())
def test_what_is_not_dropped_holds(snapshot: ClusterSnapshot) -> None:
    """Preferences are dropped from the first on, and of those of node affinity the first that is left holds."""
    made = decided(snapshot)
    zones = {placed.pod: launch.offering.zone for launch in made.launches for placed in launch.pods}
    zones |= {placed.pod.pod: held.node.labels[ZONE] for placed, held in _on_nodes(made, snapshot)}
    for pod in snapshot.pending:
        order, dropped = in_order(pod.spec), made.dropped.get(pod.key, ())
        assert order[: len(dropped)] == tuple(each for each in dropped if not isinstance(each, PrefersUntainted))
        kept = [each for each in order[len(dropped) :] if isinstance(each, PrefersNode)]
        if kept and pod.key in zones:
            assert kept[0].labels.unsatisfied_by({ZONE: zones[pod.key]}) is None


def _on_nodes(made: Decision, snapshot: ClusterSnapshot) -> list[tuple[Any, Any]]:
    return [(placed, snapshot.node(placed.node)) for placed in made.placements]
