"""Security groups that an EC2NodeClass selects."""

from kerf.clouds.aws.api import EC2, Api
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.nodeclass.model import SecurityGroupSelectorTerm
from kerf.clouds.aws.nodeclass.status import SecurityGroup
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import Filter, either, filter_of, tag_filters, words_of
from kerf.ports import Clock

_KEPT_S = 300

Terms = tuple[SecurityGroupSelectorTerm, ...]


class SecurityGroups:
    """The security groups of a region, as terms select them, asked for every five minutes."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._found: TimedCache[Terms, tuple[SecurityGroup, ...]] = TimedCache(clock, _KEPT_S)

    async def find(self, terms: Terms) -> tuple[SecurityGroup, ...]:
        """Each group that a term selects, once, by id. Raises ApiFailed, Throttled."""
        found = self._found.get(terms)
        if found is None:
            by_id: dict[str, SecurityGroup] = {}
            for filters in _filters(terms):
                for raw in await self._api.pages(EC2, "DescribeSecurityGroups", "SecurityGroups", Filters=filters):
                    with reading("DescribeSecurityGroups"):
                        by_id[raw["GroupId"]] = SecurityGroup(raw["GroupId"], raw.get("GroupName") or "")
            found = tuple(by_id[name] for name in sorted(by_id))
            # What is missing may be made any moment, and nothing can be launched before.
            self._found.put(terms, found, None if found else _KEPT_S / 5)
        return found


def wanted(terms: Terms) -> str:
    """The terms in words."""
    return either([words_of(id=term.id, name=term.name, tag=term.tags) for term in terms])


def _filters(terms: Terms) -> list[list[Filter]]:
    ids = [term.id for term in terms if term.id]
    names = [term.name for term in terms if term.name and not term.id]
    by_tags = [tag_filters(term.tags) for term in terms if not term.id and not term.name]
    by_id = [[filter_of("group-id", ids)]] if ids else []
    by_name = [[filter_of("group-name", names)]] if names else []
    return [*by_id, *by_name, *by_tags]
