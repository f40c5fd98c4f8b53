"""Which cards of a node are broken or gone."""

from dataclasses import replace

import pytest

from kerf.engine.explain.brokencards import broken_cards_text
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import REGISTERED_LESS
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterNode
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import a_claim, a_node, cards

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
