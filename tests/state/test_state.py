"""ClusterState: events in, one joined snapshot out."""

import json
from dataclasses import replace

import pytest

from kerf.errors import DecodeError
from kerf.model.evidence import ClusterPolicy
from kerf.model.nodeclaim import (
    LAUNCHED,
    OBSERVED_DEVICES,
    PLANNED_PODS,
    PREDICTED_DEVICES,
    REGISTERED,
    REGISTERED_LESS,
    NodeClaim,
)
from kerf.model.pods import RUNNING
from kerf.model.promises import Promises, devices_text, written
from kerf.model.snapshot import ConfigMap, Deleted, Event, ResourceQuota, Synced, Upserted, Watched
from kerf.sharing.family import Unreadable
from kerf.sharing.hami.records import ALLOCATED, HANDSHAKE, NODE, REGISTER
from kerf.sharing.registry import configured
from kerf.state import (
    ClusterState,
    noted_observations,
    observed_memory,
)
from kerf.testing.builders import NOON_S, a_claim, a_node, a_pod, a_pool, cards, resources
from tests.engine.worlds import HAMI, a_hami_node, a_hami_pool, a_slice, joined, registered_cards, seen

SLICED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
PREDICTED = {PREDICTED_DEVICES: devices_text(cards(1))}


def test_node_and_claim_are_joined_by_provider_id() -> None:
    """Names do not matter; a claim whose instance has not registered stands alone under its own name."""
    snapshot = seen(a_node("ip-10-0-0-7", provider_id="i-1"), a_claim("a", provider_id="i-1"), a_claim("b"))

    node, alone = joined(snapshot, "ip-10-0-0-7"), joined(snapshot, "b")

    assert node.claim is not None
    assert "a" == node.claim.name
    assert alone.node is None
    assert ["b", "ip-10-0-0-7"] == [n.name for n in snapshot.nodes]


def test_two_empty_provider_ids_are_not_equal() -> None:
    """A claim that was not launched is no node's."""
    snapshot = seen(a_node("foreign"), a_claim("new"))

    assert joined(snapshot, "foreign").claim is None
    assert joined(snapshot, "new").node is None


def test_the_claims_that_were_bought_for_a_pod_are_found_by_its_name() -> None:
    """As long as they promise it; a claim that goes, or that a person has broken, is bought for none."""
    state = ClusterState()
    first, second = (a_claim(name, annotations=written(Promises({"default/p": (), "default/q": ()}))) for name in "ab")
    for claim in (first, second):
        state.apply(Upserted(claim))
    assert ["a", "b"] == [claim.name for claim in state.claims_for("default/p")]

    state.apply(Upserted(replace(first, annotations=written(Promises({"default/q": ()})), resource_version="2")))
    assert ["b"] == [claim.name for claim in state.claims_for("default/p")]
    assert ["a", "b"] == [claim.name for claim in state.claims_for("default/q")]

    state.apply(Upserted(replace(second, annotations={PLANNED_PODS: "["}, resource_version="2")))
    state.apply(Deleted(first))
    assert () == state.claims_for("default/p") == state.claims_for("default/q")


def test_order_and_repetition_of_events_do_not_matter() -> None:
    """The same objects give the same snapshot."""
    objects: list[Watched] = [
        a_node(provider_id="i-1"),
        a_claim(provider_id="i-1"),
        a_pool(),
        a_pod("a"),
        a_pod("b", node_name="node"),
    ]

    assert seen(*objects) == seen(*reversed(objects)) == seen(*objects, *objects)


def test_a_deleted_object_is_gone() -> None:
    """Deleting what is not known does no harm."""
    state = ClusterState()
    state.apply(Upserted(a_pod("a")))
    state.apply(Deleted(a_pod("a", cpu=1)))
    state.apply(Deleted(a_pod("b")))

    assert () == state.pods()
    assert not state.is_synced
    state.apply(Synced())
    assert state.is_synced


def test_pending_pods_are_those_that_wait() -> None:
    """Neither bound, nor ended, nor being deleted."""
    pods = [a_pod("a"), a_pod("b", node_name="node"), a_pod("c", phase="Failed"), a_pod("d", deleted_s=NOON_S)]

    assert ["default/a"] == [pod.key for pod in seen(*pods).pending]


