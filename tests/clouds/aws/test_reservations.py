"""Capacity reservations and blocks: which are found, what is left of them, and when a block closes."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from kerf.clouds.aws.nodeclass.model import CapacityReservationSelectorTerm
from kerf.clouds.aws.nodeclass.status import ACTIVE, EXPIRING
from kerf.clouds.aws.reservations import Reservations
from tests.clouds.aws.account import Account, ManualClock, Object, tags

ALL = (CapacityReservationSelectorTerm(tags=(("team", "*"),)),)


def a_reservation(number: int, clock: ManualClock, ends_in_s: float | None = None, **changed: Any) -> Object:
    """A reservation as EC2 lists it."""
    end = {} if ends_in_s is None else {"EndDate": datetime.fromtimestamp(clock.seconds + ends_in_s, UTC)}
    return {
        "CapacityReservationId": f"cr-{number}",
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "p5.48xlarge",
        "OwnerId": "1" * 12,
        "InstanceMatchCriteria": "targeted",
        "State": "active",
        "AvailableInstanceCount": 2,
        "Tags": tags(team="ml"),
        **end,
        **changed,
    }


def an_account(*changes: Object) -> tuple[Account, ManualClock, Reservations]:
    """Reservations 1, 2, ... that differ by these changes."""
    account, clock = Account(), ManualClock()
    account.reservations = [a_reservation(number, clock, **each) for number, each in enumerate(changes, start=1)]
    return account, clock, Reservations(account, clock)


@pytest.mark.parametrize(
    ("term", "ids"),
    [
        (CapacityReservationSelectorTerm(id="cr-2"), ["cr-2"]),
        (CapacityReservationSelectorTerm(id="cr-9"), []),
        (CapacityReservationSelectorTerm(instance_match_criteria="open"), ["cr-2"]),
        (CapacityReservationSelectorTerm(owner_id="2" * 12, tags=(("team", "ml"),)), ["cr-3"]),
        (ALL[0], ["cr-1", "cr-2", "cr-3"]),
    ],
)
def test_reservations_are_found_by_id_or_by_all_that_is_given(
    term: CapacityReservationSelectorTerm, ids: list[str]
) -> None:
    """One that EC2 does not know is none; what is not active, or of an unknown sort, is left out."""
    _, _, reservations = an_account(
        {}, {"InstanceMatchCriteria": "open"}, {"OwnerId": "2" * 12}, {"State": "expired"}, {"ReservationType": "new"}
    )

    assert ids == [each.id for each in asyncio.run(reservations.find((term,)))]


def test_terms_are_a_union() -> None:
    """Each reservation once, by id."""
    _, _, reservations = an_account({}, {})

    got = asyncio.run(reservations.find((CapacityReservationSelectorTerm(id="cr-2"), *ALL)))
    assert ["cr-1", "cr-2"] == [each.id for each in got]


@pytest.mark.parametrize(
    ("minutes", "kind", "states"),
    [
        (41, "capacity-block", [ACTIVE]),
        (40, "capacity-block", [EXPIRING]),
        (39, "capacity-block", [EXPIRING]),
        (39, "default", [ACTIVE]),
        (0, "default", []),
    ],
)
def test_a_block_closes_forty_minutes_before_its_end(minutes: int, kind: str, states: list[str]) -> None:
    """Its instances are taken back before; a usual reservation is open until it has ended."""
    _, _, reservations = an_account({"ends_in_s": minutes * 60, "ReservationType": kind})

    assert states == [each.state for each in asyncio.run(reservations.find(ALL))]


def test_a_block_closes_while_its_listing_counts() -> None:
    """The clock decides, not the listing."""
    account, clock, reservations = an_account({"ends_in_s": 40 * 60 + 30, "ReservationType": "capacity-block"})

    states = []
    for step_s in (0, 29, 1):
        clock.seconds += step_s
        states += [each.state for each in asyncio.run(reservations.find(ALL))]

    assert [ACTIVE, ACTIVE, EXPIRING] == states
    assert 1 == len(account.calls)


def test_launches_count_until_the_next_listing() -> None:
    """EC2 counts them itself by then; a refusal leaves nothing."""
    _, clock, reservations = an_account({})

    def left() -> int:
        return asyncio.run(reservations.find(ALL))[0].remaining

    assert 2 == left()
    reservations.launched("cr-1")
    assert 1 == left()
    reservations.full("cr-1")
    assert 0 == left()
    clock.seconds += 60
    assert 2 == left()
