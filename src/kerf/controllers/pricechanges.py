"""Prices that change: what each offering whose price has changed within a day has cost.

Kept in memory only. After a restart the prices at which nodes were bought within a day are known from their claims.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.market import REMEMBERED_S, PriceHistory


@dataclass
class _Course:
    """The prices of one offering, each with the moment from which it held; the last holds still."""

    spans: list[tuple[float, int]] = field(default_factory=list)

    def note(self, price_micro: int, now_s: float) -> bool:
        """Whether the price is another than the last."""
        if self.spans and self.spans[-1][1] == price_micro:
            return False
        self.spans.append((now_s, price_micro))
        return len(self.spans) > 1

    def forget(self) -> None:
        """Leave out what ended more than a day before the last change: no history says anything of it."""
        ended = (until_s for _, (until_s, _) in pairwise(self.spans))
        over = sum(until_s <= self.spans[-1][0] - REMEMBERED_S for until_s in ended)
        del self.spans[:over]

    def history(self, offering: OfferingKey, now_s: float) -> PriceHistory | None:
        """None where the price has not changed within a day. To be asked after `forget`: all spans count."""
        changed_s, price_micro = self.spans[-1]
        if len(self.spans) < 2 or now_s >= changed_s + REMEMBERED_S:
            return None
        changes = sum(since_s > changed_s - REMEMBERED_S for since_s, _ in self.spans[1:])
        first_s = max(self.spans[0][0], changed_s - REMEMBERED_S)
        ended = ((max(since_s, first_s), until_s, price) for (since_s, price), (until_s, _) in pairwise(self.spans))
        paid = sum(max(0.0, until_s - since_s) * price for since_s, until_s, price in ended)
        before_micro = self.spans[-2][1]
        for_s = changed_s - first_s
        mean_micro = round(paid / for_s) if for_s > 0 else before_micro
        held = [price for _, price in self.spans]
        return PriceHistory(
            offering, price_micro, before_micro, mean_micro, round(for_s), changes, changed_s, min(held), max(held)
        )


class PriceChanges:
    """Of all offerings. Costs memory for each offering, and for each change of a day."""

    def __init__(self) -> None:
        self._courses: dict[OfferingKey, _Course] = {}
        self._changing: dict[OfferingKey, _Course] = {}
        # The last answer, and until when it stands while no price changes.
        self._histories: tuple[PriceHistory, ...] = ()
        self._stand_until_s = 0.0

    def note(self, types: Iterable[InstanceType], now_s: float) -> None:
        """What is for sale from now on. Cost: the offerings."""
        for kind in types:
            for offering in kind.offerings:
                key = offering.key_of(kind.name)
                course = self._courses.setdefault(key, _Course())
                if course.note(offering.price_micro, now_s):
                    self._changing[key] = course
                    self._stand_until_s = 0.0

    def bought(self, prices: Iterable[tuple[float, OfferingKey, int]]) -> None:
        """When, as what and for how much an hour nodes were bought before the first look at what is for sale."""
        earlier: dict[OfferingKey, _Course] = {}
        for at_s, key, price_micro in sorted(prices):
            earlier.setdefault(key, _Course()).note(price_micro, at_s)
        for key, course in earlier.items():
            seen = self._courses.get(key)
            if seen is not None:
                for at_s, price_micro in seen.spans:
                    course.note(price_micro, at_s)
                self._courses[key] = self._changing[key] = course
                self._stand_until_s = 0.0

    def histories(self, now_s: float) -> tuple[PriceHistory, ...]:
        """Of what has changed within a day, by offering. Cost: these, where one has changed or was a day ago."""
        if now_s >= self._stand_until_s:
            for key, course in list(self._changing.items()):
                course.forget()
                if now_s >= course.spans[-1][0] + REMEMBERED_S:
                    del self._changing[key]
            found = (self._changing[key].history(key, now_s) for key in sorted(self._changing))
            self._histories = tuple(each for each in found if each is not None)
            changed_s = (each.changed_s for each in self._histories)
            self._stand_until_s = min(changed_s, default=now_s) + REMEMBERED_S
        return self._histories

    def shift(self, by_s: float) -> None:
        """The clock was set by so much."""
        for course in self._courses.values():
            course.spans = [(since_s + by_s, price) for since_s, price in course.spans]
        self._stand_until_s = 0.0
