"""`kerf gpus` and `kerf nodes` on a cluster with two pods on one card."""

from dataclasses import replace
from pathlib import Path

from kerf.cli.cards import Holder, cards_of
from kerf.model.gpu import DeviceState
from kerf.model.snapshot import ClusterNode
from kerf.sharing.family import Occupant
from kerf.sharing.registry import configured, family_named
from kerf.state.joining import demand_on
from kerf.testing.builders import a_node, a_pod, a_snapshot
from tests.cli.program import CLUSTER, files, kerf
from tests.engine.buy.test_configuration_choice import pods as waiting
from tests.sharing.nvidia.builders import A100, cut, mig_map, predicted


def test_each_card_shows_its_holders() -> None:
    """A card, what is used of it, and each pod's part."""
    lines = kerf("gpus", *files(CLUSTER)).stdout.splitlines()

    assert ["NODE", "INDEX", "MODEL", "MEMORY", "USED", "CORES", "SLOTS", "HOLDERS"] == lines[0].split()
    assert (
        "ip-10-0-0-1  0      NVIDIA A10G  22888 MiB  12000 MiB  50/100  2/10   "
        "default/chat-0 (8000 MiB, 30 cores), default/search-0 (4000 MiB, 20 cores)"
    ) == lines[1]
    assert "ip-10-0-0-2  0      NVIDIA A10G  22888 MiB  0 MiB      0/100   0/10   -" == lines[2]


def test_the_parts_of_a_card_add_up_to_its_sums() -> None:
    """What holders hold is what the state counts as used."""
    items = kerf("gpus", *files(CLUSTER), "-o", "json").data["items"]

    for item in items:
        held = [(h["memoryMiB"], h["cores"], h["slots"]) for h in item["holders"]]
        sums = tuple(sum(part) for part in zip(*held, strict=True)) or (0, 0, 0)
        assert (item["usedMemoryMiB"], item["usedCores"], item["usedSlots"]) == sums


def test_whole_cards_are_held_by_one_pod_each() -> None:
    """Without sharing each pod holds the cards that its count takes, lowest index first."""
    pods = [a_pod(name, gpu=1, node_name="node", phase="Running") for name in ("a", "b")]
    cards = tuple(DeviceState(f"gpu-{i}", i, "A10G", 22888) for i in range(3))
    snapshot = a_snapshot(pods=pods, nodes=[ClusterNode(a_node(), None, tuple(pods), cards, "whole")])

    assert [(Holder("default/a", 22888, 100, 1),), (Holder("default/b", 22888, 100, 1),), ()] == [
        card.holders for card in cards_of(snapshot.nodes[0], snapshot)
    ]


def test_each_node_shows_stage_age_and_price() -> None:
    """A claim without a node is shown in brackets."""
    lines = [line.split() for line in kerf("nodes", *files(CLUSTER)).stdout.splitlines()]
    bought = ["g5", "g5.xlarge", "on-demand", "us-east-1a"]

    assert ["NODE", "NODEPOOL", "TYPE", "CAPACITY", "ZONE", "STAGE", "AGE", "GPUS", "PODS", "USD/H"] == lines[0]
    assert ["(g5-starting)", *bought, "registering", "5m", "-", "0", "1.006"] == lines[1]
    assert ["ip-10-0-0-1", *bought, "ready", "1h", "0.5242/1", "2", "1.006"] == lines[2]
    assert ["3", "nodes,", "3.018", "USD/h"] == lines[-1]


def test_a_selector_chooses_nodes() -> None:
    """-l is matched with the labels of the nodes."""
    items = kerf("nodes", *files(CLUSTER), "-l", "kubernetes.io/hostname=ip-10-0-0-2", "-o", "json").data["items"]

    assert ["ip-10-0-0-2"] == [item["node"] for item in items]


def test_an_input_without_nodes_is_no_error() -> None:
    """Nothing to show is said in words."""
    done = kerf("gpus", *files("examples/004-ack/nodepool.yaml"))

    assert (0, "no GPU in the input\n") == (done.returncode, done.stdout)


def test_parts_of_cut_cards_have_their_holders() -> None:
    """On the card whose part they hold, also where a node has several cards."""
    pods = [replace(each, name=f"p{i}", node_name="node") for i, each in enumerate(waiting({"mig-1g.5gb": 2}))]
    family = family_named("mig", configured([mig_map(small=cut(g1_5=7))]))
    idle = predicted(family, [A100] * 3, layout="small", strategy="mixed")
    used = family.occupied(idle, [Occupant(pod, demand) for pod in pods if (demand := demand_on(pod, family))])
    held = ClusterNode(a_node(), None, tuple(pods), used, "mig")
    snapshot = a_snapshot(nodes=[held], config_maps=(mig_map(small=cut(g1_5=7)),))

    assert [(Holder("default/p0", 4864, 14, 1),), (Holder("default/p1", 4864, 14, 1),), ()] == [
        card.holders for card in cards_of(held, snapshot)
    ]


BOOKED = """
apiVersion: v1
kind: Pod
metadata:
  name: forged
  namespace: default
  uid: u9
  annotations: {hami.io/vgpu-node: ip-10-0-0-2, hami.io/vgpu-devices-allocated: "GPU-bbbb,NVIDIA,9000,10:;"}
spec: {containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}
status: {phase: Pending}
"""


def test_what_annotations_alone_book_is_said_to_be_booked(tmp_path: Path) -> None:
    """HAMi counts them, also where a user wrote them, and the pod is on no node."""
    extra = tmp_path / "forged.yaml"
    extra.write_text(BOOKED)
    given = (*files(CLUSTER), "-f", str(extra))
    items = kerf("gpus", *given, "-o", "json").data["items"]

    assert "default/forged (9000 MiB, 10 cores, booked, not bound)" in kerf("gpus", *given).stdout
    assert {"default/chat-0": True, "default/search-0": True, "default/forged": False} == {
        holder["pod"]: holder["bound"] for item in items for holder in item["holders"]
    }


def test_what_is_newer_than_the_present_is_of_age_0() -> None:
    """That is said: no age is negative."""
    early = (*files("examples/nodes-over-time/cluster.yaml"), "--now", "2026-01-05T05:00:00Z")
    done = kerf("nodes", *early)

    assert "note: --now 2026-01-05T05:00:00Z: 10 objects are newer, up to 2026-01-05T06:00:00Z" in done.stderr
    assert ["0s", "0s", "0s"] == [line.split()[6] for line in done.stdout.splitlines()[1:4]]
    assert ", 0s old" in kerf("explain", "node/kept", *early).stdout
    assert "" == kerf("nodes", *early[:-1], "2026-01-05T06:00:00Z").stderr