def test_what_each_decision_asks_of_a_pod_that_waits_is_known_when_it_has_come() -> None:
    """A decision that is due need not find it for all pods of a burst; of pods that have a node none asks it."""
    waiting, bound = a_pod("a"), a_pod("b", node_name="node")
    seen(waiting, bound)

    assert {"key", "queue_order", "mark"} <= vars(waiting).keys()
    assert {"queue_order", "mark"}.isdisjoint(vars(bound))


def test_what_a_claim_predicts_holds_until_initialized() -> None:
    """A node without a register counts with the predicted cards while its claim starts, and with none afterwards."""
    node = a_node(labels=HAMI, provider_id="i-1")
    starting = a_claim(provider_id="i-1", reached=(LAUNCHED, REGISTERED), annotations=PREDICTED)

    waiting = joined(seen(node, starting))
    started = joined(seen(node, replace(starting, conditions=a_claim().conditions)))

    assert ([22888], False) == ([d.memory_mib for d in waiting.devices], waiting.devices_observed)
    assert () == started.devices


def test_the_register_is_believed_before_the_prediction() -> None:
    """A card that registered less is planned with that, also before Initialized."""
    node = a_hami_node(a_node(provider_id="i-1"), memory_mib=22000)
    starting = a_claim(provider_id="i-1", reached=(LAUNCHED,), annotations=PREDICTED)

    found = joined(seen(node, starting))

    assert ([22000], True, "hami") == ([d.memory_mib for d in found.devices], found.devices_observed, found.family)


def test_slices_of_bound_pods_are_taken_off_their_card() -> None:
    """By HAMi's record on the pod, else by what it asks."""
    pod = a_slice(gpumem=8000, cores=30, uid="u", scheduler_name="hami-scheduler", node_name="node", phase=RUNNING)

    card = joined(seen(a_hami_node(a_node()), pod)).devices[0]

    assert (14888, 70) == (card.free_memory_mib, card.free_cores)


def test_a_pending_pod_that_hami_has_booked_reserves_its_slice() -> None:
    """HAMi writes node and card before it binds: nobody else may be planned there."""
    record = {NODE: "node", ALLOCATED: "gpu-0,NVIDIA,8000,30:;"}
    pod = a_slice(gpumem=8000, cores=30, uid="u", scheduler_name="hami-scheduler", annotations=record)

    card = joined(seen(a_hami_node(a_node()), pod)).devices[0]

    assert (14888, 70) == (card.free_memory_mib, card.free_cores)


def test_an_unreadable_register_is_a_problem_of_its_node_alone() -> None:
    """The text says where; other nodes are read."""
    broken = a_node("broken", labels=HAMI, annotations={REGISTER: "{oops"})

    snapshot = seen(broken, a_hami_node(a_node("whole")))

    problem = joined(snapshot, "broken").problem
    assert isinstance(problem, Unreadable)
    assert REGISTER in problem.error
    assert () == joined(snapshot, "broken").devices
    assert None is joined(snapshot, "whole").problem


def test_the_pool_says_which_family_has_the_cards() -> None:
    """Its annotation speaks for nodes that are not there yet; a claim in flight predicts with that family."""
    pool = a_pool(annotations={"kerf.dev/gpu-sharing": "hami"})
    claim = a_claim(reached=(), annotations=PREDICTED)

    assert "hami" == joined(seen(pool, claim), "claim").family
    assert "whole" == joined(seen(a_pool(), claim), "claim").family


def test_quotas_carry_what_is_used() -> None:
    """MiB and cores of the namespace's pods, as HAMi's records state them."""
    state = ClusterState()
    record = {NODE: "node", ALLOCATED: "gpu-0,NVIDIA,8000,30:;"}
    for value in (
        a_slice("mine", gpumem=8000, annotations=record, uid="u"),
        a_slice("theirs", namespace="other", gpumem=8000, annotations=record, uid="v"),
        ResourceQuota("default", "gpu", {"limits.nvidia.com/gpumem": 10000}),
    ):
        state.apply(Upserted(value))

    used = state.snapshot(NOON_S).quotas[0].used

    assert (8000, 30) == (used["limits.nvidia.com/gpumem"], used["limits.nvidia.com/gpucores"])


