"""Python's garbage collector while a command reads all there is, and while it decides."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 50_000
"""So many objects are made before the youngest are looked through. Python's own number is 700; a plan for ten thousand
pods makes millions, hardly one of them garbage that counting references leaves, and took an eighth longer for it."""


def collect_seldom() -> None:
    """Look for garbage less often, in this process and from now on."""
    gc.set_threshold(_YOUNG)


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection meanwhile, nor ever of what was made then, which stays until the command ends.

    To look for garbage among all objects of a large cluster takes a third as long as to read them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
