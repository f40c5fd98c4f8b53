"""What nodes cost, where anything says it: a price of 0.00 is one, and none is `unknown`."""

from collections.abc import Iterable

from kerf.cli.inputs.input import ReadInput
from kerf.cli.render import counted, some
from kerf.engine.supply.pricing import is_priced, present_price
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.instancetypes import price_number, price_text
from kerf.model.snapshot import ClusterNode

_MOST_TYPES = 3


def price_of(node: ClusterNode, read: ReadInput) -> float | None:
    """What the node costs an hour; None where nothing says it."""
    supply = read.world.supply
    return price_number(present_price(node, supply)) if is_priced(node, supply) else None


def price_cell(node: ClusterNode, read: ReadInput) -> str:
    """The same as text: `unknown` for None."""
    supply = read.world.supply
    return price_text(present_price(node, supply)) if is_priced(node, supply) else "unknown"


def unpriced_text(nodes: Iterable[ClusterNode], read: ReadInput) -> str:
    """How many of the nodes have no known price, and their types; empty for none."""
    unknown = [node for node in nodes if not is_priced(node, read.world.supply)]
    if not unknown:
        return ""
    types = sorted({node.labels.get(INSTANCE_TYPE) or "no type" for node in unknown})
    return f"the price of {counted(len(unknown), 'node')} is not known ({some(types, _MOST_TYPES)})"
