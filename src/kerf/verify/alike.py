"""What is wrong with one node to buy is wrong with all that are alike."""

from collections.abc import Iterator, Sequence

from kerf.model.plan import Launch
from kerf.model.violations import PlanPart, Violation, violation


def for_each(found: Violation, launches: Sequence[Launch]) -> Iterator[Violation]:
    """The violation of the first of the launches, said of each of them."""
    first = launches[0].name
    for launch in launches:
        parts = [PlanPart(part.kind, launch.name) if part.name == first else part for part in found.parts]
        yield violation(found.rule, found.object.replace(first, launch.name), found.expected, found.got, *parts)
