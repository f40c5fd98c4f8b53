"""What keeps a pod from being evicted: Karpenter's do-not-disrupt (karpenter disruption rules, v1.14)."""

import pytest

from kerf.model.eviction import is_protected, protection_problem
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
        ("1.5h", 5399, True),
        ("1.5h", 5400, False),
        ("+300ms", 0, True),
        ("1d", 0, False),
        ("Never", 0, False),
        ("9999999h", 0, False),
        ("2562047h", 0, True),
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


@pytest.mark.parametrize(
    "value, problem",
    [
        ("true", ""),
        ("1h30m", ""),
        ("tru", 'failed to parse "tru" as a duration: time: invalid duration "tru"'),
        ("True", 'failed to parse "True" as a duration: time: invalid duration "True"'),
        ("", 'failed to parse "" as a duration: time: invalid duration ""'),
        ("5", 'failed to parse "5" as a duration: time: missing unit in duration "5"'),
        ("1d", 'failed to parse "1d" as a duration: time: unknown unit "d" in duration "1d"'),
        ("9999999h", 'failed to parse "9999999h" as a duration: time: invalid duration "9999999h"'),
        ("-5m", 'duration "-5m" must be positive'),
        ("0", 'duration "0" must be positive'),
    ],
)
def test_what_is_ignored_says_why(value: str, problem: str) -> None:
    """In the words of Karpenter, which are partly Go's."""
    assert problem == protection_problem(a_pod(annotations={DO_NOT_DISRUPT: value}))


def test_a_value_of_any_length_is_shown_in_short() -> None:
    """It is anybody's text; a whole number of thousands of digits is more than Go counts."""
    problem = protection_problem(a_pod(annotations={DO_NOT_DISRUPT: "9" * 5000 + "h"}))

    assert "time: invalid duration" in problem
    assert 250 > len(problem)
    assert not protection_problem(a_pod(annotations={DO_NOT_DISRUPT: "0" * 5000 + "5h"}))
