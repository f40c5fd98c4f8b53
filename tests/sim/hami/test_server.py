"""Our HAMi between kube-scheduler and API server: bookings before any watch, the node's lock, the webhook, HTTP."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, Deleted, Event, ResourceQuota, Synced, Upserted
from kerf.sharing.hami.records import ALLOCATED, BIND_PHASE, BIND_TIME, LOCK, NODE, REGISTER, TIME
from kerf.sim.hami.extender import follow
from kerf.sim.hami.server import application, review, webhook_configuration
from kerf.sim.objects import Json
from tests.sim.cluster import cpu_pod, gpu_pod
from tests.sim.hami.desk import NOON_S, Desk, event_of

NOON = "2026-01-05T12:00:00Z"
CARD = 24_000
CONTENTION = "node a has been locked within 5m0s: node lock contention"


@pytest.fixture
def desk() -> Desk:
    """Nodes a and b with a card each; of equal nodes the first by name."""
    made = Desk()
    made.node("a", CARD)
    made.node("b", CARD)
    return made


# The filter and its cache.


def test_a_placed_pod_carries_hami_s_record(desk: Desk) -> None:
    """Node, time and cards are on the pod before anything is bound, and the answer is the one node."""
    answer = desk.filter(desk.pod("p", gpumem=8000))

    written = desk.annotations("Pod", "p")
    assert ["a"] == answer["NodeNames"]
    assert ("a", str(int(NOON_S)), "GPU-a-0,NVIDIA,8000,0:;") == (written[NODE], written[TIME], written[ALLOCATED])


def test_a_booking_counts_before_any_watch_shows_it(desk: Desk) -> None:
    """Three pods of 8000 MiB fill a card of 24000 although the cache has heard of none of them."""
    chosen = [desk.filter(desk.pod(f"p{i}", gpumem=8000))["NodeNames"] for i in range(4)]

    assert [["a"], ["a"], ["a"], ["b"]] == chosen


def test_a_pod_that_asks_again_gives_its_first_share_back(desk: Desk) -> None:
    """kube-scheduler asks anew after a bind that failed."""
    pod = desk.pod("p", gpumem=20000)

    assert [["a"], ["a"]] == [desk.filter(pod, "a")["NodeNames"] for _ in range(2)]


def test_a_booking_that_the_watch_shows_ends_with_its_pod(desk: Desk) -> None:
    """From then on the pod alone decides: once it is gone, its card is free."""
    desk.filter(desk.pod("p", gpumem=20000), "a")
    desk.watch()
    desk.objects.delete("Pod", "default", "p")
    desk.watch()

    assert ["a"] == desk.filter(desk.pod("q", gpumem=20000), "a")["NodeNames"]


def test_a_booking_is_not_undone_by_an_older_form_of_its_pod(desk: Desk) -> None:
    """The watch lags: it tells of the pod as it was before it was placed."""
    pod = desk.pod("p", gpumem=20000)
    desk.filter(pod, "a")
    desk.cache.apply(event_of(Upserted, pod))

    assert {"a": "1/1 CardInsufficientMemory"} == desk.filter(desk.pod("q", gpumem=20000), "a")["FailedNodes"]


def test_a_booking_ends_when_its_pod_goes_unseen(desk: Desk) -> None:
    """Deleted before the watch had shown the record; the deletion of an earlier pod of that name does not count."""
    pod = desk.pod("p", gpumem=20000)
    desk.filter(pod, "a")
    desk.cache.apply(event_of(Deleted, {**pod, "metadata": {**pod["metadata"], "uid": "an earlier one"}}))
    assert desk.filter(desk.pod("q", gpumem=20000), "a")["NodeNames"] is None

    desk.cache.apply(event_of(Deleted, pod))
    assert ["a"] == desk.filter(desk.pod("r", gpumem=20000), "a")["NodeNames"]


def test_a_booking_that_is_never_confirmed_is_dropped_after_five_minutes(desk: Desk) -> None:
    """Its write may have been lost."""
    desk.filter(desk.pod("p", gpumem=20000), "a")
    later = desk.pod("q", gpumem=20000)

    desk.time.at_s += 299
    assert desk.filter(later, "a")["NodeNames"] is None
    desk.time.at_s += 1
    assert ["a"] == desk.filter(later, "a")["NodeNames"]


def test_a_record_that_cannot_be_written_books_nothing(desk: Desk) -> None:
    """The attempt fails with the server's words, and the next pod finds the card free."""
    desk.api.broken = "patch"
    answer = desk.filter(desk.pod("p", gpumem=20000), "a")
    assert (None, "the server is away") == (answer["NodeNames"], answer["Error"])

    desk.api.broken = ""
    assert ["a"] == desk.filter(desk.pod("q", gpumem=20000), "a")["NodeNames"]


