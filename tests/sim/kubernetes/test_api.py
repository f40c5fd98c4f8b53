"""The in-memory API behaves like a real one where a controller could notice."""

from collections.abc import Callable
from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, NotFound, WriteRefused
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json
from tests.sim.world import World, budget, config_map, node, pod


@pytest.fixture
def world() -> Any:
    """A fresh API; its loop is closed after the test."""
    built = World()
    yield built
    built.loop.close()


@pytest.fixture
def api(world: World) -> InMemoryApi:
    """The API of `world`."""
    return world.api


def owned(obj: Json, *owners: Json) -> Json:
    """`obj` with owner references."""
    references = [
        {"apiVersion": "v1", "kind": o["kind"], "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}
        for o in owners
    ]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}


def run_ready(api: InMemoryApi, name: str) -> None:
    """Bind a pod to node-a and let it become ready."""
    api.bind("default", name, "node-a")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.patch("Pod", "default", name, {"status": status}, subresource="status")


def metadata_of(obj: Json | None) -> Json:
    """Metadata of an object that must be there."""
    assert obj is not None
    found: Json = obj["metadata"]
    return found


# Creating and reading.


def test_a_new_object_gets_what_the_server_gives(api: InMemoryApi) -> None:
    """uid, creation time, version, generation and the default namespace come from the server."""
    created = api.create(config_map())

    expected = {
        "name": "device-config",
        "namespace": "default",
        "uid": "00000000-0000-4000-8000-000000000001",
        "creationTimestamp": "2026-01-05T07:00:00Z",
        "resourceVersion": "1",
        "generation": 1,
    }
    assert expected == created["metadata"]


def test_the_same_name_twice_is_already_exists(api: InMemoryApi) -> None:
    """409 AlreadyExists, per kind and namespace."""
    api.create(config_map())

    with pytest.raises(AlreadyExists, match="ConfigMap default/device-config already exists"):
        api.create(config_map())


def test_generated_names_are_counted(api: InMemoryApi) -> None:
    """`generateName` gives names that are the same in every run."""
    template = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"generateName": "g5-"}, "spec": {}}

    names = [api.create(template)["metadata"]["name"] for _ in range(2)]

    assert ["g5-00000", "g5-00001"] == names


def test_a_list_is_in_order_of_namespace_and_name(api: InMemoryApi) -> None:
    """Creation order does not show."""
    for name in ("b", "c", "a"):
        api.create(config_map(name))
    api.delete("ConfigMap", "default", "c")

    assert ["a", "b"] == [obj["metadata"]["name"] for obj in api.list("ConfigMap")]


def test_an_admission_hook_may_change_and_refuse(api: InMemoryApi) -> None:
    """Hooks see a new object without uid, in order, and what the caller gave stays as it was."""

    def label(obj: Json) -> None:
        assert "uid" not in obj["metadata"]
        obj["metadata"]["labels"] = {"seen": "yes"}

    def refuse(obj: Json) -> None:
        if obj["metadata"]["name"] == "bad":
            raise ApiError("denied")

    api.admission += [label, refuse]
    given = config_map()

    assert {"seen": "yes"} == api.create(given)["metadata"]["labels"]
    assert "labels" not in given["metadata"]
    with pytest.raises(ApiError, match="denied"):
        api.create(config_map("bad"))


def test_a_pod_is_completed_by_limits_limit_ranges_and_priority_class(api: InMemoryApi) -> None:
    """Requests default to limits, then to the namespace's LimitRange; the class becomes a number."""
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"memory": "1Gi"}}
    api.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr"}, "spec": {"limits": [item]}})
    api.create({"apiVersion": "v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}

    created = api.create(pod(containers=[container], priorityClassName="high"))

    expected = {
        "limits": {"cpu": "2", "nvidia.com/gpu": 1},
        "requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": 1},
    }
    assert expected == created["spec"]["containers"][0]["resources"]
    assert 1000 == created["spec"]["priority"]


def test_an_unknown_priority_class_is_refused(api: InMemoryApi) -> None:
    """As the Priority admission plug-in does."""
    with pytest.raises(ApiError, match="no PriorityClass with name urgent was found"):
        api.create(pod(priorityClassName="urgent"))


# Updating.


def test_an_old_resource_version_is_a_conflict(api: InMemoryApi) -> None:
    """Of two writers who read the same version the second gets 409, and nothing of it is stored."""
    read = api.create(config_map())
    api.update({**read, "data": {"writer": "first"}})

    with pytest.raises(Conflict, match="resourceVersion is 2, not 1"):
        api.update({**read, "data": {"writer": "second"}})
    with pytest.raises(Conflict):
        api.patch("ConfigMap", "default", "device-config", {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}})
    assert {"writer": "first"} == api.list("ConfigMap")[0]["data"]


