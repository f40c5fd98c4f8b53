"""How often hints may be tried: each try costs a purchase or a decision, and there are as many as refused pods."""

from collections.abc import Callable

MOST = 1_000
"""Tries for one explanation. What is left then gets its reason and a hint that was not tried, without a patch."""
MOST_DECIDED = 10_000
"""Looks at a pod that may go into deciding again for one explanation, all its decisions together (`Decision.work`)."""
MOST_ASKED = 300_000
"""Types that may be asked for one explanation, all tries together: a purchase goes through all that are offered."""
MOST_DECIDED_FOR_ALL = 1_500
"""The same for the words of `kerf plan`, for all pods: `kerf explain` tries MOST_DECIDED for those it names."""
LEAST_DECIDED = 50
"""Looks that each decision counts for at least, so one explanation decides at most 200 times."""
MOST_LOOKED_AT = 1_000_000
"""Pods that are looked at for one explanation, to find out which of them keep others from their place."""


def _always() -> bool:
    return True


class Tries:
    """Counts the tries of one explanation, all of its refusals together.

    They end when they are used up, or for good when `is_wanted` says that there is something better to do. A decision
    costs by its work, so `decided` bounds that of all of them, and a purchase by the types that it is made among, so
    `asked` bounds those. The first of each is made whatever it costs: the decision that is explained cost as much.
    `are_short`: `kerf explain` would try more, and is named where they end. They are shared out among those that they
    are made for (`share`): one tenant's pods must not use up what explains another's.
    """

    def __init__(
        self,
        most: int = MOST,
        is_wanted: Callable[[], bool] = _always,
        *,
        decided: int = MOST_DECIDED,
        asked: int = MOST_ASKED,
        are_short: bool = False,
    ) -> None:
        self._left, self._is_wanted, self._decided, self._looks = most, is_wanted, decided, MOST_LOOKED_AT
        self._asked, self._most_asked = asked, asked
        self._is_refused, self._is_ended, self.are_short = False, False, are_short
        # What is kept of tries, types, looks of decisions and pods for those whose turn is still to come.
        self._for_others: tuple[int, ...] = (0, 0, 0, 0)
        self.refusals = 0
        """How many were asked for and not made."""
        self.decisions = 0
        """How many decisions were made."""

    @classmethod
    def for_all(cls) -> "Tries":
        """As many as a plan of everything is worth."""
        return cls(decided=MOST_DECIDED_FOR_ALL, are_short=True)

    def share(self, others: int) -> None:
        """What is asked from now on is for one of `others` + 1 that have no turn yet: of what is left it may have an
        equal part."""
        held = (self._left, self._asked, self._decided, self._looks)
        self._for_others = tuple(max(0, each) * others // (others + 1) for each in held)
        self._is_refused = self._is_ended = False

    def _refuse(self) -> bool:
        self._is_refused = True
        self.refusals += 1
        return False

    @property
    def are_over(self) -> bool:
        """Whether one that was asked for in this turn has been refused."""
        return self._is_refused

    def take(self, types: int = 0) -> bool:
        """Whether one more may be made, which asks so many types."""
        left, asked, _, _ = self._for_others
        is_too_much = self._asked - asked < types and self._asked < self._most_asked
        if not self._is_wanted():
            self._left = 0
        if self._is_ended or self._left <= left or is_too_much:
            self._is_ended = True
            return self._refuse()
        self._left -= 1
        self._asked -= types
        return True

    def take_decision(self, work: int) -> bool:
        """Whether one more decision may be made, which is likely to cost so much; `cost` says what it did."""
        cost = max(work, LEAST_DECIDED)
        if self._decided - self._for_others[2] < cost and self.decisions:
            return self._refuse()
        if not self.take():
            return False
        self._decided -= cost
        self.decisions += 1
        return True

    def cost(self, work: int, expected: int) -> None:
        """A decision that was taken for `expected` cost so much."""
        self.pay(max(0, work - max(expected, LEAST_DECIDED)))

    def pay(self, work: int) -> None:
        """What goes into decisions beside them cost so much."""
        self._decided -= work

    def take_look(self, pods: int) -> bool:
        """Whether so many pods may be looked at once more. The first look is allowed, however many there are."""
        is_too_much = self._looks - self._for_others[3] < pods and self._looks < MOST_LOOKED_AT
        if is_too_much or not self._is_wanted():
            return self._refuse()
        self._looks -= pods
        return True
