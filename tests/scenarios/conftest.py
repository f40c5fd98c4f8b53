"""What holds of every scenario: each decision keeps the rules as it was made, so none is ever refused."""

from collections.abc import Iterator

import pytest

from kerf.model.violations import PlanRule
from kerf.telemetry import DECISIONS_REFUSED


def refusals() -> dict[str, float]:
    """How many decisions broke each rule so far, in this process; rules that none broke are left out."""
    counted = {rule.value: DECISIONS_REFUSED.labels(rule.value)._value.get() for rule in PlanRule}
    return {rule: number for rule, number in counted.items() if number}


@pytest.fixture(autouse=True)
def no_refusals() -> Iterator[None]:
    """The last line is for faults that nobody knows of. Where a scenario needs it, the search is wrong."""
    before = refusals()
    yield
    assert before == refusals()