def test_another_uid_is_a_conflict(api: InMemoryApi) -> None:
    """An object made again under the same name is not the one that was meant."""
    first = api.create(config_map())
    api.delete("ConfigMap", "default", "device-config")
    api.create(config_map())

    with pytest.raises(Conflict, match="uid"):
        api.patch("ConfigMap", "default", "device-config", {"metadata": {"uid": first["metadata"]["uid"]}})


@pytest.mark.parametrize(
    "act",
    [
        lambda api: api.update(config_map()),
        lambda api: api.patch("ConfigMap", "default", "device-config", {}),
        lambda api: api.delete("ConfigMap", "default", "device-config"),
        lambda api: api.evict("default", "web-0"),
        lambda api: api.bind("default", "web-0", "node-a"),
    ],
)
def test_what_is_not_there_is_not_found(api: InMemoryApi, act: Callable[[InMemoryApi], None]) -> None:
    """Every verb but `remove_pod` says 404."""
    with pytest.raises(NotFound, match="not found"):
        act(api)


def test_a_merge_patch_follows_rfc_7386(api: InMemoryApi) -> None:
    """None removes, objects merge, lists are replaced."""
    api.create({**config_map(), "spec": {"keep": 1, "gone": 2, "list": [1, 2], "deep": {"a": 1}}})

    patched = api.patch(
        "ConfigMap", "default", "device-config", {"spec": {"gone": None, "list": [3], "deep": {"b": {"c": None}}}}
    )

    assert {"keep": 1, "list": [3], "deep": {"a": 1, "b": {}}} == patched["spec"]


def test_a_status_write_touches_nothing_else(api: InMemoryApi) -> None:
    """The status sub-resource leaves spec and generation alone, the main one leaves the status alone."""
    read = api.create(node())

    after_status = api.update({**read, "spec": {"unschedulable": True}, "status": {"a": 2}}, subresource="status")
    after_spec = api.patch("Node", "", "node-a", {"spec": {"unschedulable": True}, "status": {"a": 3}})

    assert ({}, {"a": 2}, 1) == (after_status["spec"], after_status["status"], after_status["metadata"]["generation"])
    assert ({"unschedulable": True}, {"a": 2}) == (after_spec["spec"], after_spec["status"])
    assert 2 == after_spec["metadata"]["generation"]


def test_metadata_changes_make_no_new_generation(api: InMemoryApi) -> None:
    """Labels and annotations are not desired state."""
    api.create(node())

    patched = api.patch("Node", "", "node-a", {"metadata": {"labels": {"gpu": "on"}, "generation": 7}})

    assert 1 == patched["metadata"]["generation"]


def test_a_change_of_nothing_makes_no_event(api: InMemoryApi) -> None:
    """A write that changes nothing keeps the version, so that controllers come to rest."""
    read = api.create(node())

    again = api.patch("Node", "", "node-a", {"metadata": {"annotations": None}})

    assert again is read
    assert 1 == len(api.events)


def test_what_was_read_before_a_change_stays_as_it_was(api: InMemoryApi) -> None:
    """Objects are values: a reader's copy never changes under it."""
    read = api.create(node(labels={"gpu": "on"}))

    api.patch("Node", "", "node-a", {"metadata": {"labels": {"gpu": "off"}}})

    assert {"gpu": "on"} == read["metadata"]["labels"]


# Deleting.


def test_a_finalizer_holds_a_deleted_object_back(api: InMemoryApi) -> None:
    """Deletion only marks; the last finalizer's removal makes it true."""
    read = api.create(node(finalizers=["karpenter.sh/termination"]))
    api.delete("Node", "", "node-a")
    api.delete("Node", "", "node-a")
    marked = metadata_of(api.get("Node", "", "node-a"))

    api.patch("Node", "", "node-a", {"metadata": {"finalizers": None}})

    assert "deletionTimestamp" not in read["metadata"]
    assert ("2026-01-05T07:00:00Z", 2) == (marked["deletionTimestamp"], marked["generation"])
    assert api.get("Node", "", "node-a") is None
    assert ["ADDED", "MODIFIED", "DELETED"] == [change.type for change in api.events]


