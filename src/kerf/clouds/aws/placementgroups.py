"""The placement group that an EC2NodeClass selects."""

from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.codes import is_not_found
from kerf.clouds.aws.nodeclass.model import PlacementGroupSelector
from kerf.clouds.aws.nodeclass.status import PARTITION_STRATEGY, PlacementGroup
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import filter_of
from kerf.ports import Clock

_KEPT_S = 60


class PlacementGroups:
    """The placement groups of a region, asked for every minute."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._found: TimedCache[PlacementGroupSelector, tuple[PlacementGroup, ...]] = TimedCache(clock, _KEPT_S)

    async def find(self, selector: PlacementGroupSelector) -> PlacementGroup | None:
        """The group; None where there is none of that name or id that can be used. Raises ApiFailed, Throttled."""
        found = self._found.get(selector)
        if found is None:
            found = await self._listed(selector)
            self._found.put(selector, found)
        return found[0] if found else None

    async def _listed(self, selector: PlacementGroupSelector) -> tuple[PlacementGroup, ...]:
        named = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name]}
        filters = [filter_of("state", ["available"])]
        try:
            reply = await self._api.call(EC2, "DescribePlacementGroups", Filters=filters, **named)
        except ApiFailed as error:
            if not is_not_found(error):
                raise
            return ()
        with reading("DescribePlacementGroups"):
            return tuple(
                PlacementGroup(
                    raw["GroupId"],
                    raw.get("GroupName") or "",
                    raw["Strategy"],
                    (raw.get("PartitionCount") or 0) if raw["Strategy"] == PARTITION_STRATEGY else 0,
                    raw.get("SpreadLevel") or "",
                )
                for raw in reply["PlacementGroups"]
            )
