"""What was probably meant by a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], cutoff: float = 0.8) -> str:
    """The known name most like it, the same for any order of `known`; empty when none is like it."""
    close = get_close_matches(name, sorted(known), 1, cutoff)
    return close[0] if close else ""
