"""The register of rules. A code is for ever: one that is retired is never given to another rule.

A rule is a function; its docstring is its page: the first line says what it finds, the rest why that matters, what to
do instead, and where the rule comes from. The page, SARIF and `--explain` all print that one text.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from kerf.lint.findings import Check, Severity

PAGE = "docs/reference/lint.md"
"""Where the texts of all rules stand, each with its code in lower case as its anchor."""


@dataclass(frozen=True)
class Rule:
    """A rule as it is registered. `kinds` empty: every object. `check` takes the object and the context around it.

    `check` None: the linter itself finds it.
    """

    code: str
    name: str
    severity: Severity
    text: str
    check: Check | None = None
    kinds: frozenset[str] = frozenset()
    is_fixable: bool = False

    @cached_property
    def summary(self) -> str:
        """The first line, without its full stop."""
        return self.text.partition("\n")[0].rstrip(".")

    @property
    def page(self) -> str:
        """File and anchor of its text in the documentation."""
        return f"{PAGE}#{self.code.lower()}"


_RULES: dict[str, Rule] = {}


def rule(
    code: str, name: str, severity: Severity, kinds: Iterable[str] = (), *, is_fixable: bool = False
) -> Callable[[Check], Check]:
    """Register the function under that code and name."""

    def register(check: Check) -> Check:
        add(Rule(code, name, severity, inspect.getdoc(check) or "", check, frozenset(kinds), is_fixable))
        return check

    return register


def add(new: Rule) -> None:
    """Register a rule. Raises ValueError for a code or name that is taken."""
    if new.code in _RULES or any(held.name == new.name for held in _RULES.values()):
        raise ValueError(f"two rules named {new.code} or {new.name}")
    _RULES[new.code] = new


def registered() -> dict[str, Rule]:
    """The rules of the modules that were imported, by code, in the order of their codes."""
    return dict(sorted(_RULES.items()))
