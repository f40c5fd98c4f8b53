"""Causes of the sharing families hold enums, quantities and names, and no sentence."""

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, get_args, get_type_hints

import pytest

from kerf import sharing
from kerf.model.causes import Cause

ROOM = "kerf.sharing."


def causes() -> list[type[Cause]]:
    """Every kind of cause that the room declares, by name."""
    for module in pkgutil.walk_packages(sharing.__path__, ROOM):
        import_module(module.name)
    return sorted((kind for kind in kinds(Cause) if is_declared(kind)), key=lambda kind: kind.__name__)


def is_declared(kind: type[Cause]) -> bool:
    """Whether a module of the room holds it: a dataclass with slots leaves the class that it was made from behind."""
    return kind.__module__.startswith(ROOM) and getattr(import_module(kind.__module__), kind.__name__, None) is kind


def kinds(base: type[Cause]) -> Iterator[type[Cause]]:
    """The classes below one."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def types_in(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of, also those of the fields of our own values in it."""
    arguments = get_args(annotation)
    if arguments:
        for argument in arguments:
            yield from types_in(argument)
        return
    yield annotation
    if inspect.isclass(annotation) and is_dataclass(annotation):
        for held in get_type_hints(annotation).values():
            yield from types_in(held)


def test_every_family_has_causes() -> None:
    """The search finds them, whatever module declares them."""
    found = {kind.__module__.removeprefix(ROOM) for kind in causes()}

    of_hami, of_nvidia = {"hami.family", "hami.refusals", "hami.shortage"}, {"nvidia.mig", "nvidia.partitions"}
    assert found >= {"family", "registry", "nvidia.whole", *of_hami, *of_nvidia}


@pytest.mark.parametrize("kind", causes(), ids=lambda kind: kind.__name__)
def test_no_field_of_a_cause_is_a_sentence(kind: type[Cause]) -> None:
    """A plain `str` could be one: names are `Name`, what others wrote is `Quoted`."""
    hints = get_type_hints(kind)
    plain = [field.name for field in fields(kind) if str in types_in(hints[field.name])]

    assert [] == plain


@pytest.mark.parametrize("kind", causes(), ids=lambda kind: kind.__name__)
def test_a_cause_is_a_value(kind: type[Cause]) -> None:
    """Frozen and hashable, so equal causes are told once."""
    parameters = kind.__dataclass_params__  # type: ignore[attr-defined]

    assert (True, True) == (parameters.frozen, parameters.eq)
