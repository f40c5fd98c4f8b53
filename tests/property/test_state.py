"""A state that has seen many events must equal one that has seen the outcome only."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, PREDICTED_DEVICES
from kerf.model.nodes import Node
from kerf.model.promises import devices_text
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, Deleted, Event, ResourceQuota, Upserted, Watched, key_of
from kerf.sharing.family import SHARING
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import a_claim, a_node, a_pod, a_pool, cards
from tests.engine.worlds import HAMI, a_hami_node
from tests.examples import examples

NAMES = st.sampled_from(["a", "a", "b"])
IDS = st.sampled_from(["", "i-1", "i-1", "i-2"])
VERSIONS = st.sampled_from(["1", "2"])
CONFIG = "nvidia: {resourceCountName: example.com/card, resourceMemoryName: example.com/mib, deviceSplitCount: 4}"
BOOKED = {ALLOCATED: "gpu-0,NVIDIA,8000,30:;"}


def a_node_of(name: str, provider_id: str, cards_: int, version: str) -> Node:
    """A node with so many cards in its register; with none it has no register, with more than one no label."""
    node = a_node(name, provider_id=provider_id, resource_version=version, labels=HAMI if cards_ else {})
    return a_hami_node(node, cards_) if cards_ == 1 else node


def a_claim_of(name: str, **given: Any) -> Watched:
    """A claim, whose conditions say that its node has started, or has not."""
    note = {PREDICTED_DEVICES: devices_text(cards(1))}
    stages = (LAUNCHED, INITIALIZED) if given.pop("is_started") else (LAUNCHED,)
    return a_claim(name, labels=HAMI, annotations=note, reached=stages, **given)


def a_pod_of(name: str, **given: Any) -> Watched:
    """A pod, perhaps with HAMi's record."""
    booked = given.pop("booked")
    record = {NODE: booked, **BOOKED} if booked else {}
    return a_pod(name, uid=f"uid-{name}", annotations=record, **given)


OBJECTS: st.SearchStrategy[Watched] = st.one_of(
    st.builds(a_node_of, NAMES, IDS, st.sampled_from([0, 1, 2]), VERSIONS),
    st.builds(
        a_claim_of,
        NAMES,
        provider_id=IDS,
        node_name=st.sampled_from(["", "a", "b"]),
        pool=st.sampled_from(["pool", "other"]),
        is_started=st.booleans(),
        capacity=st.sampled_from([Resources(), Resources({"cpu": 4000, "nvidia.com/gpu": 0})]),
        resource_version=VERSIONS,
    ),
    st.builds(
        a_pod_of,
        NAMES,
        namespace=st.sampled_from(["default", "default-2", "team"]),
        node_name=st.sampled_from(["", "", "a", "b"]),
        booked=st.sampled_from(["", "a", "b"]),
        phase=st.sampled_from(["Pending", "Running", "Succeeded"]),
        deleted_s=st.sampled_from([None, 5.0]),
        gpu=st.sampled_from([1, 2]),
        resource_version=VERSIONS,
    ),
    st.builds(a_pool, st.sampled_from(["pool", "other"]), annotations=st.sampled_from([{}, {SHARING: "whole"}])),
    st.builds(
        lambda text: ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": text}),
        st.sampled_from([CONFIG, "nvidia: {}"]),
    ),
    st.builds(
        ResourceQuota, st.sampled_from(["default", "team"]), st.just("q"), st.just({"limits.nvidia.com/gpumem": 9})
    ),
)
EVENTS = st.lists(
    st.tuples(st.sampled_from([Upserted, Upserted, Upserted, Deleted]), OBJECTS, st.booleans()),
    min_size=10,
    max_size=25,
)
"""What happens to which object, and whether somebody looks afterwards."""


def asked(state: ClusterState) -> list[object]:
    """Everything that can be asked of it."""
    nodes = [node for name in "ab" if (node := state.node(name)) is not None]
    return [
        state.snapshot(0),
        state.pods(),
        state.pending(),
        state.claims(),
        [state.pods_on(name) for name in "ab"],
        [state.claim_of(node) for node in nodes],
        [(state.node_of(claim), state.family_of(state.node_of(claim), claim)) for claim in state.claims()],
        [(state.claims_of(pool), state.counted(pool)) for pool in ("pool", "other")],
    ]


def fresh(held: dict[tuple[str, str], Watched]) -> ClusterState:
    """A state that has seen these objects and nothing else."""
    state = ClusterState()
    for key in sorted(held):
        state.apply(Upserted(held[key]))
    return state


@examples(250, derandomize=True, database=None)
@given(EVENTS)
def test_a_state_equals_a_fresh_one_with_the_same_objects(given_: list[Any]) -> None:
    """Whatever has come and gone before, and whenever somebody has looked meanwhile."""
    state = ClusterState()
    held: dict[tuple[str, str], Watched] = {}
    for type_, value, is_looked_at in given_:
        event: Event = type_(value)
        state.apply(event)
        held.pop(key_of(value), None)
        if isinstance(event, Upserted):
            held[key_of(value)] = value
        if is_looked_at:
            assert asked(fresh(held)) == asked(state)