def test_objects_are_found_by_name() -> None:
    """None for what is not there."""
    state = ClusterState()
    node, claim, pod = a_node(provider_id="i-1"), a_claim(provider_id="i-1", node_name="node"), a_pod(node_name="node")
    for value in (node, claim, pod):
        state.apply(Upserted(value))

    assert (node, claim) == (state.node_of(claim), state.claim_of(node))
    assert ((pod,), pod) == (state.pods_on("node"), state.pod("default/p"))
    assert (node, claim, pod) == (state.node("node"), state.claim("claim"), state.find("Pod", "default/p"))
    assert (None, None, None) == (state.node("x"), state.claim("x"), state.pod("x"))
    assert state.node_of(replace(claim, provider_id="")) is None
    assert "whole" == state.family_of(node, claim).name


def test_a_reused_node_name_is_not_the_claims_node() -> None:
    """A node of the claim's node name with another instance behind it is somebody else's."""
    state = ClusterState()
    state.apply(Upserted(a_node("node", provider_id="i-2")))
    state.apply(Upserted(a_node("other", provider_id="i-1")))

    found = state.node_of(a_claim(provider_id="i-1", node_name="node"))

    assert found is not None
    assert "other" == found.name


def test_what_a_card_registered_is_remembered_until_a_node_proves_more() -> None:
    """The pool's note holds for its types; one initialised node with the full card outweighs it."""
    noted = a_hami_pool(own_annotations={OBSERVED_DEVICES: json.dumps({"m5.xlarge": 22500, "old": 1})})
    proven = seen(a_hami_node(a_node("a", provider_id="i-1")), a_claim("a", provider_id="i-1", annotations=PREDICTED))
    starting = seen(a_claim(reached=(), annotations=PREDICTED), a_hami_node(a_node("foreign")))

    assert {("pool", "m5.xlarge"): 22500, ("pool", "old"): 1} == observed_memory([noted], starting.nodes)
    assert {("pool", "m5.xlarge"): 22888, ("pool", "old"): 1} == observed_memory([noted], proven.nodes)
    assert {} == observed_memory([], proven.nodes)


def test_a_node_that_is_kept_with_less_proves_nothing() -> None:
    """It has initialised, and not with what was promised; nothing is predicted of it any more either."""
    noted = a_pool(own_annotations={OBSERVED_DEVICES: json.dumps({"m5.xlarge": 22500})})
    node = a_hami_node(a_node(provider_id="i-1"), memory_mib=22500)
    kept = a_claim(provider_id="i-1", annotations={**PREDICTED, REGISTERED_LESS: "22888 MiB were predicted"})
    starting = replace(kept, conditions=a_claim(reached=(LAUNCHED, REGISTERED)).conditions)

    assert {("pool", "m5.xlarge"): 22500} == observed_memory([noted], seen(node, kept).nodes)
    assert () == joined(seen(a_node(labels=HAMI, provider_id="i-1"), starting)).devices


@pytest.mark.parametrize("text", ["{", "[]", '{"a": "x"}', "3"])
def test_a_broken_note_is_no_note(text: str) -> None:
    """As if nothing had been observed."""
    assert {} == noted_observations(a_pool(own_annotations={OBSERVED_DEVICES: text}))


def test_a_configuration_that_cannot_be_read_leaves_the_last_good_one() -> None:
    """One bad ConfigMap must not stop decisions about everything else."""
    state = ClusterState()
    good = ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": "nvidia: {deviceSplitCount: 4}"})
    state.apply(Upserted(good))
    with pytest.raises(DecodeError):
        state.apply(Upserted(replace(good, data={"device-config.yaml": "nvidia: ["})))

    assert (good,) == state.snapshot(0).config_maps


def hami_map(count: int | str, namespace: str = "kube-system") -> ConfigMap:
    """HAMi's ConfigMap with that split count; with a text, it cannot be read."""
    text = f"nvidia: {{deviceSplitCount: {count}}}"
    return ConfigMap(namespace, "hami-scheduler-device", {"device-config.yaml": text})


