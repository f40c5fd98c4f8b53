"""How many examples a property tries: all in `make test-all`, the first third of them in the gate."""

import os
from typing import Any

from hypothesis import settings

__all__ = ["DEFAULT", "IS_ALL", "examples"]

DEFAULT = 100
"""Of a property that names no number."""

_LEAST = 20
IS_ALL = os.environ.get("KERF_EXAMPLES") == "all"


def examples(most: int = DEFAULT, *, least: int = _LEAST, **others: Any) -> settings:
    """Settings with `most` examples, or a third of them, and no fewer than `least`; of a fixed sequence the first."""
    return settings(max_examples=most if IS_ALL else min(most, max(least, most // 3)), **others)
