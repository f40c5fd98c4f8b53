"""The data files beside this module, and the requirement values that thousands of types share."""

from functools import cache
from importlib.resources import files

from kerf.model.constraints import Requirement


def data(name: str) -> bytes:
    """The bytes of one file of the package's data."""
    return (files("kerf.catalog") / "data" / name).read_bytes()


@cache
def one_of(key: str, *values: str) -> Requirement:
    """`key In values`, one object for equal arguments: a catalogue repeats few distinct labels ten thousand times."""
    return Requirement(key, False, frozenset(values))


@cache
def absent(key: str) -> Requirement:
    """`key DoesNotExist`: how a provider says that a type lacks a label; asking for the label excludes it."""
    return Requirement(key)


def label(key: str, value: object) -> Requirement:
    """The label with that value, or its absence where there is none."""
    return absent(key) if value is None else one_of(key, str(value))
