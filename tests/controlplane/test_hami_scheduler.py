"""Pods of the profile hami-scheduler on a real kube-scheduler that asks HAMi: ours, or a real one beside the tests."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from kerf.kube.resources import HAMI, declared
from kerf.sharing.hami.records import ALLOCATED, BIND_PHASE, NODE, REGISTER
from kerf.sim.hami.server import webhook_configuration
from tests.controlplane.hami import settle
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneError, ControlPlaneOptions
from tools.hami import ENTRY, USER, Hami, start_hami

Json = dict[str, Any]
SOON_S = 60
CARD = 24_000


@pytest.fixture(scope="module")
def plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane of this file's own, since HAMi's scheduler and webhook stay in it."""
    with ControlPlane(binaries, ControlPlaneOptions(users=(USER,), audit=True)) as made:
        yield made


@pytest.fixture(scope="module")
def hami(plane: ControlPlane) -> Hami:
    """HAMi, which draws lots among equal nodes."""
    return start_hami(plane)


@pytest.fixture
def place(plane: ControlPlane, hami: Hami) -> Iterator["Place"]:
    """A namespace and two nodes with a card of 24000 MiB each, on which only its pods run."""
    made = Place(plane, f"p{uuid4().hex[:8]}")
    made.set_up()
    yield made
    made.clear()


class Place:
    """Nodes `NAME-a` and `NAME-b`, and pods that select them."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane, self.name = plane, name

    def set_up(self) -> None:
        """Until both nodes are ready."""
        self.plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}])
        self.plane.apply([self._node(letter) for letter in "ab"])
        self.plane.wait_until(self._is_ready, SOON_S, "namespace and nodes are ready")

    def clear(self) -> None:
        """Pods end with their nodes' objects only if they go first."""
        self.plane.delete("Namespace", self.name)
        for letter in "ab":
            self.plane.delete("Node", f"{self.name}-{letter}")

    def _node(self, letter: str) -> Json:
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "10"}
        card = {"id": self.card(letter), "count": 10, "devmem": CARD, "devcore": 100, "type": "NVIDIA-A10"}
        annotations = {
            "kwok.x-k8s.io/node": "fake",
            REGISTER: json.dumps([{**card, "mode": "hami-core", "health": True}]),
            "hami.io/node-handshake": "Reported_2026-01-05 12:00:00",
        }
        labels = {"place": self.name, "gpu": "on"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"{self.name}-{letter}", "labels": labels, "annotations": annotations},
            "spec": {"providerID": f"test://{self.name}-{letter}"},
            "status": {"capacity": capacity, "allocatable": capacity},
        }

    def _is_ready(self) -> bool:
        nodes = self.plane.list("nodes", selector=f"place={self.name}")
        is_open = len(nodes) == 2 and not any(node["spec"].get("taints") for node in nodes)
        return is_open and self.plane.get("ServiceAccount", "default", self.name) is not None

    def card(self, letter: str) -> str:
        """The UUID of a node's only card."""
        return f"GPU-{self.name}-{letter}"

    def create(self, name: str, mib: int, annotations: Json | None = None, **spec: Any) -> None:
        """A pod that asks for so much of a card."""
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}
        container = {"name": "c", "image": "none", "resources": {"limits": limits}}
        metadata = {"name": name, "namespace": self.name, "annotations": annotations or {}}
        whole = {
            "schedulerName": "hami-scheduler",
            "nodeSelector": {"place": self.name},
            "containers": [container],
            **spec,
        }
        self.plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}])

    def pod(self, name: str) -> Any:
        """A pod that is there."""
        return self.plane.get("Pod", name, self.name)

    def cards(self, *names: str) -> list[str]:
        """HAMi's record of each of these pods once they run, with a node's letter for its card."""

        def are_running() -> bool:
            settle(self.plane, self.name)
            return all(self.pod(name)["status"]["phase"] == "Running" for name in names)

        self.plane.wait_until(are_running, SOON_S, f"{', '.join(names)} run")
        return [self._card(self.pod(name)) for name in names]

    def _card(self, pod: Json) -> str:
        annotations = pod["metadata"]["annotations"]
        assert pod["spec"]["nodeName"] == annotations[NODE]
        assert annotations[BIND_PHASE] in ("allocating", "success")
        letter = annotations[NODE].removeprefix(f"{self.name}-")
        allocated: str = annotations[ALLOCATED]
        return allocated.replace(self.card(letter), letter)

    def message(self, name: str) -> str:
        """Why a pod waits, once the scheduler has tried it."""

        self.plane.wait_until(lambda: self._told(name), SOON_S, f"{name} has been tried")
        return self._told(name)

    def _told(self, name: str) -> str:
        conditions: Sequence[Json] = self.pod(name)["status"].get("conditions", ())
        return "".join(c["message"] for c in conditions if c.get("reason") == "Unschedulable")


