"""Which cards of a node are broken or gone."""

from dataclasses import replace

import pytest

from kerf.engine.explain.brokencards import broken_cards_text
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import REGISTERED_LESS
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterNode
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import a_claim, a_node, a_pod, cards, resources

CARD = DeviceState("GPU-a", 0, "NVIDIA A10G", 24576)


def text(*devices: DeviceState, promised: int = 2, registered_less: bool = False) -> str:
    """What is said of a node with these cards that was to have so many."""
    noted = written(Promises(devices=tuple(cards(promised))))
    if registered_less:
        noted[REGISTERED_LESS] = "one"
    node = ClusterNode(a_node(), a_claim(annotations=noted), (), devices, "hami", devices_observed=True)
    return broken_cards_text(node, family_named("hami", FAMILIES))


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ((CARD, replace(CARD, id="GPU-b", index=1)), ""),
        ((CARD, replace(CARD, id="GPU-b", index=1, healthy=False)), "GPU 1 (GPU-b) is unhealthy"),
        ((CARD,), "1 of 2 GPUs is not registered"),
        ((), "2 of 2 GPUs are not registered"),
        ((replace(CARD, healthy=False),), "GPU 0 (GPU-a) is unhealthy; 1 of 2 GPUs is not registered"),
    ],
)
def test_each_broken_card_is_named(devices: tuple[DeviceState, ...], said: str) -> None:
    """And how many have left the register, of which nothing else is known."""
    assert said == text(*devices)


def test_a_node_that_is_kept_with_fewer_cards_has_lost_none() -> None:
    """That was said when it registered."""
    assert "" == text(CARD, registered_less=True)


def test_where_no_card_is_left_its_users_are_named() -> None:
    """Of a node whose pods are on cards of which nothing is known any more; one that asks for none is not."""
    noted = written(Promises(devices=tuple(cards(2))))
    pods = (a_pod("b", gpu=1, gpumem=1000), a_pod("a", gpu=1, gpumem=1000), a_pod("c", cpu=1))
    node = ClusterNode(a_node(), a_claim(annotations=noted), pods)

    said = broken_cards_text(node, family_named("hami", FAMILIES))
    assert "2 of 2 GPUs are not registered, with pods default/b, default/a there" == said


@pytest.mark.parametrize(
    ("shown", "requested", "said"),
    [(0, 2, "none of its GPUs is registered"), (1, 2, ""), (0, 0, "")],
)
def test_a_claim_that_promises_no_cards_had_those_that_it_requested(shown: int, requested: int, said: str) -> None:
    """Another autoscaler launched it; without them it would not have initialised. How many there were is not known."""
    node = a_node(allocatable={"cpu": 4, "nvidia.com/gpu": shown})
    asked = resources(**{"nvidia.com/gpu": requested})

    assert said == broken_cards_text(ClusterNode(node, a_claim(requests=asked)), family_named("whole", FAMILIES))


def test_a_node_that_is_kept_with_fewer_cards_has_lost_them_when_none_is_left() -> None:
    """Then it has fewer than it was kept with."""
    assert "none of its GPUs is registered" == text(registered_less=True)