def test_no_finalizer_can_be_added_to_what_is_being_deleted(api: InMemoryApi) -> None:
    """As the API server's validation says."""
    api.create(node(finalizers=["a"]))
    api.delete("Node", "", "node-a")

    with pytest.raises(ApiError, match="no finalizer can be added"):
        api.patch("Node", "", "node-a", {"metadata": {"finalizers": ["a", "b"]}})


def test_a_deletion_mark_cannot_be_taken_back(api: InMemoryApi) -> None:
    """A patch of `deletionTimestamp` is ignored."""
    api.create(node(finalizers=["a"]))
    api.delete("Node", "", "node-a")

    patched = api.patch("Node", "", "node-a", {"metadata": {"deletionTimestamp": None}})

    assert "deletionTimestamp" in patched["metadata"]


def test_a_pod_on_no_node_goes_at_once(api: InMemoryApi) -> None:
    """There is no kubelet that would have to end it."""
    api.create(pod())

    api.delete("Pod", "default", "web-0")

    assert api.get("Pod", "default", "web-0") is None


def test_a_bound_pod_ends_when_its_kubelet_says_so(api: InMemoryApi) -> None:
    """The mark shows when the grace ends; `remove_pod` finishes, and may be repeated."""
    api.create(pod(terminationGracePeriodSeconds=45))
    api.bind("default", "web-0", "node-a")
    api.delete("Pod", "default", "web-0")
    marked = metadata_of(api.get("Pod", "default", "web-0"))

    api.remove_pod("default", "web-0")
    api.remove_pod("default", "web-0")

    assert ("2026-01-05T07:00:45Z", 45) == (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"])
    assert [] == api.list("Pod")


def test_a_second_delete_shortens_the_grace_and_never_lengthens_it(api: InMemoryApi) -> None:
    """As the graceful deletion of the API server."""
    api.create(pod())
    api.bind("default", "web-0", "node-a")
    ends = []
    for grace_s in (None, 60, 10):
        api.delete("Pod", "default", "web-0", grace_s=grace_s)
        ends.append(metadata_of(api.get("Pod", "default", "web-0"))["deletionTimestamp"][-3:-1])
    api.delete("Pod", "default", "web-0", grace_s=0)

    assert ["30", "30", "10"] == ends
    assert [] == api.list("Pod")


def test_deleting_a_node_leaves_its_pods(api: InMemoryApi) -> None:
    """The server deletes no pods for a node; the pod garbage collector does."""
    api.create(node())
    api.create(pod())
    api.bind("default", "web-0", "node-a")

    api.delete("Node", "", "node-a")

    assert ["web-0"] == [obj["metadata"]["name"] for obj in api.list("Pod")]


# Owners.


def test_dependents_follow_their_last_owner(world: World) -> None:
    """Background collection: two owners, and the pod stays until both are gone."""
    api = world.api
    first, second = api.create(config_map("first")), api.create(config_map("second"))
    api.create(owned(pod(), first, second))

    api.delete("ConfigMap", "default", "first")
    world.at(0)
    left = [ref["name"] for ref in metadata_of(api.get("Pod", "default", "web-0"))["ownerReferences"]]
    api.delete("ConfigMap", "default", "second")
    world.at(0)

    assert ["second"] == left
    assert [] == api.list("Pod")


def test_an_object_born_without_its_owner_is_collected(world: World) -> None:
    """A claim whose NodePool vanished while it was being made does not stay."""
    owner = world.api.create(config_map())
    world.api.delete("ConfigMap", "default", "device-config")

    world.api.create(owned(pod(), owner))
    world.at(0)

    assert [] == world.api.list("Pod")


def test_an_owner_made_again_is_another_owner(world: World) -> None:
    """Owner references hold by uid, not by name."""
    owner = world.api.create(config_map())
    world.api.create(owned(pod(), owner))

    world.api.delete("ConfigMap", "default", "device-config")
    world.api.create(config_map())
    world.at(0)

    assert [] == world.api.list("Pod")


def test_an_event_that_has_expired_owns_nothing(world: World) -> None:
    """An API that forgets what was said an hour ago forgets who said it, too."""
    api = InMemoryApi(world.clock, keeps=100)
    said = api.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}})
    world.at(3_601, lambda: api.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "b"}}))
    api.create(owned(pod(), said))
    world.at(3_602)

    assert ["b"] == [each["metadata"]["name"] for each in api.list("Event")]
    assert [] == api.list("Pod")


# Pods.


