"""The harness itself, on a real control plane: what later tests of this tier rely on."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.controlplane.extender import extender
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneError, ControlPlaneOptions, User

SOON_S = 30


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A kwok node with a card's memory; gone after the test."""
    name = f"node-{uuid4().hex[:8]}"
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kerf.dev/test": name}},
        "spec": {"providerID": f"test://{name}"},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    control_plane.apply([made])
    yield name
    control_plane.delete("Node", name)


def is_ready(plane: ControlPlane, name: str) -> bool:
    """Whether a node has the condition Ready."""
    found: Any = plane.get("Node", name)
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", ()))


def running(plane: ControlPlane, namespace: str) -> list[str]:
    """The nodes of the pods of a namespace that run."""
    pods: Any = plane.list("pods", namespace)
    return [pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"]


def pod_spec(node: str, scheduler: str = "default-scheduler", **limits: str) -> dict[str, Any]:
    """Of one container, for that node alone, since other tests may have left theirs."""
    resources = {"limits": {f"nvidia.com/{name}": amount for name, amount in limits.items()}}
    container = {"name": "c", "image": "none", "resources": resources}
    return {"schedulerName": scheduler, "nodeSelector": {"kerf.dev/test": node}, "containers": [container]}


def make_pod(plane: ControlPlane, namespace: str, spec: dict[str, Any]) -> None:
    """A pod without an owner."""
    plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}])


def deploy(plane: ControlPlane, namespace: str, node: str) -> None:
    """A Deployment of one pod."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(node)}
    made = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    plane.apply([made])


def test_a_deployment_runs_on_a_fake_node(control_plane: ControlPlane, namespace: str, node: str) -> None:
    """kwok makes the node ready; the controller manager, the scheduler and kwok bring the pod to run there."""
    control_plane.wait_until(lambda: is_ready(control_plane, node), SOON_S, "the node is ready")

    deploy(control_plane, namespace, node)
    control_plane.wait_until(lambda: running(control_plane, namespace), SOON_S, "the pod runs")
    assert [node] == running(control_plane, namespace)


def test_a_reader_may_look_and_not_touch(control_plane: ControlPlane, namespace: str) -> None:
    """RBAC refuses a write, and kubectl's own words are in the error."""
    control_plane.kubectl("get", "pods,configmaps", "-n", namespace, user="reader")
    with pytest.raises(
        ControlPlaneError, match=r'exit 1: .*forbidden: User "reader" cannot create resource "configmaps"'
    ):
        control_plane.kubectl("-n", namespace, "create", "configmap", "mine", user="reader")


def test_kerf_may_do_nothing_until_a_role_is_bound(control_plane: ControlPlane) -> None:
    """Its user is that of the service account kerf in kerf-system, so that its role is really tested."""
    answer = control_plane.request("GET", "/api/v1/nodes", user="kerf")
    assert (403, True) == (answer.status, "system:serviceaccount:kerf-system:kerf" in answer.body["message"])


def test_the_api_server_comes_back_where_it_was(control_plane: ControlPlane, namespace: str, node: str) -> None:
    """After SIGKILL: the same address, the same objects, and the other programs go on."""
    before = control_plane.url, control_plane.pids()["kube-apiserver"]
    control_plane.kill_apiserver()
    with pytest.raises(ConnectionRefusedError):
        control_plane.request("GET", "/readyz")

    control_plane.start_apiserver()
    deploy(control_plane, namespace, node)
    control_plane.wait_until(lambda: [node] == running(control_plane, namespace), SOON_S, "the pod runs")
    assert before[0] == control_plane.url
    assert before[1] != control_plane.pids()["kube-apiserver"]


def test_a_server_that_dies_twice_in_a_row_takes_no_program_along(control_plane: ControlPlane) -> None:
    """Who has just begun to read its kinds gives up; it comes back with the server."""
    for _ in range(2):
        control_plane.kill_apiserver()
        control_plane.start_apiserver()

    control_plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "twice"}}])
    control_plane.wait_until(lambda: control_plane.get("ServiceAccount", "default", "twice"), 30, "its service account")
    assert "kube-controller-manager" in control_plane.pids()


