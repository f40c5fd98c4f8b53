"""The end of an EC2NodeClass: it waits for the claims that use it, and takes along what was made for it."""

from collections.abc import Iterable
from typing import Protocol

from kerf.clouds.aws.nodeclass.model import EC2NodeClass

_MOST_NAMES = 5


class Made(Protocol):
    """Things that were made for EC2NodeClasses: launch templates, instance profiles."""

    async def delete_all(self, node_class: EC2NodeClass) -> tuple[str, ...]:
        """Delete those of one; their names. Raises ApiFailed, Throttled: try again later."""
        ...


async def finalize(node_class: EC2NodeClass, claims: Iterable[str], made: Iterable[Made]) -> str:
    """What the finalizer waits for, in words; empty when it may be removed.

    Claims come first: an instance that starts without its profile never joins. Raises ApiFailed, Throttled.
    """
    names = sorted(claims)
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"waits for the end of NodeClaims {', '.join(names[:_MOST_NAMES])}{more}"
    for each in made:
        await each.delete_all(node_class)
    return ""
