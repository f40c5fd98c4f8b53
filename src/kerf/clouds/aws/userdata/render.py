"""The user data of a family, within what EC2 takes."""

from collections.abc import Callable

from kerf.clouds.aws.nodeclass.model import AL2, AL2023, BOTTLEROCKET, CUSTOM, WINDOWS
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata import al2, al2023, bottlerocket, windows
from kerf.clouds.aws.userdata.facts import TOO_LARGE, NodeFacts

MOST_BYTES = 16 * 1024
"""EC2 takes 16 KB of user data before it is encoded (EC2 user guide, "Run commands at launch", 2026-11)."""

_FORMS: dict[str, Callable[[NodeFacts], str]] = {
    AL2: al2.render,
    AL2023: al2023.render,
    BOTTLEROCKET: bottlerocket.render,
    CUSTOM: lambda facts: facts.custom,
    **dict.fromkeys(WINDOWS, windows.render),
}


def render(family: str, facts: NodeFacts) -> str:
    """The user data as text; the same facts give the same bytes.

    Raises Unusable where it is over the limit, or where the user's part of it cannot be read.
    """
    own = len(facts.custom.encode())
    if own > MOST_BYTES:
        raise _too_large(own, own)
    text = _FORMS[family](facts)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise _too_large(size, own)
    return text


def _too_large(size: int, own: int) -> Unusable:
    over = size - MOST_BYTES
    said = f"user data of {size:,} bytes, of which spec.userData has {own:,}; EC2 takes {MOST_BYTES:,}"
    return Unusable(TOO_LARGE, f"{said}: shorten it by {over:,}", over)
