"""What AWS sells in a region just now, as a catalogue: for plans that are made where no controller runs.

No EC2NodeClass is asked: the types are those of its defaults, in all zones of the region, as in the packaged catalogue.
"""

from kerf.catalog import aws
from kerf.clouds.aws.api import Api
from kerf.clouds.aws.offerings import sold_in
from kerf.clouds.aws.prices import Prices
from kerf.errors import CloudError
from kerf.model.market import Market
from kerf.ports import Clock


async def live_market(api: Api, clock: Clock, region: str) -> Market:
    """The market. What AWS does not say comes from the package and is named in a note.

    Raises CloudError where AWS says nothing, and where nothing is for sale by what it says.
    """
    prices = Prices(api, clock, region, lambda what, why, instead: None)
    await prices.refresh()
    if prices.is_unanswered:
        raise CloudError(f"AWS {region} says nothing: {prices.current.notes[0]}")
    found = prices.current
    offered = ((row, sold_in(name, found.zones.get(name, ()), found)) for name, row in sorted(found.rows.items()))
    types = tuple(aws.offered_type(row, each, region, aws.notes_on(row)) for row, each in offered if each)
    if not types:
        raise CloudError(f"AWS {region} sells nothing: {', '.join(found.notes) or 'no type has a zone and a price'}")
    return Market(types, "CNY" if region.startswith("cn-") else "USD", "aws", region, notes=found.notes)
