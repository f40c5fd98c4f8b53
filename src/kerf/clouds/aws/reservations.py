"""Capacity reservations and capacity blocks that an EC2NodeClass selects, and what is left of them.

EC2 counts a launch a while after it was made, so launches since the last listing are taken off. A block takes its
instances back before it ends: 40 minutes before that nothing is launched into it any more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.codes import is_not_found
from kerf.clouds.aws.nodeclass.model import CapacityReservationSelectorTerm
from kerf.clouds.aws.nodeclass.status import (
    ACTIVE,
    CAPACITY_BLOCK,
    DEFAULT_RESERVATION,
    EXPIRING,
    CapacityReservation,
)
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import filter_of, tag_filters
from kerf.ports import Clock

_KEPT_S = 60
_EXPIRING_S = 40 * 60
"""Karpenter v1.14.1 (2026-08); EC2 ends instances 30 minutes before the end of a block (EC2 user guide)."""
_TYPES, _CRITERIA = (DEFAULT_RESERVATION, CAPACITY_BLOCK), ("open", "targeted")

Term = CapacityReservationSelectorTerm


class Reservations:
    """The reservations that an account can use, as terms select them, asked for every minute."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._found: TimedCache[Term, tuple[CapacityReservation, ...]] = TimedCache(clock, _KEPT_S)
        self._remaining: dict[str, int] = {}
        self._launched: dict[str, int] = {}

    async def find(self, terms: tuple[Term, ...]) -> tuple[CapacityReservation, ...]:
        """Each reservation that a term selects and that has not ended, once, by id. Raises ApiFailed, Throttled.

        One of a sort that this version does not know is left out.
        """
        by_id: dict[str, CapacityReservation] = {}
        for term in terms:
            found = self._found.get(term)
            if found is None:
                found = await self._listed(term)
                self._found.put(term, found)
            by_id.update((each.id, each) for each in found)
        return self.counted(by_id[name] for name in sorted(by_id))

    def counted(self, reservations: Iterable[CapacityReservation]) -> tuple[CapacityReservation, ...]:
        """Those that have not ended, with what is left of them now, whenever they were found."""
        now_s = self._clock.now_s()
        return tuple(self._counted(each, now_s) for each in reservations if each.end_s is None or each.end_s > now_s)

    async def _listed(self, term: Term) -> tuple[CapacityReservation, ...]:
        filters = [filter_of("state", ["active"]), *tag_filters(term.tags)]
        filters += [filter_of("owner-id", [term.owner_id])] if term.owner_id else []
        criteria = term.instance_match_criteria
        filters += [filter_of("instance-match-criteria", [criteria])] if criteria else []
        # An id that does not exist is an error here, not an empty listing.
        wanted: dict[str, object] = {"CapacityReservationIds": [term.id]} if term.id else {}
        try:
            listed = await self._api.pages(
                EC2, "DescribeCapacityReservations", "CapacityReservations", Filters=filters, **wanted
            )
        except ApiFailed as error:
            if not is_not_found(error):
                raise
            listed = ()
        with reading("DescribeCapacityReservations"):
            found = tuple(each for each in map(_reservation, listed) if each is not None)
        for each in found:
            self._remaining[each.id] = each.remaining
            self._launched.pop(each.id, None)
        return found

    def _counted(self, reservation: CapacityReservation, now_s: float) -> CapacityReservation:
        end_s = reservation.end_s
        is_expiring = reservation.is_block and end_s is not None and now_s >= end_s - _EXPIRING_S
        listed = self._remaining.get(reservation.id, reservation.remaining)
        left = max(listed - self._launched.get(reservation.id, 0), 0)
        return replace(reservation, state=EXPIRING if is_expiring else ACTIVE, remaining=left)

    def launched(self, reservation_id: str) -> None:
        """An instance was launched into it."""
        self._launched[reservation_id] = self._launched.get(reservation_id, 0) + 1

    def full(self, reservation_id: str) -> None:
        """EC2 refused a launch because it is full: nothing is left until the next listing."""
        self._launched[reservation_id] = 2**31


def _reservation(raw: Mapping[str, Any]) -> CapacityReservation | None:
    kind = raw.get("ReservationType") or DEFAULT_RESERVATION
    criteria = raw.get("InstanceMatchCriteria")
    end = raw.get("EndDate")
    if kind not in _TYPES or criteria not in _CRITERIA:
        return None
    return CapacityReservation(
        id=raw["CapacityReservationId"],
        zone=raw["AvailabilityZone"],
        instance_type=raw["InstanceType"],
        owner_id=raw.get("OwnerId") or "",
        instance_match_criteria=criteria,
        reservation_type=kind,
        is_interruptible=bool(raw.get("Interruptible")),
        end_s=end.timestamp() if end is not None else None,
        remaining=raw.get("AvailableInstanceCount") or 0,
    )
