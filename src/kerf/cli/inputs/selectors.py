"""Label selectors as kubectl's `-l` writes them: `app=web,tier!=db,zone in (a,b),!old`."""

import re

from kerf.errors import InputError
from kerf.model.constraints import Requirement, Requirements

_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUALITY = re.compile(r"([^\s=!]+)\s*(==|=|!=)\s*([^\s=!,]*)")
_PRESENCE = re.compile(r"(!?)\s*([^\s=!(),]+)")


def parse_selector(text: str, place: str = "") -> Requirements:
    """The labels that are asked for; an empty text asks for nothing. `place` is where it stands, without it `-l`.

    Raises InputError.
    """
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)] if text.strip() else []
    return Requirements(_requirement(part, place or f"-l {text}") for part in parts)


def _requirement(part: str, place: str) -> Requirement:
    if match := _SET.fullmatch(part):
        values = [value.strip() for value in match[3].split(",")]
        return Requirement.spelt(match[1], "In" if match[2] == "in" else "NotIn", values)
    if match := _EQUALITY.fullmatch(part):
        return Requirement.spelt(match[1], "NotIn" if match[2] == "!=" else "In", (match[3],))
    if match := _PRESENCE.fullmatch(part):
        return Requirement.spelt(match[2], "DoesNotExist" if match[1] else "Exists")
    raise InputError(
        f"{place}: expected KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, got {part!r}"
    )
