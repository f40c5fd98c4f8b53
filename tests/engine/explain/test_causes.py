"""Every cause has words, and none holds a sentence."""

import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from inspect import isclass
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import pytest

from kerf import engine, model
from kerf.engine.buy.launching import Needed
from kerf.engine.buy.relabelling import IdleNodeFits
from kerf.engine.disruption.causes import (
    Alternative,
    Broken,
    Drifts,
    EmptyFor,
    FloorCostsLess,
    Going,
    Keeping,
    NoAlternative,
    NoSaving,
    PodsFit,
    Repacked,
    RepackedInTurn,
    Unconsolidatable,
)
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.disruption import (
    alternative_text,
    going_text,
    keeping_text,
    removal_text,
    unconsolidatable_text,
)
from kerf.engine.explain.launches import why_launched, why_relabelled
from kerf.engine.explain.runs import warning_text
from kerf.engine.headroom.prewarm import RunWarning
from kerf.model.causes import Cause, Name, NotBought, PoolStatic
from kerf.model.constraints import Requirement, Requirements, Taint
from kerf.model.nodepool import EMPTY
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.plan import Deletion
from kerf.model.violations import PartKind, PlanPart
from tests.engine.buy.test_configuration_choice import pods
from tests.engine.buy.test_relabelling import cut_node, decided
from tests.sharing.test_causes import kinds

OTHERS = (Alternative, NoAlternative)
REPACKED = (Repacked, RepackedInTurn, FloorCostsLess)
KEEPING, GOING, REMOVING = get_args(Keeping), get_args(Going), (EmptyFor, PodsFit, *REPACKED, Drifts, Broken)
BY_OTHERS = (NotBought,)
"""Said by the misfits of the pod, which are causes themselves."""
ROOMS = (model, engine)


def is_declared(kind: type[Cause]) -> bool:
    """Whether a module of these rooms holds it; see tests/sharing for the class that slots leave behind."""
    in_rooms = kind.__module__.startswith(tuple(f"{room.__name__}." for room in ROOMS))
    return in_rooms and getattr(import_module(kind.__module__), kind.__name__, None) is kind


def causes() -> list[type[Cause]]:
    """Every kind of cause that model and engine declare, by name."""
    for room in ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            import_module(module.name)
    return sorted(filter(is_declared, kinds(Cause)), key=lambda kind: kind.__name__)


def types_in(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of, and those of the parts that modules of causes declare for them."""
    if get_args(annotation):
        for argument in get_args(annotation):
            yield from types_in(argument)
        return
    yield annotation
    if is_dataclass(annotation) and annotation.__module__.endswith((".causes", ".groups")) and annotation is not Cause:
        for held in get_type_hints(annotation).values():
            yield from types_in(held)


SIMPLE: dict[Any, Any] = {
    int: 3,
    float: 3.0,
    bool: True,
    NoneType: None,
    Cause: PoolStatic(),
    Placeholder: Placeholder(Keeper.RUN, "team/kept"),
    Taint: Taint("dedicated", "NoSchedule"),
    Requirement: Requirement("zone", values=frozenset({"a"})),
    Requirements: Requirements.of_labels({"zone": "a"}),
    PlanPart: PlanPart(PartKind.LAUNCH, "n"),
    Deletion: Deletion("n", "c", "p", 0, EMPTY, EmptyFor(60), why="empty for 1m"),
}


def sample(annotation: Any, name: str = "") -> Any:
    """Some value of a type; every name in it is that of its field."""
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, NewType):
        return annotation("UTC" if name == "time_zone" else name)
    if origin in (Union, UnionType):
        return sample(arguments[0], name)
    if origin is tuple:
        return tuple(sample(each, name) for each in arguments if each is not Ellipsis)
    if isclass(annotation) and issubclass(annotation, Enum):
        return next(iter(annotation))
    assert isclass(annotation), f"{name}: no sample of {annotation}"
    assert is_dataclass(annotation), f"{name}: no sample of {annotation}"
    hints = get_type_hints(annotation)
    return annotation(**{field.name: sample(hints[field.name], field.name) for field in fields(annotation)})


def words(kind: type[Cause]) -> str:
    """What the module that words such a cause says of one."""
    if kind in (Needed, IdleNodeFits):
        made = decided(pods({"mig-3g.20gb": 3}), cut_node())
        (launch,), (relabel,) = made.launches, made.relabels
        return why_launched(replace(launch, why="")) if kind is Needed else why_relabelled(replace(relabel, why=""))
    cause = sample(kind)
    if kind in KEEPING:
        return keeping_text(cause)
    if kind in get_args(NoSaving):
        return unconsolidatable_text(Unconsolidatable(Name("n"), cause))
    if kind in GOING:
        return going_text(cause)
    if kind in OTHERS:
        return alternative_text(cause, "USD")
    if kind in get_args(RunWarning):
        return warning_text(cause)
    if kind in REMOVING:
        return removal_text(replace(SIMPLE[Deletion], cause=cause), "USD")
    return cause_text(cause)


def test_model_and_engine_declare_causes() -> None:
    """The search finds those of each module that has some."""
    found = {kind.__module__.removeprefix("kerf.") for kind in causes()}

    of_engine = {"engine.disruption.causes", "engine.buy.launching", "engine.buy.relabelling"}
    of_model = {"model.causes", "model.groups", "model.market", "model.rejections", "model.topology", "model.windows"}
    of_checks = {"model.violations"}
    of_lookups = {"model.buffercauses", "model.preferences", "model.runtimeclasses", "model.volumecauses"}
    assert of_model | of_lookups | of_checks | of_engine | {"engine.headroom.prewarm"} == found
    assert {*KEEPING, *GOING, *REMOVING, Needed, IdleNodeFits} <= set(causes())


@pytest.mark.parametrize("kind", [kind for kind in causes() if kind not in BY_OTHERS], ids=lambda kind: kind.__name__)
def test_every_cause_has_words(kind: type[Cause]) -> None:
    """One that has none would stop the explanation of a whole plan."""
    assert words(kind)


@pytest.mark.parametrize("kind", causes(), ids=lambda kind: kind.__name__)
def test_no_field_of_a_cause_is_a_sentence(kind: type[Cause]) -> None:
    """A plain `str` could be one: names are `Name`, what others wrote is `Quoted`."""
    hints = get_type_hints(kind)
    plain = [field.name for field in fields(kind) if str in types_in(hints[field.name])]

    assert [] == plain


@pytest.mark.parametrize("kind", causes(), ids=lambda kind: kind.__name__)
def test_a_cause_is_a_frozen_value(kind: type[Cause]) -> None:
    """So a decision can be explained later, and shows what it was made from."""
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_a_cause_of_no_module_is_an_error() -> None:
    """It is not passed over in silence."""
    with pytest.raises(TypeError, match="no words for Cause"):
        cause_text(Cause())
