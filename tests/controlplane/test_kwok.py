"""The acted-out cloud on a real API server, with KWOK, and under exactly the accesses that it declares."""

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from kerf.cli.clock import SystemClock
from kerf.cloudprovider import Instance, InstanceNotFound
from kerf.clouds.kwok.cloud import KwokCloud, KwokLatencies
from kerf.kube.client import ClusterTarget, KubeClient
from kerf.kube.objects import KubeObjects
from kerf.kube.rbac import grants
from kerf.kube.resources import KWOK, declared
from kerf.model.market import Market
from kerf.model.nodeclaim import NodeClaim
from tests.clouds.kwok.world import daemon_set
from tests.clouds.market import MARKET, claim
from tests.controlplane.chart import token_kubeconfig
from tools.controlplane.server import ControlPlane

T = TypeVar("T")
Object = dict[str, Any]
FAST = KwokLatencies(
    launch_s=0.1, register_s=0.1, devices_ready_s=0.1, terminate_s=0.1, notice_s=0.5, startup_s=0.1, poll_s=0.1
)
SOON_S = 30
REGISTER = "hami.io/node-nvidia-register"


class Sky:
    """A process that acts the cloud out, in a thread; `start` after `stop` is a new one."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        account = {"name": "default", "namespace": namespace}
        plane.apply(grants(declared(KWOK), namespace, account))
        self._kubeconfig = token_kubeconfig(plane, namespace, "default")
        self.start()

    def start(self) -> None:
        """Act the machines out from now on."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.client = self.call(KubeClient.connect(ClusterTarget(str(self._kubeconfig))))
        store = KubeObjects(self.client)
        self.cloud = KwokCloud(store, SystemClock(), Market(MARKET), namespace=self.namespace, latencies=FAST)
        self._machines = asyncio.run_coroutine_threadsafe(self.cloud.run_machines(), self._loop)

    def stop(self) -> None:
        """Cut everything off, wherever it is."""
        self._machines.cancel()
        self.call(asyncio.sleep(0.1))
        self.call(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, call: Coroutine[Any, Any, T]) -> T:
        """What a call gives."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(60)

    def launch(self, wanted: NodeClaim, **labels: str) -> tuple[Instance, str]:
        """An instance and the name of its node, ready, with labels and without the taint that Kerf takes away."""
        instance = self.call(self.cloud.create(wanted))
        self.until(lambda: self.node_of(instance), "its node")
        name: str = self.node_of(instance)["metadata"]["name"]
        self.until(lambda: self.ready(name) == "True", "the node is ready")
        self.until(lambda: len(self.node(name)["spec"]["taints"]) == 1, "only our own taint is left")
        self.patch(name, {"metadata": {"labels": labels}, "spec": {"taints": None}})
        return instance, name

    def node_of(self, instance: Instance) -> Object:
        """The node of an instance; empty when there is none."""
        nodes: Any = self.plane.list("Node", selector=f"kerf.dev/kwok-instance={self.namespace}")
        return next((node for node in nodes if node["spec"]["providerID"] == instance.provider_id), {})

    def node(self, name: str) -> Object:
        """A node that is there."""
        found: Any = self.plane.get("Node", name)
        assert found is not None
        return dict(found)

    def ready(self, name: str) -> str:
        """The status of its condition Ready."""
        return next((c["status"] for c in self.node(name)["status"]["conditions"] if c["type"] == "Ready"), "")

    def shown(self, name: str, resource: str = "gpu") -> str:
        """What kubelet would show of a resource of nvidia.com."""
        return str(self.node(name)["status"]["allocatable"].get(f"nvidia.com/{resource}", ""))

    def patch(self, name: str, patch: Object) -> None:
        """Write a node as an administrator."""
        kind = "application/merge-patch+json"
        self.plane.request("PATCH", f"/api/v1/nodes/{name}", patch, content_type=kind).good("patch node")

    def until(self, holds: Any, what: str) -> None:
        """Wait until it holds."""
        self.plane.wait_until(holds, SOON_S, what)

    def left(self) -> list[str]:
        """What the API still has of the cloud: instances, nodes, leases of nodes."""
        maps = self.plane.list("ConfigMap", self.namespace, selector="kerf.dev/kwok-instance=true")
        nodes = self.plane.list("Node", selector=f"kerf.dev/kwok-instance={self.namespace}")
        leases = [
            lease for lease in self.plane.list("Lease", "kube-node-lease") if "ip-10-" in lease["metadata"]["name"]
        ]
        return [f"{obj['metadata']['name']}" for obj in (*maps, *nodes, *leases)]


@pytest.fixture
def sky(control_plane: ControlPlane, namespace: str) -> Iterator[Sky]:
    """A cloud in an empty namespace; its machines end with the test."""
    made = Sky(control_plane, namespace)
    yield made
    for instance in made.call(made.cloud.list_instances()):
        made.call(made.cloud.delete(instance.provider_id))
    made.until(lambda: not made.left(), "nothing is left of the cloud")
    made.stop()
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        control_plane.delete(kind, namespace)
    for kind in ("RoleBinding", "Role"):
        control_plane.delete(kind, namespace, "kube-node-lease")


def g5(name: str = "gpu") -> NodeClaim:
    """A claim for one A10G that nobody has made before."""
    return claim(name, uuid4().hex, types=("g5.xlarge",))


def plugin(sky: Sky, name: str, **labels: str) -> None:
    """A device plugin's DaemonSet, without tolerations, for nodes with these labels."""
    made = daemon_set(name, **labels)
    made["metadata"]["namespace"] = sky.namespace
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "none"
    sky.plane.apply([made])


