"""TOML out: the standard library only reads it.

One line a value, tables by their dotted headers; what was read is written in its order. Lists of tables and tables
inside lists are written inline.
"""

import json
import math
from datetime import date, datetime, time
from typing import Any

from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import INVALID_USER_DATA

_MOST_LEVELS = 32
"""Of lists and tables inside each other."""
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

Object = dict[str, Any]


def toml_text(document: Object) -> str:
    """The document as text. Raises Unusable where it is nested deeper than 32 levels."""
    lines: list[str] = []
    waiting: list[tuple[tuple[str, ...], Object]] = [((), document)]
    while waiting:
        path, table = waiting.pop()
        if len(path) > _MOST_LEVELS:
            raise _too_deep()
        plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
        inner = [((*path, key), value) for key, value in table.items() if isinstance(value, dict)]
        # A header is needed for values, and where nothing else would show that the table is there.
        if path and (plain or not inner):
            lines += ["", f"[{'.'.join(map(_key, path))}]"]
        lines += [f"{_key(key)} = {_value(value, 0)}" for key, value in plain.items()]
        waiting += reversed(inner)
    return "\n".join(lines).lstrip("\n") + "\n"


def _too_deep() -> Unusable:
    return Unusable(INVALID_USER_DATA, f"spec.userData: expected TOML of at most {_MOST_LEVELS} levels")


def _key(key: str) -> str:
    return key if key and _BARE.issuperset(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, except that it leaves DEL as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, level: int) -> str:
    if level > _MOST_LEVELS:
        raise _too_deep()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(each, level + 1) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_value(each, level + 1)}' for key, each in value.items())}}}"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return _number(value)


def _number(value: int | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