def test_slices_share_one_card(place: Place) -> None:
    """Three times 8000 MiB fill a card of 24000: all on the node that the first one got by lot; the fourth beside."""
    for number in range(4):
        place.create(f"p{number}", 8000)
        place.cards(*(f"p{i}" for i in range(number + 1)))

    first, *others = place.cards("p0", "p1", "p2", "p3")
    other = {"a,NVIDIA,8000,0:;": "b,NVIDIA,8000,0:;", "b,NVIDIA,8000,0:;": "a,NVIDIA,8000,0:;"}[first]
    assert [first, first, other] == others


def test_pods_that_come_together_never_overfill_a_card(place: Place) -> None:
    """Six slices on two cards, and the lock lets one bind a node at a time; the seventh is told HAMi's reason."""
    for number in range(6):
        place.create(f"p{number}", 8000)

    records = place.cards(*(f"p{i}" for i in range(6)))
    assert {"a,NVIDIA,8000,0:;": 3, "b,NVIDIA,8000,0:;": 3} == {record: records.count(record) for record in records}
    place.create("p6", 8000)
    assert "2 1/1 CardInsufficientMemory" in place.message("p6")


@pytest.mark.parametrize("letter", ["a", "b"])
def test_a_pinned_pod_goes_exactly_there(place: Place, letter: str) -> None:
    """Whichever card is used already, and although HAMi packs onto used nodes."""
    place.create("first", 8000)
    place.cards("first")

    place.create("pinned", 8000, {"nvidia.com/use-gpuuuid": place.card(letter), "kerf.dev/pinned": "1"})
    assert [f"{letter},NVIDIA,8000,0:;"] == place.cards("pinned")


def test_a_pin_on_a_waiting_pod_is_obeyed(place: Place) -> None:
    """Annotations of pending pods may change; that is how a plan is followed."""
    place.create("waits", 8000, {"nvidia.com/use-gpuuuid": "GPU-of-nobody"})
    assert "2 1/1 CardUuidMismatch" in place.message("waits")

    place.plane.kubectl(
        "-n", place.name, "annotate", "--overwrite", "pod/waits", f"nvidia.com/use-gpuuuid={place.card('b')}"
    )
    assert ["b,NVIDIA,8000,0:;"] == place.cards("waits")


def test_a_nomination_alone_reserves_nothing_of_a_card(place: Place) -> None:
    """kube-scheduler keeps room for a nominated pod in what it counts itself, and knows no card."""
    place.create("planned", 20000, schedulingGates=[{"name": "kerf.dev/test"}])
    status = {"status": {"nominatedNodeName": f"{place.name}-a"}}
    path = f"/api/v1/namespaces/{place.name}/pods/planned"
    place.plane.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json").good(path)
    for name in ("other-0", "other-1"):
        place.create(name, 20000)
    assert ["a,NVIDIA,20000,0:;", "b,NVIDIA,20000,0:;"] == sorted(place.cards("other-0", "other-1"))

    gates = {"spec": {"schedulingGates": None}}
    place.plane.request("PATCH", path, gates, content_type="application/merge-patch+json").good(path)
    assert "2 1/1 CardInsufficientMemory" in place.message("planned")