def test_of_a_pod_tolerations_are_added_and_none_is_taken_away(world: World) -> None:
    """As the validation of a pod's update has it."""
    world.api.create(pod())
    (held,) = world.api.list("Pod")
    more = [*held["spec"]["tolerations"], {"key": "a", "operator": "Exists"}]
    world.api.patch("Pod", "default", "web-0", {"spec": {"tolerations": more}})

    with pytest.raises(WriteRefused, match="only additions are allowed"):
        world.api.patch("Pod", "default", "web-0", {"spec": {"tolerations": more[1:]}})
    assert more == world.api.list("Pod")[0]["spec"]["tolerations"]


def test_binding_sets_node_and_condition_and_clears_the_nomination(world: World) -> None:
    """What the binding sub-resource does."""
    world.api.create(pod())
    world.api.patch("Pod", "default", "web-0", {"status": {"nominatedNodeName": "node-b"}}, subresource="status")

    world.at(5, lambda: world.api.bind("default", "web-0", "node-a"))
    bound = world.api.list("Pod")[0]

    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-05T07:00:05Z"}
    assert "node-a" == bound["spec"]["nodeName"]
    assert {"phase": "Pending", "conditions": [condition]} == bound["status"]


def test_a_pod_is_bound_once(api: InMemoryApi) -> None:
    """Two schedulers: the second gets 409."""
    api.create(pod())
    api.bind("default", "web-0", "node-a")

    with pytest.raises(Conflict, match="already assigned to node node-a"):
        api.bind("default", "web-0", "node-b")


@pytest.mark.parametrize(
    "spec, ready, allowed",
    [
        ({"minAvailable": 2}, 3, 1),
        ({"minAvailable": 3}, 3, 0),
        ({"minAvailable": "50%"}, 3, 1),  # half of the owner's four replicas
        ({"maxUnavailable": 1}, 3, 0),  # four are wanted, three are there
        ({"maxUnavailable": 2}, 3, 1),
        ({"maxUnavailable": "30%"}, 3, 1),  # 1.2 rounds up to 2
        ({"minAvailable": 0}, 3, 3),
    ],
)
def test_a_budget_lets_go_as_many_as_it_says(api: InMemoryApi, spec: Json, ready: int, allowed: int) -> None:
    """Evictions are allowed one by one until the count of ready pods against the owner's replicas forbids the next."""
    api.create(budget(**spec))
    owner = api.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {}})
    api.patch("ReplicaSet", "default", "web", {"spec": {"replicas": 4}})
    for number in range(ready):
        controlled = owned(pod(f"web-{number}"), owner)
        controlled["metadata"]["ownerReferences"][0]["controller"] = True
        api.create(controlled)
        run_ready(api, f"web-{number}")

    let_go = 0
    for number in range(ready):
        try:
            api.evict("default", f"web-{number}")
        except EvictionBlocked:
            break
        let_go += 1

    assert allowed == let_go


def test_an_unready_pod_may_go_while_the_ready_ones_suffice(api: InMemoryApi) -> None:
    """A running pod that never became ready does not hold its node for ever."""
    api.create(budget(minAvailable=1))
    for name in ("ready", "sick"):
        api.create(pod(name))
        run_ready(api, name)
    api.patch("Pod", "default", "sick", {"status": {"conditions": []}}, subresource="status")

    api.evict("default", "sick")

    with pytest.raises(EvictionBlocked, match="needs 1 healthy pods and has 1 currently"):
        api.evict("default", "ready")


# Watching.


def test_listeners_hear_every_change_in_order_and_never_inside_a_call(world: World) -> None:
    """A listener that writes is told of its own write later, after all that came before."""
    heard: list[str] = []

    def listener(type_: str, obj: Json) -> None:
        heard.append(f"{type_} {obj['metadata']['name']}")
        if heard[-1] == "ADDED a":
            world.api.create(config_map("c"))
            heard.append("wrote c")

    def act() -> None:
        world.api.create(config_map("a"))
        world.api.create(config_map("b"))
        heard.append("wrote a and b")

    world.api.subscribe(listener)
    world.at(0, act)
    world.at(1)

    assert ["wrote a and b", "ADDED a", "wrote c", "ADDED b", "ADDED c"] == heard


def test_a_listener_hears_nothing_from_before_it_came(world: World) -> None:
    """Subscribing does not replay; whoever needs the past lists it."""
    heard: list[str] = []
    world.api.create(config_map("before"))
    world.api.subscribe(lambda type_, obj: heard.append(obj["metadata"]["name"]))

    world.at(0, lambda: world.api.create(config_map("after")))

    assert ["after"] == heard
