"""What a device plugin registers, the same in virtual time and on a real API."""

import pytest

from kerf.clouds.device_plugins import (
    cards_of,
    first_unhealthy,
    may_start,
    mock_amounts,
    registering_less,
    registration,
)
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT
from kerf.sharing.family import Family
from kerf.sharing.hami.config import HamiConfig
from kerf.sharing.hami.records import REGISTER, parse_register
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import cards

HAMI, WHOLE = family_named("hami", FAMILIES), family_named("whole", FAMILIES)
CORDON, TEAM = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), Taint("team", "ml", "NoSchedule")


def found(family: Family, count: int = 2) -> tuple[DeviceState, ...]:
    """The cards of a node as the family's plugin finds them."""
    return cards_of(family, cards(count), "node", {}, {})


@pytest.mark.parametrize(
    ("taint", "starts"),
    [(None, [True, True]), (CORDON, [True, True]), (TEAM, [False, True]), (UNREGISTERED_TAINT, [False, False])],
)
def test_a_taint_keeps_a_plugin_off_that_does_not_tolerate_it(taint: Taint | None, starts: list[bool]) -> None:
    """HAMi's has no tolerations of its own, NVIDIA's tolerates the taints of GPU pools."""
    taints = [taint] if taint is not None else []

    assert starts == [may_start(family, taints) for family in (HAMI, WHOLE)]


def test_only_hami_keeps_records_on_the_node() -> None:
    """What kubelet shows, and the register that Kerf reads back."""
    hami, whole = registration(HAMI, found(HAMI)), registration(WHOLE, found(WHOLE))

    assert {"nvidia.com/gpu": 20} == hami.amounts
    assert ["GPU-node-0", "GPU-node-1"] == [card.id for card in parse_register(hami.annotations[REGISTER])]
    assert ({"nvidia.com/gpu": 2}, {}) == (whole.amounts, whole.annotations)


def test_a_resource_that_is_shown_no_more_is_zero() -> None:
    """Kubelet keeps what a plugin once registered."""
    assert {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 0} == registration(
        WHOLE, found(WHOLE, 1), ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb")
    ).amounts


def test_less_is_memory_where_it_is_recorded_and_a_card_elsewhere() -> None:
    """The shares are rounded down."""
    assert [11444, 11444] == [card.memory_mib for card in registering_less(HAMI, found(HAMI), 50)]
    assert 1 == len(registering_less(WHOLE, found(WHOLE), 50))


def test_a_broken_card_is_the_first_that_is_there() -> None:
    """None where all are lost."""
    assert [False, True] == [card.healthy for card in first_unhealthy(found(HAMI))]
    assert () == first_unhealthy(())


def test_the_mock_plugin_sums_over_the_node() -> None:
    """Memory in HAMi's unit, cores and percentages of all cards."""
    amounts = mock_amounts(HamiConfig(), found(HAMI))

    assert {"nvidia.com/gpumem": 45776, "nvidia.com/gpucores": 200, "nvidia.com/gpumem-percentage": 200} == amounts
