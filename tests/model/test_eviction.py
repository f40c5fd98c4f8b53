"""What keeps a pod from being evicted: Karpenter's do-not-disrupt (karpenter disruption rules, v1.14)."""

import pytest

from kerf.model.eviction import is_protected
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.testing.builders import NOON_S, a_pod


@pytest.mark.parametrize(
    "value, age_s, protected",
    [
        ("true", 10**9, True),
        ("True", 0, False),
        ("false", 0, False),
        ("", 0, False),
        ("1h30m", 5399, True),
        ("1h30m", 5400, False),
        ("45s", 44, True),
        ("0s", 0, False),
        ("10", 0, False),
        ("m", 0, False),
        ("-5m", 0, False),
    ],
)
def test_protection_is_true_or_a_duration_from_the_pods_start(value: str, age_s: float, protected: bool) -> None:
    """Anything else is ignored."""
    pod = a_pod(annotations={DO_NOT_DISRUPT: value}, started_s=NOON_S - age_s)

    assert protected == is_protected(pod, NOON_S)


def test_a_pod_that_never_started_is_as_old_as_its_object() -> None:
    """The duration counts from creation then."""
    pod = a_pod(annotations={DO_NOT_DISRUPT: "1h"}, created_s=NOON_S - 1800)

    assert is_protected(pod, NOON_S)
    assert not is_protected(pod, NOON_S + 1800)
