"""AWSNodeTemplate's selectors to the selector terms of EC2NodeClass.

An old selector is one map whose entries must all hold, and a comma in a value means `or`. Today's terms are a list of
which one must hold, and each value is taken literally: so one selector becomes as many terms as it has combinations
(upgrade notes of Karpenter 0.32, "SubnetSelector, SecurityGroupSelector, and AMISelector").
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

_IDS = ("aws-ids", "aws::ids")
_NAMES, _OWNERS = "aws::name", "aws::owners"
MOST_TERMS = 30
"""The CRD takes no more."""
Term = dict[str, Any]


def terms_of(selector: Mapping[str, str]) -> tuple[list[Term], tuple[str, ...]]:
    """The terms that select the same, in the order of the text, and the keys that no term can hold.

    Where identifiers are given they alone select, because a term with an `id` takes nothing else. A selector with too
    many combinations gives no term.
    """
    identifiers = [identifier for key in _IDS if key in selector for identifier in _parts(selector[key])]
    if identifiers:
        return [{"id": identifier} for identifier in identifiers], tuple(key for key in selector if key not in _IDS)
    tags = {key: value for key, value in selector.items() if key not in (_NAMES, _OWNERS)}
    terms = list(_combined(tags, _parts(selector.get(_NAMES, "")), _parts(selector.get(_OWNERS, ""))))
    return (terms, ()) if len(terms) <= MOST_TERMS else ([], tuple(selector))


def _combined(tags: Mapping[str, str], names: list[str], owners: list[str]) -> Iterator[Term]:
    choices = [[(key, value) for value in _parts(values) or ["*"]] for key, values in tags.items()]
    for owner in owners or [""]:
        for name in names or [""]:
            for chosen in product(*choices):
                term: Term = {"name": name} if name else {}
                if chosen:
                    term["tags"] = dict(chosen)
                if term and owner:
                    term["owner"] = owner
                if term:
                    yield term


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