def test_a_tenants_config_map_is_nobodys_configuration() -> None:
    """Whatever it is called and says; the namespaces of plugins are a setting."""
    state, own = ClusterState(), ClusterState(plugin_namespaces=("team-a",))
    for each in (hami_map(4), hami_map(9, "team-a"), hami_map("x", "team-b")):
        state.apply(Upserted(each))
        own.apply(Upserted(each))

    assert (hami_map(4),) == state.snapshot(0).config_maps
    assert (hami_map(9, "team-a"),) == own.snapshot(0).config_maps
    assert () == state.unreadable_config_maps()


def test_a_config_map_that_contradicts_another_leaves_the_last_good_form() -> None:
    """Of both; a plan can be made as before, and the map is remembered as one that cannot be read."""
    state = ClusterState()
    state.apply(Upserted(hami_map(4)))
    with pytest.raises(DecodeError, match="differ"):
        state.apply(Upserted(hami_map(5, "hami-system")))

    snapshot = state.snapshot(0)
    assert (hami_map(4),) == snapshot.config_maps
    assert configured(snapshot.config_maps)
    assert (hami_map(5, "hami-system"),) == state.unreadable_config_maps()


def test_a_contradiction_ends_with_either_map() -> None:
    """Deleted or changed: what was refused counts then, and nothing is left as unreadable."""
    for change in (Deleted(hami_map(4)), Upserted(hami_map(5))):
        state = ClusterState()
        state.apply(Upserted(hami_map(4)))
        with pytest.raises(DecodeError):
            state.apply(Upserted(hami_map(5, "hami-system")))
        state.apply(change)

        assert hami_map(5, "hami-system") in state.snapshot(0).config_maps
        assert () == state.unreadable_config_maps()


def test_two_maps_that_change_alike_are_taken_together() -> None:
    """Each contradicts the old form of the other."""
    state = ClusterState()
    both = ("hami-system", "kube-system")
    for namespace in both:
        state.apply(Upserted(hami_map(4, namespace)))
    with pytest.raises(DecodeError):
        state.apply(Upserted(hami_map(8, both[0])))
    state.apply(Upserted(hami_map(8, both[1])))

    assert tuple(hami_map(8, namespace) for namespace in both) == state.snapshot(0).config_maps


# Who owns the cards.


def test_a_register_says_that_hami_has_the_cards_whatever_the_labels() -> None:
    """Kubelet shows ten times as many GPUs as there are cards; each registered card is one."""
    shown = resources(gpu=10, cpu=4)
    node = replace(a_node(), annotations={REGISTER: registered_cards(1)}, allocatable=shown, capacity=shown)

    assert ("hami", 1) == (joined(seen(node)).family, len(joined(seen(node)).devices))


def test_a_register_that_hami_has_given_up_says_nothing() -> None:
    """Its scheduler leaves the register of a node whose device plugin is gone, and says so in the handshake."""
    shown = resources(gpu=1, cpu=4)
    gone = {REGISTER: registered_cards(1), HANDSHAKE: "Deleted_2026.11.01 10:00:00"}
    node = replace(a_node(), annotations=gone, allocatable=shown, capacity=shown)

    assert "whole" == joined(seen(node)).family


def test_what_a_node_says_of_its_cards_goes_before_its_pool() -> None:
    """The annotation `kerf.dev/gpu-sharing` of the node itself."""
    pool = a_pool(annotations={"kerf.dev/gpu-sharing": "hami"})
    shown = resources(gpu=1, cpu=4)
    node = replace(a_node(annotations={"kerf.dev/gpu-sharing": "none"}), allocatable=shown, capacity=shown)

    assert "whole" == joined(seen(pool, node, a_claim("c", node_name="node"))).family


