"""Values that hold a whole cluster: their repr says how much they hold, never what.

No code prints them on purpose. But asyncio and tracebacks make reprs of whatever they meet, and throw most of the text
away afterwards: of 6,000 pods that was 15 GB.
"""

from collections.abc import Sized
from dataclasses import fields
from typing import Any, cast

from kerf.errors import brief


class Large:
    """Base of a dataclass with `repr=False`. Cost of its repr: the number of its fields."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = ((field.name, getattr(self, field.name)) for field in fields(cast(Any, self)))
        return f"{type(self).__name__}({', '.join(f'{name}={_brief(value)}' for name, value in parts)})"


def _brief(value: object) -> str:
    return f"<{len(value)}>" if isinstance(value, Sized) and not isinstance(value, str) else brief(value)
