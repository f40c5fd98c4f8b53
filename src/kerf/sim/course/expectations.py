"""What a scenario expected, beside what it got, in the same form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kerf.clouds.fake import FakeCloud
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL
from kerf.model.instancetypes import price_number
from kerf.sim.course.books import Books
from kerf.sim.course.observer import Observer
from kerf.sim.course.report import CheckedExpectation
from kerf.sim.course.steps import CostExpected, EventExpected, Expectation, NodesExpected, PodsExpected


@dataclass(frozen=True, slots=True)
class _Measure:
    """Numbers by field, as expected (None: not asked for) and as found; `shown` writes a found one."""

    wanted: Mapping[str, int | None]
    found: Mapping[str, int]
    shown: Callable[[int], Any] = int

    @property
    def is_met(self) -> bool:
        return all(wanted in (None, self.found[name]) for name, wanted in self.wanted.items())


def outcome_of(
    expectation: Expectation, observer: Observer, cloud: FakeCloud, books: Books, now_s: float
) -> CheckedExpectation:
    """Look now. `got` repeats what selects and has the numbers that were asked for."""
    expected = expectation.expected
    if isinstance(expected, NodesExpected):
        measure = _nodes(expected, observer, books)
    elif isinstance(expected, PodsExpected):
        measure = _pods(expected, observer)
    elif isinstance(expected, CostExpected):
        measure = _cost(expected, cloud, now_s)
    else:
        measure = _events(expected, observer)
    ((name, written),) = expectation.written.items()
    got = {field: value for field, value in written.items() if field not in measure.found}
    got |= {field: measure.shown(n) for field, n in measure.found.items() if measure.wanted[field] is not None}
    is_met = measure.is_met
    if isinstance(expected, EventExpected) and expected.count is None:
        got, is_met = {**got, "count": measure.found["count"]}, measure.found["count"] > 0
    offset_s = expectation.at_s
    return CheckedExpectation(offset_s, dict(expectation.written), {name: got}, is_met, expectation.place)


def _nodes(expected: NodesExpected, observer: Observer, books: Books) -> _Measure:
    labels = {
        NODE_POOL: expected.node_pool,
        INSTANCE_TYPE: expected.instance_type,
        CAPACITY_TYPE: expected.capacity_type,
    }
    wanted = {name: value for name, value in labels.items() if value}
    count = sum(all(node.labels.get(n) == v for n, v in wanted.items()) for node in books.nodes())
    most = observer.most(expected.node_pool, expected.instance_type, expected.capacity_type)
    return _Measure({"count": expected.count, "most": expected.most}, {"count": count, "most": most})


def _pods(expected: PodsExpected, observer: Observer) -> _Measure:
    found = {"pending": observer.pending(expected.namespace), "running": observer.running(expected.namespace)}
    return _Measure({"pending": expected.pending, "running": expected.running}, found)


def _cost(expected: CostExpected, cloud: FakeCloud, now_s: float) -> _Measure:
    paid = sum(bill.amount_micro(now_s) for bill in cloud.bills)
    found = {"perHour": cloud.price_per_hour_micro, "total": paid}
    return _Measure({"perHour": expected.per_hour_micro, "total": expected.total_micro}, found, price_number)


def _events(expected: EventExpected, observer: Observer) -> _Measure:
    count = sum(
        said.reason == expected.reason and expected.contains in said.message and expected.regards in ("", said.regards)
        for said in observer.said
    )
    return _Measure({"count": expected.count}, {"count": count})


def text_of(measured: Mapping[str, Any]) -> str:
    """An expectation or its outcome on one line: `nodePool g5, count 2`."""
    return ", ".join(f"{name} {value}" for fields in measured.values() for name, value in fields.items())
