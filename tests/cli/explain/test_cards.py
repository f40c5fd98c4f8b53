"""`kerf explain node` says how full each card is, in what its cards are counted by."""

import json

from tests.cli.explain.test_patches import planned
from tests.patches import Object


def a_node(labels: dict[str, str], shown: dict[str, str]) -> Object:
    """A node with one A100 that kubelet shows so."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.count": "1", **labels}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "58", **shown},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def test_a_card_that_mig_cuts_has_instances_and_no_slots() -> None:
    """By profile, with how many are taken."""
    shown = {"nvidia.com/mig-1g.5gb": "2", "nvidia.com/mig-3g.20gb": "1"}
    text = planned([a_node({"nvidia.com/mig.config": "all-balanced"}, shown)], "explain", "node/n").stdout

    assert "0 of 2 1g.5gb, 0 of 1 3g.20gb; idle" in text
    assert "slots" not in text


def test_a_broken_card_is_marked() -> None:
    """The others are not."""
    register = [
        {"id": f"GPU-{i}", "index": i, "count": 10, "devmem": 22888, "devcore": 100, "type": "A10G", "health": i == 1}
        for i in range(2)
    ]
    node = a_node({}, {"nvidia.com/gpu": "20"})
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": json.dumps(register)}
    text = planned([node], "explain", "node/n").stdout

    assert "0 of 10 slots; idle; unhealthy\n" in text
    assert 1 == text.count("unhealthy")