def test_what_was_compacted_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    """A watch and a list that go on from before a compaction are answered with 410."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b", "c"):
        control_plane.kubectl("-n", namespace, "create", "configmap", name)
    page = control_plane.request("GET", f"{path}?limit=2").body["metadata"]
    control_plane.kubectl("-n", namespace, "create", "configmap", "later")
    watch = f"{path}?watch=true&timeoutSeconds=1&resourceVersion={page['resourceVersion']}"
    assert ["ADDED"] == [event["type"] for event in control_plane.request("GET", watch).body]

    control_plane.compact()
    (event,) = control_plane.request("GET", watch).body
    assert ("ERROR", 410) == (event["type"], event["object"]["code"])
    assert 410 == control_plane.request("GET", f"{path}?limit=2&continue={page['continue']}").status


def test_what_was_stored_is_served(control_plane: ControlPlane, namespace: str) -> None:
    """More than go into one transaction, written while no server runs, in the form in which it showed one."""
    control_plane.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}}])
    shown = control_plane.get("ConfigMap", "c", namespace)
    assert shown is not None
    metadata = {name: value for name, value in shown["metadata"].items() if name != "resourceVersion"}
    names = [f"c{number}" for number in range(150)]

    control_plane.kill_apiserver()
    control_plane.store(
        (f"/registry/configmaps/{namespace}/{name}", {**shown, "metadata": {**metadata, "name": name, "uid": name}})
        for name in names
    )
    control_plane.start_apiserver()

    found = {obj["metadata"]["name"] for obj in control_plane.list("ConfigMap", namespace)}
    assert {"c", *names} <= found


def test_the_audit_log_shows_who_did_what(control_plane: ControlPlane, namespace: str) -> None:
    """User, verb, object and answer of each request, refused ones too."""
    for user in ("admin", "reader"):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/none", user=user)

    events: Any = control_plane.audit_events()
    told = [event for event in events if event["verb"] == "delete" and event["objectRef"].get("namespace") == namespace]
    assert [("admin", "secrets", 404), ("reader", "secrets", 403)] == [
        (event["user"]["username"], event["objectRef"]["resource"], event["responseStatus"]["code"]) for event in told
    ]


def test_a_frozen_scheduler_schedules_when_it_thaws(control_plane: ControlPlane, namespace: str, node: str) -> None:
    """SIGSTOP holds a program where it is; SIGCONT lets it go on."""
    control_plane.wait_until(lambda: is_ready(control_plane, node), SOON_S, "the node is ready")
    control_plane.pause("kube-scheduler")
    make_pod(control_plane, namespace, pod_spec(node))
    with pytest.raises(ControlPlaneError, match="waited 1 s in vain: the pod runs"):
        control_plane.wait_until(lambda: running(control_plane, namespace), 1, "the pod runs")

    control_plane.resume("kube-scheduler")
    control_plane.wait_until(lambda: running(control_plane, namespace), SOON_S, "the pod runs")


def test_the_hami_profile_asks_its_extender(control_plane: ControlPlane, namespace: str, node: str) -> None:
    """A second scheduler serves the pods of hami-scheduler; the extender counts what no node has, and binds."""
    with extender(control_plane) as url:
        control_plane.start_hami_scheduler(url)
        make_pod(control_plane, namespace, pod_spec(node, "hami-scheduler", gpumem="1000"))
        control_plane.wait_until(lambda: running(control_plane, namespace), SOON_S, "the pod runs")

    assert [node] == running(control_plane, namespace)


def test_a_kind_is_served_once_its_definition_is_installed(control_plane: ControlPlane) -> None:
    """Afterwards it is known by kind, plural and short name."""
    names = {"kind": "Saw", "plural": "saws", "singular": "saw", "shortNames": ["sw"]}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "saws.kerf.dev"},
        "spec": {"group": "kerf.dev", "scope": "Cluster", "names": names, "versions": [version]},
    }
    control_plane.install_crds([crd])
    control_plane.apply("{apiVersion: kerf.dev/v1, kind: Saw, metadata: {name: rip}}")
    assert ["rip"] == [saw["metadata"]["name"] for saw in control_plane.list("sw")]

    assert (True, False) == (control_plane.delete("Saw", "rip"), control_plane.delete("saws", "rip"))
    assert control_plane.get("Saw", "rip") is None


def test_a_program_of_ones_own_is_one_of_them(control_plane: ControlPlane) -> None:
    """It has a log, answers a polite end with its own exit code, and can be started again."""
    mine = control_plane.launch("mine", ["/bin/sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done"])
    control_plane.wait_until(lambda: "up" in mine.tail(1), SOON_S, "it is up")
    assert 7 == mine.terminate(SOON_S)

    mine.start()
    assert mine.pid == control_plane.pids()["mine"]
    mine.kill()
    assert (-9, False) == (mine.exit_code, "mine" in control_plane.pids())


def test_stop_leaves_nothing(control_plane: ControlPlane, binaries: Binaries) -> None:
    """Neither a process nor a file nor a port; and two control planes run beside each other."""
    options = ControlPlaneOptions(
        users=(User("t", "deployer", ("system:masters",)),),
        with_kwok=False,
        with_scheduler=False,
        with_controller_manager=False,
    )
    with ControlPlane(binaries, options) as plane:
        folder, pids, port = plane.folder, plane.pids(), int(plane.url.rpartition(":")[2])
        assert control_plane.url != plane.url
        assert 200 == plane.request("GET", "/api/v1/nodes", user="deployer").status

    assert ["etcd", "kube-apiserver"] == list(pids)
    assert [] == [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
    assert not folder.exists()
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", port))


def test_a_program_that_cannot_start_shows_its_log(binaries: Binaries, tmp_path: Path) -> None:
    """What it said last is in the error, and what had started has ended."""
    plane = ControlPlane(binaries, ControlPlaneOptions(apiserver_flags=("--no-such-flag",)), tmp_path)
    with pytest.raises(
        ControlPlaneError, match=r"(?s)kube-apiserver ended while it started.*unknown flag: --no-such-flag"
    ):
        plane.start()

    with pytest.raises(ControlPlaneError, match="the control plane does not run"):
        plane.pids()


def test_nothing_outlives_a_killed_test_run(tmp_path: Path) -> None:
    """A process that is killed cleans up nothing; its guard does."""
    script = """
import sys, time, pathlib
from tools.controlplane.process import Guard, Program
program = Program("sleep", ["/bin/sleep", "600"], pathlib.Path(sys.argv[1]), Guard(), {})
program.start()
print(program.pid, flush=True)
time.sleep(600)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + SOON_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its new parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