def test_a_machine_joins_and_ends_and_leaves_nothing(sky: Sky) -> None:
    """KWOK makes its node ready; a node that Kerf still drains falls silent, for good; then all of it goes."""
    instance, name = sky.launch(g5())
    sky.patch(name, {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    sky.call(sky.cloud.delete(instance.provider_id))
    sky.until(lambda: sky.ready(name) == "Unknown", "the node is silent")
    with pytest.raises(InstanceNotFound):
        sky.call(sky.cloud.delete(instance.provider_id))

    sky.until(lambda: any("unreachable" in t["key"] for t in sky.node(name)["spec"]["taints"]), "it is tainted")
    assert "Unknown" == sky.ready(name)
    sky.patch(name, {"metadata": {"finalizers": None}})
    sky.until(lambda: not sky.left(), "nothing is left")


def test_cards_register_once_the_daemon_set_has_a_pod_there(sky: Sky) -> None:
    """HAMi's plugin without tolerations: not under a taint, but on a cordoned node; a mock plugin adds its sums."""
    label = {sky.namespace: "on"}
    plugin(sky, "hami-device-plugin", **label)
    plugin(sky, "mock-device-plugin", **label)
    _, name = sky.launch(g5(), gpu="on")
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    sky.patch(name, {"spec": {"unschedulable": True}})
    # kube-controller-manager adds its own taint by writing all of them, whatever has come meanwhile.
    sky.until(lambda: sky.node(name)["spec"].get("taints"), "the taint of a cordon")
    taints = [*sky.node(name)["spec"]["taints"], taint]
    sky.patch(name, {"metadata": {"labels": label}, "spec": {"taints": taints}})
    other = sky.launch(g5("other"), **label, gpu="on")[1]
    sky.until(lambda: sky.shown(other), "the other node's cards")
    assert "" == sky.shown(name)

    sky.patch(name, {"spec": {"taints": None, "unschedulable": True}})
    sky.until(lambda: sky.shown(name, "gpumem"), "the cards and their sums")
    names = ("gpu", "gpumem", "gpucores", "gpumem-percentage")
    assert ("10", "22888", "100", "100") == tuple(sky.shown(name, resource) for resource in names)
    assert 22888 == json.loads(sky.node(name)["metadata"]["annotations"][REGISTER])[0]["devmem"]
    sky.plane.kubectl("delete", "daemonset", "--all", "-n", sky.namespace)


def test_a_bind_of_hami_is_ended(sky: Sky) -> None:
    """The pod's phase becomes success and the node's lock goes."""
    _, name = sky.launch(g5(), gpu="on")
    lock = {"hami.io/mutex.lock": f"2026-01-05T07:00:00Z,{sky.namespace},p"}
    sky.patch(name, {"metadata": {"annotations": lock}})
    metadata = {"name": "p", "namespace": sky.namespace, "labels": {"hami.io/vgpu-node": name}}
    metadata |= {"annotations": {"hami.io/bind-phase": "allocating"}}
    spec = {"containers": [{"name": "c", "image": "none"}], "nodeName": name}
    sky.plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])

    def phase() -> str:
        pod: Any = sky.plane.get("Pod", "p", sky.namespace)
        return str(pod["metadata"]["annotations"]["hami.io/bind-phase"])

    sky.until(lambda: phase() == "success", "success")
    assert "hami.io/mutex.lock" not in sky.node(name)["metadata"]["annotations"]


def test_an_interrupted_machine_ends_after_its_notice(sky: Sky) -> None:
    """`kubectl annotate` takes a spot machine back, with the pods that run on it."""
    instance, name = sky.launch(g5())
    spec = {"containers": [{"name": "c", "image": "none"}], "nodeName": name}
    metadata = {"name": "p", "namespace": sky.namespace}
    sky.plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    sky.plane.kubectl("annotate", "node", name, "kerf.dev/interrupt=true")

    sky.until(lambda: not sky.node_of(instance), "the node is gone")
    sky.until(lambda: sky.plane.get("Pod", "p", sky.namespace) is None, "its pod too")


def test_a_killed_process_is_taken_up(sky: Sky) -> None:
    """Cut off at any point of a launch: the next process brings the same instance, once."""
    wanted = g5()
    for _ in range(3):
        call = asyncio.run_coroutine_threadsafe(sky.cloud.create(wanted), sky._loop)
        sky.until(lambda: sky.left(), "it has begun")
        call.cancel()
        sky.stop()
        sky.start()

    instance = sky.call(sky.cloud.create(wanted))
    sky.until(lambda: sky.node_of(instance), "its node")
    assert [instance] == list(sky.call(sky.cloud.list_instances()))


def test_machines_go_on_after_the_api_server_was_away(sky: Sky) -> None:
    """Killed and started again: watches are begun anew, and machines join and end as before."""
    instance, _ = sky.launch(g5())
    sky.plane.kill_apiserver()
    sky.plane.start_apiserver()

    sky.launch(g5("second"))
    sky.call(sky.cloud.delete(instance.provider_id))
    sky.until(lambda: not sky.node_of(instance), "the first node is gone")


def test_faults_are_an_edit_away(sky: Sky) -> None:
    """`kerf-kwok` strikes a node that works, and lets it heal."""
    _, name = sky.launch(g5(), gpu="on")
    sky.until(lambda: sky.shown(name) == "10", "its cards")
    metadata = {"name": "kerf-kwok", "namespace": sky.namespace}
    controls = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    sky.plane.apply([{**controls, "data": {"deviceFaults": "[{kind: lost}]"}}])
    sky.until(lambda: sky.shown(name) == "0", "they are lost")

    sky.plane.apply([{**controls, "data": {"deviceFaults": "[]"}}])
    sky.until(lambda: sky.shown(name) == "10", "they are back")
