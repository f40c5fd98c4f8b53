"""How often hints may be tried: each try costs about a decision, and there are as many as pods, pools and limits."""

from collections.abc import Callable

MOST = 1_000
"""Tries for one explanation. What is left then gets its reason and a hint that was not tried, without a patch."""


def _always() -> bool:
    return True


class Tries:
    """Counts the tries of one explanation, all of its refusals together.

    They end when they are used up, or for good when `is_wanted` says that there is something better to do.
    """

    def __init__(self, most: int = MOST, is_wanted: Callable[[], bool] = _always) -> None:
        self._left, self._is_wanted = most, is_wanted

    @property
    def are_over(self) -> bool:
        """Whether one that was asked for has been refused."""
        return self._left < 0

    def take(self) -> bool:
        """Whether one more may be made."""
        if self._left <= 0 or not self._is_wanted():
            self._left = -1
            return False
        self._left -= 1
        return True