def test_evidence_comes_and_goes_with_objects() -> None:
    """A5: a register on one node makes HAMi known for pools; so does a pod that asks for slices, until it ends."""
    maps = ConfigMap("gpu-operator", "time-slicing-config", {"default": SLICED})
    labelled, sliced = a_node("n", labels=HAMI), a_slice("p", gpumem=5)
    state = ClusterState()

    def owner() -> str:
        return state.family_of(labelled, None).name

    state.apply(Upserted(maps))
    assert "time-slicing" == owner()
    state.apply(Upserted(a_hami_node(a_node("other"))))
    assert "hami" == owner()
    state.apply(Deleted(a_node("other")))
    assert "time-slicing" == owner()
    state.apply(Upserted(sliced))
    assert "hami" == owner()
    state.apply(Upserted(replace(sliced, phase="Succeeded")))
    assert "time-slicing" == owner()


def test_pods_that_come_and_go_rejoin_no_node_where_hami_is_installed() -> None:
    """The evidence that a pod adds changes nothing there, so no event goes through all nodes."""
    state = ClusterState()
    state.apply(Upserted(ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": "nvidia: {}"})))
    state.apply(Upserted(a_node("n")))
    before = state.snapshot(NOON_S).nodes

    state.apply(Upserted(a_slice("p", gpumem=5)))

    assert state.snapshot(NOON_S).evidence.asked
    assert before is state.snapshot(NOON_S).nodes


def test_a_cluster_policy_counts_while_it_is_there() -> None:
    """C1: without a ConfigMap named in it, the operator's plugin shares nothing."""
    state, policy = ClusterState(), ClusterPolicy("cluster-policy")
    state.apply(Upserted(ConfigMap("gpu-operator", "time-slicing-config", {"any": SLICED})))

    assert "time-slicing" == state.family_of(a_node("n"), None).name
    state.apply(Upserted(policy))
    assert "whole" == state.family_of(a_node("n"), None).name
    state.apply(Deleted(policy))
    assert "time-slicing" == state.family_of(a_node("n"), None).name


def claim_of(state: ClusterState) -> NodeClaim:
    """The claim of these tests."""
    claim = state.claim("c")
    assert claim is not None
    return claim


def test_a_watch_that_lags_behind_our_write_does_not_take_it_back() -> None:
    """The reply of a write is newer than what the watch still has to show; from its own form on the watch counts."""
    state, created = ClusterState(), a_claim("c", uid="u", resource_version="5")
    state.apply(Upserted(created))
    state.note(replace(created, provider_id="i-1", resource_version="9"))

    state.apply(Upserted(replace(created, resource_version="7")))
    assert "i-1" == claim_of(state).provider_id

    state.apply(Upserted(replace(created, provider_id="i-1", resource_version="9")))
    state.apply(Upserted(replace(created, provider_id="i-2", resource_version="10")))
    assert "i-2" == claim_of(state).provider_id


def test_a_deletion_is_not_taken_back_by_the_form_that_was_written_before_it() -> None:
    """A deletion gives no form back, so its note bears the version of the write before it."""
    state, created = ClusterState(), a_claim("c", uid="u", resource_version="5")
    state.apply(Upserted(created))
    state.note(replace(created, provider_id="i-1", deleted_s=60.0, resource_version="9"))

    state.apply(Upserted(replace(created, provider_id="i-1", resource_version="9")))
    assert claim_of(state).is_deleting

    state.apply(Upserted(replace(created, deleted_s=61.0, resource_version="10")))
    assert 61.0 == claim_of(state).deleted_s


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (Deleted(a_claim("c", uid="u", resource_version="7")), None),
        (Upserted(a_claim("c", uid="another", resource_version="11", provider_id="i-3")), "i-3"),
        (Upserted(a_claim("c", uid="u", resource_version="opaque", provider_id="i-4")), "i-4"),
    ],
    ids=["gone", "made again", "a version that is no number"],
)
def test_what_the_watch_alone_can_know_counts_at_once(event: Event, found: str | None) -> None:
    """An end, another object of that name, and what cannot be compared."""
    state, created = ClusterState(), a_claim("c", uid="u", resource_version="5")
    state.apply(Upserted(created))
    state.note(replace(created, provider_id="i-1", resource_version="9"))
    state.apply(event)

    claim = state.claim("c")
    assert found == (None if claim is None else claim.provider_id)
