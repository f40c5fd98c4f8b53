"""Models of GPU that nodes have, and pairs of them where pods come to others than they run on.

What an owner wants to know of a move: Kerf takes what a pod asks for as all that it needs, and an A10G is no T4.
"""

from collections.abc import Iterable

from kerf.engine.supply.offered import Supply
from kerf.engine.supply.pricing import present_type
from kerf.model.causes import Name
from kerf.model.snapshot import ClusterNode

Exchanges = tuple[tuple[Name, Name], ...]
"""Models before and after, each pair once, in their order."""


def models_of(node: ClusterNode | None, supply: Supply) -> tuple[Name, ...]:
    """The models of a node by its type, or as its cards register where that is not known; none where nothing says."""
    if node is None:
        return ()
    kind = present_type(node, supply)
    named = [shape.model.name for shape in kind.devices] if kind is not None else []
    held = named or [device.model for device in node.devices]
    return tuple(dict.fromkeys(Name(model) for model in held if model))


def exchanges(old: Iterable[Name], new: Iterable[Name]) -> Exchanges:
    """The pairs of both; none where a card of the same model is on both sides."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    return () if before.keys() & after.keys() else tuple((one, other) for one in before for other in after)