@pytest.fixture
def webhook(plane: ControlPlane, hami: Hami) -> Iterator[None]:
    """HAMi's webhook, asked by the API server about each new pod."""
    if hami.ca_file is None:
        pytest.skip("a real HAMi registers its own webhook")
    configuration = webhook_configuration(f"{hami.url}/webhook", hami.ca_file.read_bytes())
    plane.apply([configuration])
    # The API server learns of a webhook by a watch.
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"}}
    limits = {"nvidia.com/gpu": "1"}
    probe["spec"] = {"containers": [{"name": "c", "image": "none", "resources": {"limits": limits}}]}
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    plane.wait_until(
        lambda: plane.request("POST", path, probe).good(path)["spec"]["schedulerName"] == "hami-scheduler",
        SOON_S,
        "the webhook is asked",
    )
    yield
    plane.delete("MutatingWebhookConfiguration", configuration["metadata"]["name"])


@pytest.mark.usefixtures("webhook")
def test_the_webhook_takes_a_pod_over(place: Place) -> None:
    """A pod that asks for memory alone gets its count and HAMi's scheduler, and runs on a card."""
    place.plane.apply([bare_pod(place)])

    spec = place.pod("bare")["spec"]
    assert ("hami-scheduler", "1") == (
        spec["schedulerName"],
        spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"],
    )
    assert [",NVIDIA,8000,0:;"] == [record[1:] for record in place.cards("bare")]


@pytest.mark.usefixtures("webhook")
def test_the_webhook_s_refusal_reaches_the_user(place: Place) -> None:
    """A privileged container would see every card."""
    with pytest.raises(ControlPlaneError, match=r'"vgpu\.hami\.io" denied the request: container c is privileged'):
        place.plane.apply([bare_pod(place, privileged=True)])


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("kind", ["pod", "namespace"])
def test_what_is_labelled_is_left_to_kube_scheduler(place: Place, kind: str) -> None:
    """`hami.io/webhook=ignore`: no other scheduler is set, and nobody gives the pod a card."""
    label = {"hami.io/webhook": "ignore"}
    if kind == "namespace":
        place.plane.kubectl("label", "namespace", place.name, "hami.io/webhook=ignore")
    place.plane.apply([bare_pod(place, labels=label if kind == "pod" else {})])

    assert "default-scheduler" == place.pod("bare")["spec"]["schedulerName"]
    assert "Insufficient nvidia.com/gpumem" in place.message("bare")


def bare_pod(place: Place, *, labels: Json | None = None, privileged: bool = False) -> Json:
    """A pod that asks for 8000 MiB and says nothing else."""
    container: Json = {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpumem": "8k"}}}
    if privileged:
        container["securityContext"] = {"privileged": True}
    metadata = {"name": "bare", "namespace": place.name, "labels": labels or {}}
    spec = {"nodeSelector": {"place": place.name}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_our_hami_asks_for_no_more_than_it_declares(place: Place, hami: Hami) -> None:
    """Its role is made of its declared accesses, and it has used each of them."""
    if hami.ca_file is None:
        pytest.skip("a real HAMi has its own role")
    place.create("p", 8000)
    place.cards("p")

    asked = set()
    for event in place.plane.audit_events():
        if event["user"]["username"] == USER.name:
            assert event.get("responseStatus", {}).get("code") != 403
            target = event["objectRef"]
            asked.add((event["verb"], target["resource"], target.get("subresource", "")))
    assert {(access.verb, access.resource.plural, access.subresource) for access in declared(HAMI)} == asked


def test_our_hami_without_its_role_names_the_rule_that_it_lacks(plane: ControlPlane) -> None:
    """One line and exit 4, not a server that waits for what it will never see."""
    command = [sys.executable, "-c", ENTRY, "hami-extender", "--kubeconfig", str(plane.kubeconfig("kerf"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON_S, check=False)

    assert (4, 1) == (done.returncode, done.stderr.count("\n"))
    assert 'hint: grant {apiGroups: [""], resources: ["pods"], verbs: ["list"]}' in done.stderr
