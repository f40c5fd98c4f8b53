"""The rules, by what they look at. Importing this package registers all of them."""

from collections.abc import Iterable

from kerf.errors import InputError
from kerf.lint.registry import PAGE, Rule, registered
from kerf.lint.rules import (
    bounds,
    budgets,
    buffers,
    cards,
    configs,
    disruption,
    form,
    groups,
    hami,
    keys,
    limits,
    metrics,
    own,
    placement,
    refused,
    requests,
    requirements,
    restarts,
    schedules,
    sizes,
    types,
    volumes,
    windows,
)

__all__ = [
    "bounds",
    "budgets",
    "buffers",
    "cards",
    "chosen",
    "configs",
    "disruption",
    "form",
    "groups",
    "hami",
    "keys",
    "limits",
    "metrics",
    "own",
    "placement",
    "refused",
    "requests",
    "requirements",
    "restarts",
    "rules",
    "schedules",
    "sizes",
    "types",
    "volumes",
    "windows",
]


def rules() -> dict[str, Rule]:
    """All rules by code, in the order of their codes."""
    return registered()


def chosen(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """The codes that `--select` and `--ignore` leave: codes or beginnings of codes; an empty `select` means all.

    Raises InputError for one that is no beginning of any code.
    """
    known = rules()

    def expanded(flag: str, texts: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for text in texts:
            matching = {code for code in known if code.startswith(text.upper())}
            if not matching or not text:
                raise InputError(f"{flag} {text}: expected a code such as KL012 or its beginning (hint: {PAGE})")
            found |= matching
        return found

    selected = expanded("--select", select) or set(known)
    return frozenset(selected - expanded("--ignore", ignore))
