"""What was probably meant by a name that does not exist."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

_MOST = 3
_SAME = {"x86_64": "amd64", "x86-64": "amd64", "x64": "amd64", "aarch64": "arm64", "armv8": "arm64"}
"""Values that programs other than Kubernetes write for the same machine."""
_WORDS = re.compile(r"[^a-z0-9]+")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.8) -> str:
    """The known name most like it, the same for any order of `known`; empty when none is like it."""
    close = get_close_matches(name, sorted(known), 1, cutoff)
    return close[0] if close else ""


def nearest_values(value: str, known: Collection[str]) -> list[str]:
    """The values of a label that were probably meant by one that no node has, at most three.

    The same in other letters; of numbers those on both sides; else what begins with it (`p6`: `p6-b200`), what it has
    as a word (`tesla-t4`: `t4`), what it is most like. Empty where none is like it. Cost: linear in `known`.
    """
    held = sorted(known)
    lower = value.lower()
    same = [each for each in held if each.lower() == lower or each == _SAME.get(lower)]
    if same:
        return same[:1]
    numbers = sorted(int(each) for each in held if each.isdecimal())
    if value.isdecimal() and len(numbers) == len(held):
        below, above = ([n for n in numbers if n < int(value)], [n for n in numbers if n > int(value)])
        return [str(number) for number in (*below[-1:], *above[:1])]
    begun = [each for each in held if each.lower().startswith(lower)]
    words = [each for each in held if each.lower() in _WORDS.split(lower)]
    like = get_close_matches(lower, held, 1, 0.8)
    return (begun or like or words or get_close_matches(lower, held, 1, 0.6))[:_MOST]
