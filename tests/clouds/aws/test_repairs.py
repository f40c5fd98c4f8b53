"""Which nodes of AWS are broken, after how long, and how long their drains may take: Karpenter's table."""

import pytest

from kerf.cloudprovider import repair_policies_of
from kerf.clouds.aws.provider import _REPAIRS
from kerf.model.nodeclaim import Condition

CARDS, NO = "AcceleratedHardwareReady", "False"


@pytest.mark.parametrize(
    ("condition", "minutes"),
    [
        (Condition("Ready", NO), [(30, 10)]),
        (Condition("Ready", "Unknown"), [(30, 10)]),
        (Condition("KernelReady", NO), [(30, 10)]),
        (Condition(CARDS, NO, "NvidiaXID79Error"), [(10, 5)]),
        (Condition(CARDS, NO, "NvidiaXID46Error"), [(10, 5)]),
        (Condition(CARDS, NO, "NvidiaXID790Error"), [(30, 10)]),
        (Condition(CARDS, NO, "DCGMError"), [(30, 10)]),
        (Condition(CARDS, "True", "NvidiaXID79Error"), []),
        (Condition("Weather", NO), []),
    ],
    ids=str,
)
def test_a_reason_of_its_own_goes_before_the_others(condition: Condition, minutes: list[tuple[int, int]]) -> None:
    """Errors of a card that stay are tolerated for ten minutes, whatever else is wrong with it for thirty."""
    found = repair_policies_of(_REPAIRS, condition)

    assert minutes == [(each.toleration_s // 60, each.drain_s // 60) for each in found]
