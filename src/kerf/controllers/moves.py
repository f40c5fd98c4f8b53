"""What moves that were to save money have come to: the memory of the last few.

Kerf plans where evicted pods go, and schedulers put them elsewhere. Mostly that is as good. Where pods keep apart, or
one takes the only room of another, some find no place, and a node is bought for them. The next plan then saves the
same again, on paper, and so on without end. This is kept in memory only: forgetting it costs one more try.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.controllers.elapsed import passed_s
from kerf.model.plan import Launch
from kerf.model.pods import Pod
from kerf.model.rejections import Workload, workload_of

SUCCEEDS_S = 180.0
"""What waits so long after an eviction waits for the place that was planned then."""
_BEGINS_S = 3_600.0
"""So long nodes may take to come up before pods are evicted."""


@dataclass
class _Step:
    """The claims that go, what made the pods on them, how many of each, and what it saves an hour; what has been bought
    for as many such pods since, an hour; when it was decided, and when the last pod was evicted (`passed_s`)."""

    claims: frozenset[str]
    workloads: Counter[Workload]
    saved_micro: int
    began_s: float
    evicted_s: float | None = None
    bought_micro: float = 0
    counted: Counter[Workload] = field(default_factory=Counter)

    @property
    def ends_s(self) -> float:
        return self.began_s + _BEGINS_S if self.evicted_s is None else self.evicted_s + SUCCEEDS_S

    def moved(self, names: Sequence[Workload]) -> int:
        """How many of these pods may have been moved: no more of a workload than were, however many it has since."""
        before = self.counted.total()
        for name in names:
            self.counted[name] = min(self.counted[name] + 1, self.workloads[name])
        return self.counted.total() - before


class Moves:
    """Steps by which pods are moved to save money. Only on a running loop."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def begin(self, claims: Iterable[str], pods: Iterable[Pod], saved_micro: int) -> None:
        """The nodes of these claims, with these pods, make way for what costs so much less an hour."""
        self._forget()
        self._steps.append(_Step(frozenset(claims), Counter(map(workload_of, pods)), saved_micro, passed_s()))

    def evicted(self, claim: str) -> None:
        """A pod on the node of that claim was evicted."""
        for step in self._steps:
            if claim in step.claims:
                step.evicted_s = passed_s()

    def failed_by(self, launches: Iterable[Launch], pods: Mapping[str, Pod]) -> frozenset[Workload]:
        """What was moved by steps that save nothing any more, now that this is bought.

        `pods` are those, by key, that may wait in the place of evicted ones. A launch counts by its share of them.
        """
        self._forget()
        failed = frozenset[Workload]()
        for launch in launches:
            names = [workload_of(pods[each.pod]) for each in launch.pods if each.pod in pods]
            for step in self._steps:
                moved = step.moved(names) if step.evicted_s is not None else 0
                step.bought_micro += moved * launch.price_micro / max(1, len(launch.pods))
                if moved and step.bought_micro >= step.saved_micro:
                    failed |= step.workloads.keys()
        return failed

    def _forget(self) -> None:
        now_s = passed_s()
        self._steps = [step for step in self._steps if now_s < step.ends_s]
