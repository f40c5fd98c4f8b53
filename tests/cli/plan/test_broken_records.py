"""What HAMi wrote and nobody can read is named, and holds back nothing but its own node."""

import json
from typing import Any

import pytest

from tests.cli.plan.test_found_configuration import Json, hamis_map, hamis_plugin, pods, pool
from tests.cli.program import Result, kerf

REGISTER = "hami.io/node-nvidia-register"


def card(uuid: str, **fields: Any) -> Json:
    """A healthy card of 22888 MiB in ten slots, as HAMi's plugin registers it."""
    held = {"id": uuid, "count": 10, "devmem": 22888, "devcore": 100, "type": "NVIDIA-NVIDIA A10G", "health": True}
    return {**held, **fields}


def node(name: str, *registered: Json, text: str | None = None) -> Json:
    """A ready node with these cards in its register."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "58", "nvidia.com/gpu": str(10 * len(registered))}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    annotations = {REGISTER: json.dumps(registered) if text is None else text}
    metadata = {"name": name, "labels": {"gpu": "on", "kubernetes.io/hostname": name}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def running(name: str, node_name: str, record: str, **limits: int) -> Json:
    """A pod on the node with HAMi's record, that asks for these amounts of `nvidia.com`."""
    each = pods(1, "", **limits)[0]
    annotations = {"hami.io/vgpu-node": node_name, "hami.io/vgpu-devices-allocated": record}
    metadata = {"name": name, "uid": f"u-{name}", "annotations": annotations}
    spec = {**each["spec"], "nodeName": node_name, "schedulerName": "hami-scheduler"}
    return {**each, "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def run(command: str, *objects: Json) -> Result:
    """The command with HAMi, its pool, and these objects."""
    found = [pool({"gpu": "on"}), hamis_map(slots=10), hamis_plugin(), *objects]
    return kerf(command, "-f", "-", stdin="\n".join(f"---\n{json.dumps(each)}" for each in found))


def test_a_card_that_is_registered_twice_takes_its_node_out_of_the_plan_and_no_other() -> None:
    """The node is named; a pod that would fit there is bought for, and one that fits elsewhere goes there."""
    twice, held = node("twice", card("GPU-a"), card("GPU-a")), running("r", "twice", "GPU-a,NVIDIA,12000,0:;", gpu=1)
    alone = run("plan", twice, held, *pods(1, gpu=1, gpumem=20000))
    beside = run("plan", twice, held, node("sound", card("GPU-b")), *pods(1, gpu=1, gpumem=20000))

    assert "gpu       launch  g5.xlarge, on-demand" in alone.stdout
    assert "default/p0 goes to sound, which is there or on its way" in beside.stdout
    for done in (alone, beside):
        assert 0 == done.returncode
        assert f"node twice takes no pod: Node twice: {REGISTER}[1].id: expected the UUID of a card" in done.stdout


def test_nodes_whose_cards_cannot_be_read_are_named_in_plan_and_gpus() -> None:
    """The first three with the reason, the others by name."""
    broken = [node(f"n{i}", text="[{") for i in range(5)]
    texts = run("plan", *broken, *pods(1, gpu=1)).stdout, run("gpus", *broken).stderr

    for text in texts:
        assert f"note: node n2 takes no pod: Node n2: {REGISTER}: expected a JSON list" in text
        assert "note: 2 more nodes (n3, n4) take no pod: kerf explain node/NAME says why" in text


def test_cards_with_one_index_differ_by_their_uuid() -> None:
    """Two cards of 22888 MiB hold two slices of 20000 MiB, whatever index they register."""
    same, none = [card("GPU-a", index=3), card("GPU-b", index=3)], [card("GPU-a"), card("GPU-b")]
    for cards in (same, none):
        done = run("plan", node("n", *cards), *pods(2, gpu=1, gpumem=20000))

        assert 0 == done.returncode
        assert "2 pods placed, 0 not" in done.stdout
        assert "default/p0 and 1 more go to n, which is there or on its way" in done.stdout


@pytest.mark.parametrize("shares", [10, 963, 964, 15_000])
def test_a_record_counts_whole_however_long_it_is(shares: int) -> None:
    """So a card with more containers than slots is full, though no decision put so many there."""
    record = "GPU-a,NVIDIA,1,0:" * shares + ";"
    objects = node("n", card("GPU-a")), running("r", "n", record, gpu=1)

    assert f"{shares} MiB" in run("gpus", *objects).stdout
    assert "gpu       launch  g5.xlarge, on-demand" in run("plan", *objects, *pods(1, gpu=1, gpumem=4000)).stdout


MISRECORDED = {
    "xx,yy": "Pod default/r: HAMi's record 'xx,yy' names no card, so on n HAMi counts nothing for the pod",
    "GPU-z,NVIDIA,9000,0:;": "Pod default/r: HAMi's record names 'GPU-z', which n has not registered, so HAMi counts",
    "GPU-a,NVIDIA,9000:;": "Pod default/r: HAMi's record cannot be read, so on n what the pod asks for counts instead:",
}


@pytest.mark.parametrize(("record", "text"), MISRECORDED.items(), ids=list(MISRECORDED))
def test_a_record_that_does_not_say_what_the_pod_holds_is_named(record: str, text: str) -> None:
    """In the plan, and by doctor with the command that gets another pod in its place."""
    objects = node("n", card("GPU-a")), running("r", "n", record, gpu=1, gpumem=9000)

    assert f"note: {text}" in run("plan", *objects, *pods(1, gpu=1)).stdout
    (line,) = [line for line in run("doctor", *objects).stdout.splitlines() if text in line]
    assert "kubectl delete pod r -n default: the one in its place gets a record of its own" in line


@pytest.mark.parametrize("record", ["", ";", "GPU-a,NVIDIA,9000,0:;", ";GPU-a,NVIDIA,9000,0:;"])
def test_a_record_of_the_nodes_own_cards_is_not_named(record: str) -> None:
    """Nor one without any, of a pod whose containers got none."""
    objects = node("n", card("GPU-a")), running("r", "n", record, gpu=1, gpumem=9000)

    assert "HAMi's record" not in run("plan", *objects, *pods(1, gpu=1)).stdout


@pytest.mark.parametrize(
    ("record", "is_taken"), [("GPU-a,NVIDIA,9000,0:;", True), ("GPU-z,NVIDIA,9000,0:;", False), ('{"a":1}', False)]
)
def test_a_forged_record_is_said_to_take_a_part_only_where_it_does(record: str, *, is_taken: bool) -> None:
    """Of a pod that waits and asks for no GPU: any user may write one."""
    forged = running("f", "n", record)
    del forged["spec"]["nodeName"]
    text = run("plan", node("n", card("GPU-a")), {**forged, "status": {"phase": "Pending"}}).stdout

    assert is_taken == ("that scheduler counts it, so the part of the GPU is taken" in text)
