"""The words for a promise of a NodeClaim that cannot be read."""

from kerf.errors import brief
from kerf.model.promises import BrokenPromise


def broken_text(broken: BrokenPromise) -> str:
    """Which annotation it is, what was expected, and what is there."""
    return f"{broken.annotation}: expected {broken.expected}, got {brief(broken.got)}"
