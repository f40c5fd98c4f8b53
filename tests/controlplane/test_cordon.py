"""A node whose plan needs following is cordoned until its cards have registered and its pods are pinned to them.

The cards register only once HAMi's device plugin has a pod on the node, which is a DaemonSet without tolerations: it is
let in by a cordon and kept out by a taint. One story is told on a real control plane; each test reads a part of it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from kerf.sharing.hami.records import REGISTER
from tests.controlplane.cluster import LATENCIES, Cluster, cluster
from tools.controlplane.server import Binaries, ControlPlane

Json = dict[str, Any]
UNREGISTERED, CORDONED, PINNED, USE = (
    "karpenter.sh/unregistered",
    "kerf.dev/cordoned",
    "kerf.dev/pinned",
    "nvidia.com/use-gpuuuid",
)
SLOWLY = {**LATENCIES, "launch": "2s", "register": "2s"}
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
MEMORY = {"small": "10500", "large": "12000"}
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpus"},
    "spec": {
        "template": {
            "metadata": {"labels": {"gpu": "on"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ],
            },
        },
        "disruption": {"consolidateAfter": "Never"},
    },
}


def plugin(*, is_late: bool = False) -> Json:
    """HAMi's device plugin as its chart installs it: for nodes with `gpu: "on"`, and without tolerations.

    A late one goes to no node yet: by an affinity, because its node selector says which nodes are HAMi's.
    """
    spec: Json = {"nodeSelector": {"gpu": "on"}, "containers": [{"name": "plugin", "image": "none"}]}
    if is_late:
        terms = [{"matchExpressions": [{"key": "later", "operator": "Exists"}]}]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    template = {"metadata": {"labels": {"app": "hami"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "hami-device-plugin", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "hami"}}, "template": template},
    }


def slices(name: str) -> list[Json]:
    """Two small and two large slices, of which each node must get one and one: HAMi would put the small ones together.

    They tolerate the team's taint, which the device plugin does not.
    """
    return [_slice(f"{name}-{size}-{number}", MEMORY[size]) for size in MEMORY for number in range(2)]


def _slice(name: str, memory: str) -> Json:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    spec = {"containers": [container], "tolerations": [{"key": "team", "operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class History:
    """All that became of nodes and pods since it was made, in the order of the server's revisions."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._since = plane.request("GET", "/api/v1/nodes").good("nodes")["metadata"]["resourceVersion"]

    def of(self, plural: str) -> list[Json]:
        """What the objects of a kind have been, from the first to the last."""
        path = f"/api/v1/{plural}?watch=true&timeoutSeconds=1&resourceVersion={self._since}"
        return [event["object"] for event in self._plane.request("GET", path).good(path)]


def first(told: Sequence[Json], name: str, holds: Callable[[Json], object]) -> int:
    """The revision at which something was first true of an object whose name begins so; fails where it never was."""
    found = [obj for obj in told if obj["metadata"]["name"].startswith(name) and holds(obj)]
    return int(found[0]["metadata"]["resourceVersion"])


@dataclass
class Story:
    """What was seen: rows of `kubectl get nodeclaims -o wide` by stage, and the end of it all."""

    cluster: Cluster
    history: History
    rows: list[Json] = field(default_factory=list)
    tainted: str = ""
    free: str = ""
    kept_out: Json = field(default_factory=dict)

    def look(self) -> Sequence[Json]:
        """The claims as kubectl shows them now; what has not been seen before is kept."""
        rows = table(self.cluster.plane.kubectl("get", "nodeclaims", "-o", "wide").stdout)
        self.rows += [row for row in rows if row not in self.rows]
        return rows

    def until(self, **cells: str) -> None:
        """Both claims show these cells."""
        self.cluster.until(lambda: [cells] * 2 == [{c: row.get(c) for c in cells} for row in self.look()], f"{cells}")

    def shown(self, *columns: str) -> list[tuple[str, ...]]:
        """What was seen in some columns, each once, in order; not that nothing was there yet."""
        seen = (tuple(row[column] for column in columns) for row in self.rows)
        return list(dict.fromkeys(cells for cells in seen if any(cells)))


def table(text: str) -> list[Json]:
    """kubectl's table by its header, under which each column begins."""
    header, *lines = text.splitlines() or [""]
    words = list(re.finditer(r"\S+", header))
    ends = [*(word.start() for word in words[1:]), None][: len(words)]
    return [{w[0]: line[w.start() : end].strip() for w, end in zip(words, ends, strict=True)} for line in lines]


@pytest.fixture(scope="module")
def story(binaries: Binaries) -> Iterator[Story]:
    """Two nodes are bought for four slices; a person taints one of them, and takes the taint away again."""
    with cluster(binaries, with_hami=True, latencies=SLOWLY) as made:
        told = Story(made, History(made.plane))
        made.start("--batch-idle=3s", "--batch-max=15s")
        made.plane.apply([plugin(is_late=True), POOL, *slices("s")])
        told.until(REASON="DevicesNotRegistered")

        told.tainted, told.free = sorted(made.names("nodes"))
        made.plane.kubectl("taint", "node", told.tainted, "team=a:NoSchedule")
        made.plane.apply([plugin()])
        made.until(lambda: _is_open(made, told.free), "the node without the taint is open")
        told.kept_out = {"node": made.plane.get("Node", told.tainted), "pods": made.plane.list("pods", "kube-system")}

        made.plane.kubectl("taint", "node", told.tainted, "team-")
        told.until(READY="True")
        made.until(lambda: 4 == len(made.pods("Running")), "all slices run")
        yield told


