"""Policy documents of IAM, as far as identity-based policies of an autoscaler go: what they allow.

A request is allowed where one `Allow` statement has its action, its resource and every condition; a call needs several
such requests, one for each resource that it names or makes. What is not evaluated here (`Deny`, `Not*`, variables,
other operators) is refused when the document is read, because a document that is half understood would allow
anything or nothing.

Source: "IAM JSON policy elements reference" of AWS' IAM user guide, read 2026-11.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

_OPERATORS = ("StringEquals", "StringLike")
_ELEMENTS = frozenset({"Sid", "Effect", "Action", "Resource", "Condition"})
_VARIABLE = "${"

Keys = tuple[tuple[str, str], ...]
"""Condition keys of a request and their values, by key."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a call needs: an action on a resource, asked with these condition keys. `*` is an action without one."""

    action: str
    resource: str
    keys: Keys = ()

    def __str__(self) -> str:
        """As the messages of AWS have it."""
        return f"{self.action} on resource: {self.resource}"


@dataclass(frozen=True, slots=True)
class PolicyStatement:
    """One statement. `conditions` are (operator, key, values): every one must hold, and one value is enough."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def allows(self, need: Need) -> bool:
        """Whether it grants the need. Names of actions and of keys know no case."""
        return (
            any(_is_like(pattern.lower(), need.action.lower()) for pattern in self.actions)
            and any(_is_like(pattern, need.resource) for pattern in self.resources)
            and all(_holds(*condition, need.keys) for condition in self.conditions)
        )


def read_policy(document: Mapping[str, Any]) -> tuple[PolicyStatement, ...]:
    """The statements of a document. Raises ValueError for what would not be evaluated."""
    return tuple(_statement(each) for each in _listed(document["Statement"]))


def is_allowed(statements: Iterable[PolicyStatement], need: Need) -> bool:
    """Whether a statement grants the need."""
    return any(statement.allows(need) for statement in statements)


def _statement(raw: Mapping[str, Any]) -> PolicyStatement:
    unknown = sorted(set(raw) - _ELEMENTS)
    if unknown or raw.get("Effect") != "Allow":
        raise ValueError(f"statement {raw.get('Sid', '')}: not evaluated: {', '.join(unknown) or raw.get('Effect')}")
    conditions = []
    for operator, keys in raw.get("Condition", {}).items():
        if operator not in _OPERATORS:
            raise ValueError(f"statement {raw.get('Sid', '')}: operator {operator} is not evaluated")
        conditions += [(operator, key, _texts(values)) for key, values in keys.items()]
    return PolicyStatement(_texts(raw["Action"]), _texts(raw["Resource"]), tuple(conditions))


def _texts(values: Any) -> tuple[str, ...]:
    texts = tuple(str(value) for value in _listed(values))
    filled = [text for text in texts if _VARIABLE in text]
    if filled:
        raise ValueError(f"variables and placeholders are not evaluated: {filled[0]}")
    return texts


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else [values]


def _holds(operator: str, key: str, values: tuple[str, ...], keys: Keys) -> bool:
    """A key that the request lacks fits nothing."""
    held = next((value for name, value in keys if name.lower() == key.lower()), None)
    if held is None:
        return False
    return held in values if operator == "StringEquals" else any(_is_like(pattern, held) for pattern in values)


def _is_like(pattern: str, text: str) -> bool:
    return _expression(pattern).fullmatch(text) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """IAM's wildcards are `*` and `?`; a bracket is a bracket."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(letter) or re.escape(letter) for letter in pattern), re.DOTALL)