def test_a_record_is_not_written_on_a_later_pod_of_that_name(desk: Desk) -> None:
    """The pod that was asked about is gone, and another has its name."""
    old = desk.pod("p", gpumem=20000)
    desk.objects.delete("Pod", "default", "p")
    desk.pod("p", gpumem=20000)

    assert desk.filter(old, "a")["Error"]
    assert NODE not in desk.annotations("Pod", "p")


def test_an_ended_pod_holds_nothing(desk: Desk) -> None:
    """Its record stays on it for people to read."""
    desk.filter(desk.pod("p", gpumem=20000), "a")
    desk.objects.patch("Pod", "default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    desk.watch()

    assert ["a"] == desk.filter(desk.pod("q", gpumem=20000), "a")["NodeNames"]


def test_equal_nodes_are_drawn_by_lot_and_unequal_ones_are_not() -> None:
    """Of two idle nodes HAMi takes either; as soon as one is used, its binpack takes that one."""
    first = set()
    for seed in range(10):
        desk = Desk(random.Random(seed))
        desk.node("a", CARD)
        desk.node("b", CARD)
        chosen = [desk.filter(desk.pod(f"p{i}", gpumem=8000))["NodeNames"][0] for i in range(3)]
        first.add(chosen[0])
        assert 1 == len(set(chosen))

    assert {"a", "b"} == first


def test_a_pin_is_obeyed(desk: Desk) -> None:
    """`nvidia.com/use-gpuuuid`, also where Kerf wrote it."""
    pin = {"nvidia.com/use-gpuuuid": "GPU-b-0", "kerf.dev/pinned": "1"}
    pod = desk.objects.create(gpu_pod("p", annotations=pin, gpu=1, gpumem=8000))

    assert ["b"] == desk.filter(pod)["NodeNames"]


@pytest.mark.parametrize("register", [None, "not JSON", '[{"id": 7}]', "[" * 100_000])
def test_a_register_that_cannot_be_read_is_none(desk: Desk, register: str | None) -> None:
    """Anybody may write an annotation; the other nodes are not affected."""
    desk.objects.patch("Node", "", "a", {"metadata": {"annotations": {REGISTER: register}}})
    desk.watch()

    assert {"a": "node unregistered", "new": "node unregistered"} == desk.filter(
        desk.pod("p", gpumem=8000), "a", "new"
    )["FailedNodes"]
    assert ["b"] == desk.filter(desk.pod("q", gpumem=8000))["NodeNames"]


def test_whole_nodes_are_a_simulation(desk: Desk) -> None:
    """HAMi then looks at the registers alone, and writes nothing."""
    desk.filter(desk.pod("p", gpumem=20000), "a")
    items = [desk.objects.get("Node", "", "a"), {"metadata": {"name": "c"}, "spec": {}}]
    asked = {"Pod": desk.pod("q", gpumem=20000), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    answer = asyncio.run(desk.extender.filter(asked))
    assert ["a"] == [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
    assert NODE not in desk.annotations("Pod", "q")


def test_a_pod_without_slices_passes_every_node(desk: Desk) -> None:
    """kube-scheduler decides alone."""
    assert ["a", "b"] == desk.filter(desk.objects.create(cpu_pod("p")))["NodeNames"]


def test_a_question_without_a_pod_is_an_error(desk: Desk) -> None:
    """In HAMi's words."""
    assert "extender args missing pod" == asyncio.run(desk.extender.filter({"NodeNames": ["a"]}))["Error"]


def test_hami_s_own_settings_are_followed(desk: Desk) -> None:
    """A ConfigMap that cannot be read leaves them as they were."""
    for text in ("nvidia: {memoryFactor: 1024}", "nvidia: {memoryFactor: many}"):
        desk.cache.apply(Upserted(ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": text})))

    desk.filter(desk.pod("p", gpumem=20))
    assert "GPU-a-0,NVIDIA,20480,0:;" == desk.annotations("Pod", "p")[ALLOCATED]


def test_a_tenant_s_config_map_changes_no_setting(desk: Desk) -> None:
    """Whatever its name; not even where HAMi's own is missing."""
    text = "nvidia: {resourceCountName: evil.com/gpu, memoryFactor: 1024}"
    desk.cache.apply(Upserted(ConfigMap("tenant", "hami-scheduler-device", {"device-config.yaml": text})))

    desk.filter(desk.pod("p", gpumem=20))
    assert "GPU-a-0,NVIDIA,20,0:;" == desk.annotations("Pod", "p")[ALLOCATED]


# The bind and its lock.


def test_a_bind_locks_the_node_for_the_device_plugin(desk: Desk) -> None:
    """Lock, phase and time, and the pod is bound; phase `success` and the unlocking are the plugin's."""
    desk.pod("p", gpumem=8000)

    assert [""] == desk.bind("p")
    assert f"{NOON},default,p" == desk.annotations("Node", "a")[LOCK]
    phase = desk.annotations("Pod", "p")
    assert ("allocating", str(int(NOON_S)), "a") == (phase[BIND_PHASE], phase[BIND_TIME], desk.place("p"))


def test_of_two_binds_at_once_one_must_come_again(desk: Desk) -> None:
    """HAMi's word makes kube-scheduler try again; until then nothing is written on the pod."""
    desk.pod("p", gpumem=8000)
    desk.pod("q", gpumem=8000)

    assert ["", CONTENTION] == desk.bind("p", "q")
    assert ("", False) == (desk.place("q"), BIND_PHASE in desk.annotations("Pod", "q"))
    desk.lock(None)
    assert [""] == desk.bind("q")


@pytest.mark.parametrize(
    "lock",
    [
        f"{NOON},default,p",
        f"{NOON},default,gone",
        "2026-01-05T11:54:59Z,default,other",
        "2026-01-05T12:54:59+01:00,default,other",
        "whatever",
    ],
)
def test_a_lock_that_holds_no_pod_off_is_taken_over(desk: Desk, lock: str) -> None:
    """The pod's own, a vanished pod's, one older than five minutes, and what is no lock at all."""
    desk.pod("p", gpumem=8000)
    desk.pod("other", gpumem=8000)
    desk.lock(lock)

    assert [""] == desk.bind("p")
    assert f"{NOON},default,p" == desk.annotations("Node", "a")[LOCK]


def test_a_lock_of_five_minutes_still_holds(desk: Desk) -> None:
    """It is void when it is older."""
    desk.pod("p", gpumem=8000)
    desk.pod("other", gpumem=8000)
    desk.lock("2026-01-05T11:55:00Z,default,other")

    assert [CONTENTION] == desk.bind("p")


def test_a_bind_that_fails_releases_its_lock(desk: Desk) -> None:
    """The phase says `failed`, and the next pod may bind."""
    desk.pod("p", gpumem=8000)
    desk.api.broken = "bind"

    assert ["the server is away"] == desk.bind("p")
    assert "failed" == desk.annotations("Pod", "p")[BIND_PHASE]
    assert LOCK not in desk.annotations("Node", "a")


def test_a_pod_that_is_bound_already_keeps_its_phase(desk: Desk) -> None:
    """The answer to the first call was lost: the second is refused, and the lock goes as with HAMi."""
    desk.pod("p", gpumem=8000)
    desk.bind("p")

    assert ["Pod default/p is already assigned to node a"] == desk.bind("p")
    assert "allocating" == desk.annotations("Pod", "p")[BIND_PHASE]
    assert LOCK not in desk.annotations("Node", "a")


def test_only_an_app_container_s_gpu_needs_the_lock(desk: Desk) -> None:
    """A pod whose init container alone asks for one is bound beside a lock, and so is one without any."""
    pod = cpu_pod("p", initContainers=gpu_pod("i", gpu=1, gpumem=8000)["spec"]["containers"])
    pod["spec"]["initContainers"][0]["name"] = "first"
    desk.objects.create(pod)
    desk.objects.create(cpu_pod("q"))
    desk.pod("other", gpumem=8000)
    desk.lock(f"{NOON},default,other")

    assert ["", ""] == desk.bind("p", "q")


def test_a_bind_of_what_is_not_there_names_it(desk: Desk) -> None:
    """In HAMi's words."""
    desk.pod("p", gpumem=8000)

    assert ['pod "nope" not found'] == desk.bind("nope")
    assert ['node "nonode" not found'] == desk.bind("p", node="nonode")


# The webhook.


def reviewed(desk: Desk, pod: Json) -> Json:
    """The answer to the creation of a pod in the namespace default."""
    asked = {"request": {"uid": "u", "namespace": "default", "object": pod}}
    answer: Json = review(desk.cache, asked)["response"]
    return answer


def test_the_webhook_completes_a_pod_that_has_no_name_yet(desk: Desk) -> None:
    """Scheduler, missing count and variable come as one JSON patch."""
    pod = gpu_pod(gpumem=1000, priority=1)
    pod["metadata"] = {"generateName": "web-"}

    answer = reviewed(desk, pod)
    limits = {"nvidia.com/gpumem": "1000", "nvidia.com/priority": "1", "nvidia.com/gpu": "1"}
    assert ("u", True, "JSONPatch") == (answer["uid"], answer["allowed"], answer["patchType"])
    assert [
        {"op": "add", "path": "/spec/schedulerName", "value": "hami-scheduler"},
        {"op": "add", "path": "/spec/containers/0/resources", "value": {"limits": limits}},
        {"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "CUDA_TASK_PRIORITY", "value": "1"}]},
    ] == json.loads(base64.b64decode(answer["patch"]))


@pytest.mark.parametrize("pod", [cpu_pod("p"), cpu_pod("p", schedulerName="mine")], ids=["cpu", "foreign scheduler"])
def test_the_webhook_leaves_other_pods(desk: Desk, pod: Json) -> None:
    """Nothing of HAMi's is asked, or another scheduler is."""
    answer = reviewed(desk, pod)

    assert (True, False) == (answer["allowed"], "patch" in answer)


def test_the_webhook_refuses_what_exceeds_a_quota(desk: Desk) -> None:
    """Counting what HAMi has booked in the namespace, watched or not."""
    desk.cache.apply(Upserted(ResourceQuota("default", "q", Resources({"limits.nvidia.com/gpumem": 20000}))))
    desk.filter(desk.pod("p", gpumem=12000), "a")

    refusal = {"code": 403, "reason": "Forbidden", "message": "exceeding resource quota"}
    assert refusal == reviewed(desk, gpu_pod("q", gpu=1, gpumem=12000))["status"]
    assert reviewed(desk, gpu_pod("q", gpu=1, gpumem=8000))["allowed"]


def test_a_pod_that_cannot_be_read_enters_with_a_warning(desk: Desk) -> None:
    """What is wrong with it the API server says itself."""
    answer = reviewed(desk, {"metadata": {}, "spec": {"containers": "none"}})

    assert (True, 1) == (answer["allowed"], len(answer["warnings"]))


def test_the_webhook_s_configuration_spares_what_is_labelled() -> None:
    """`hami.io/webhook=ignore` on pod or namespace; and pods enter while nobody answers."""
    webhook = webhook_configuration("https://127.0.0.1:1/webhook", b"PEM")["webhooks"][0]

    selector = {"matchExpressions": [{"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]}
    assert (selector, selector) == (webhook["namespaceSelector"], webhook["objectSelector"])
    assert ("Ignore", "UEVN") == (webhook["failurePolicy"], webhook["clientConfig"]["caBundle"])


# HTTP.


def asked_over_http(desk: Desk, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """Status and text of one answer."""

    async def ask() -> tuple[int, str]:
        async with (
            TestClient(TestServer(application(desk.extender))) as client,
            client.request(method, path, data=body) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(ask())


def test_health_waits_for_the_watches(desk: Desk) -> None:
    """Answers from half of the cache would book cards twice."""
    assert (503, "the watches have not reported everything yet") == asked_over_http(desk, "GET", "/healthz")

    desk.cache.apply(Synced())
    assert (200, "ok") == asked_over_http(desk, "GET", "/healthz")


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"[" * 100_000, b'{"request": {}}'])
def test_what_is_no_request_is_refused(desk: Desk, body: bytes) -> None:
    """With a word for whoever reads the log, and no traceback."""
    status, text = asked_over_http(desk, "POST", "/webhook", body)

    assert (400, True) == (status, text.startswith("expected "))


def test_a_field_s_case_does_not_matter(desk: Desk) -> None:
    """Go writes `PodName` and reads either."""
    desk.pod("p", gpumem=8000)
    body = json.dumps({"podname": "p", "podNamespace": "default", "node": "a"})

    assert (200, '{"Error": ""}') == asked_over_http(desk, "POST", "/bind", body)


def test_the_books_follow_a_reader(desk: Desk) -> None:
    """Until it ends, which a real one never does."""

    class Reader:
        async def events(self) -> AsyncIterator[Event]:
            node = desk.objects.get("Node", "", "a")
            assert node is not None
            for event in (event_of(Deleted, node), Synced()):
                yield event

    asyncio.run(follow(Reader(), desk.cache))
    assert desk.cache.is_synced
    assert ["b"] == desk.filter(desk.pod("p", gpumem=8000))["NodeNames"]
