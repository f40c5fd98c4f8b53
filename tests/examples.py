"""How many examples a property tries: all in `make test-all`, the first third of them in the gate."""

import os
from typing import Any

from hypothesis import settings

__all__ = ["DEFAULT", "IS_ALL", "examples"]

DEFAULT = 100
"""Of a property that names no number."""

_LEAST = 20
IS_ALL = os.environ.get("KERF_EXAMPLES") == "all"


def examples(most: int = DEFAULT, **others: Any) -> settings:
    """Settings with `most` examples, or a third of them; of a fixed sequence the first."""
    return settings(max_examples=most if IS_ALL else max(_LEAST, most // 3), **others)