def _is_open(made: Cluster, name: str) -> bool:
    node = made.plane.get("Node", name) or {}
    return "unschedulable" not in node["spec"] and "karpenter.sh/initialized" in node["metadata"]["labels"]


def _taints(node: Json) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints", ())]


def test_the_cordon_comes_in_the_write_that_takes_the_taint_away(story: Story) -> None:
    """No scheduler ever sees the node open before its pods are led: it is tainted, then cordoned, by our own mark."""
    told = story.history.of("nodes")
    for name in (story.tainted, story.free):
        states = [
            (UNREGISTERED in _taints(node), node["spec"].get("unschedulable", False), CORDONED in _notes(node))
            for node in told
            if node["metadata"]["name"] == name
        ]

        assert [(True, False, False), (False, True, True), (False, False, False)] == list(dict.fromkeys(states))


def _notes(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or {}


def _is_on(node: str, pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName") == node)


def _is_pinned_to(card: str, pod: Json) -> bool:
    return bool(_notes(pod).get(USE) == card and PINNED in _notes(pod))


def test_plugin_cards_pins_and_the_open_node_come_in_this_order(story: Story) -> None:
    """Adopted, plugin bound, cards registered, pods pinned to them, uncordoned, pods bound."""
    nodes, pods = story.history.of("nodes"), story.history.of("pods")
    for name in (story.tainted, story.free):
        here = [pod["metadata"]["name"] for pod in story.cluster.pods() if pod["spec"]["nodeName"] == name]
        order = [
            first(nodes, name, lambda node: UNREGISTERED not in _taints(node)),
            first(pods, "hami-device-plugin", partial(_is_on, name)),
            first(nodes, name, lambda node: REGISTER in _notes(node)),
            *sorted(first(pods, pod, partial(_is_pinned_to, f"GPU-{name}-0")) for pod in here),
            first(nodes, name, lambda node: REGISTER in _notes(node) and "unschedulable" not in node["spec"]),
            *sorted(first(pods, pod, lambda pod: pod["spec"].get("nodeName")) for pod in here),
        ]

        assert ["s-large", "s-small"] == sorted(pod.rpartition("-")[0] for pod in here)
        assert sorted(order) == order


def test_a_taint_keeps_the_plugin_and_so_the_cards_away(story: Story) -> None:
    """With a taint instead of the cordon the node would never have its cards; ours stays shut meanwhile."""
    node, pods = story.kept_out["node"], story.kept_out["pods"]

    assert [story.free] == [pod["spec"]["nodeName"] for pod in pods]
    assert (True, True, False) == (node["spec"]["unschedulable"], CORDONED in _notes(node), REGISTER in _notes(node))


def test_kubectl_shows_the_stage_and_what_it_waits_for(story: Story) -> None:
    """READY, AWAITS and REASON: of each stage while it lasts, and nothing to wait for in the end."""
    told = story.shown("READY", "AWAITS", "REASON")

    assert ("", "Launched", "AwaitingReconciliation") == told[0]
    assert {
        ("", "Registered", "NodeNotFound"),
        ("", "Initialized", "DevicesNotRegistered"),
        ("True", "", ""),
    } <= set(told)


def test_kubectl_shows_what_is_missing_and_until_when(story: Story) -> None:
    """In the last of the wide columns."""
    messages = {row["REASON"]: row["MESSAGE"].partition("; given up at ") for row in story.rows}

    assert "The cloud has not launched it yet" == messages["AwaitingReconciliation"][0]
    assert "Node not registered with cluster" == messages["NodeNotFound"][0]
    missing = "0 of 1 GPUs registered: the device plugin has not reported yet"
    assert (missing, "; given up at ") == messages["DevicesNotRegistered"][:2]


def test_events_and_conditions_are_karpenter_s(story: Story) -> None:
    """Three stages, each an event and a condition of the same name, and at the end Ready and the node's shape."""
    for claim in story.cluster.plane.list("nodeclaims"):
        name = claim["metadata"]["name"]
        stages = ("Launched", "Registered", "Initialized")
        conditions = {c["type"]: (c["status"], c["reason"]) for c in claim["status"]["conditions"]}

        assert {stage: ("True", stage) for stage in (*stages, "Ready", "ConsistentStateFound")} == conditions
        for stage in stages:
            story.cluster.until(partial(story.cluster.events, stage, name), f"{name}: {stage}")


CORDONER: Sequence[Json] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "cordoner"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}
                ]
            },
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/spec/unschedulable", value: true}]'},
                }
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "cordoner"},
        "spec": {"policyName": "cordoner"},
    },
)
"""Whoever runs the cluster wants to look at every new node first: it is cordoned from its very beginning."""


def test_a_person_s_cordon_is_left_alone(story: Story) -> None:
    """Nodes that come cordoned are Initialized like others, and stay shut, without our mark."""
    plane, before = story.cluster.plane, set(story.cluster.names("nodes"))
    plane.apply(CORDONER)
    plane.apply(slices("t"))

    def opened() -> list[str]:
        nodes = plane.list("nodes", selector="karpenter.sh/initialized=true")
        return [node["metadata"]["name"] for node in nodes if node["metadata"]["name"] not in before]

    story.cluster.until(lambda: len(opened()) >= 2, "two nodes that came cordoned are initialized")

    states = [node for node in story.history.of("nodes") if node["metadata"]["name"] not in before]
    assert {(True, False)} == {(node["spec"].get("unschedulable", False), CORDONED in _notes(node)) for node in states}
    assert 4 == len(story.cluster.pods("Pending"))
