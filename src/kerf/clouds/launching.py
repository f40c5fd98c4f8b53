"""What every acted-out cloud decides as a real one does: which offering a claim gets, and what its instance looks like.

A stock-out is what makes it hard. It is not announced: a launch finds out, falls through to the next offering, and has
to say afterwards which ones it could not have, so the next plan leaves them alone.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kerf.cloudprovider import (
    INSUFFICIENT_CAPACITY,
    Instance,
    InsufficientCapacity,
    Interruption,
    InterruptionKind,
    LaunchFailed,
)
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION, ZONE
from kerf.model.instancetypes import CAPACITY_TYPE_ORDER, SPOT, InstanceType, Offering, OfferingKey, allowed_offerings
from kerf.model.nodeclaim import NodeClaim
from kerf.model.promises import offering_of
from kerf.ports import Clock

INTERRUPTION_NOTICE_S = 120
"""Between the notice that an instance is taken back and its end, as AWS gives it for spot."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some offerings; None matches every value."""

    instance_type: str | None = None
    zone: str | None = None
    capacity_type: str | None = None

    def covers(self, key: OfferingKey) -> bool:
        """Whether the offering is one of them."""
        wanted = (self.instance_type, self.zone, self.capacity_type)
        actual = (key.instance_type, key.zone, key.capacity_type)
        return all(w is None or w == a for w, a in zip(wanted, actual, strict=True))


def interruption_of(offering: OfferingKey, deadline_s: float) -> Interruption:
    """What the cloud announces of an instance that it ends then: spot is taken back, for others a change is due."""
    kind = InterruptionKind.SPOT if offering.capacity_type == SPOT else InterruptionKind.SCHEDULED
    return Interruption(kind, deadline_s)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a launch gets; `sold_out` are the offerings it tried before, in that order."""

    kind: InstanceType
    offering: Offering
    sold_out: tuple[OfferingKey, ...] = ()

    @property
    def key(self) -> OfferingKey:
        """The offering with its type."""
        return self.offering.key_of(self.kind.name)


def choose(types: Iterable[InstanceType], claim: NodeClaim, is_in_stock: Callable[[OfferingKey], bool]) -> Choice:
    """The first offering in stock that the claim allows: by capacity type, then price, then names of type and zone.

    The one it was planned as goes before all: a plan knows prices that NodeOverlays correct, the list does not.
    Raises InsufficientCapacity when all are sold out, LaunchFailed when there is none.
    """
    choices = _choices(types, claim)
    if not choices:
        raise LaunchFailed(f"nothing is sold here that {claim.name} allows")
    passed: list[OfferingKey] = []
    for choice in choices:
        if choice.offering.is_available and is_in_stock(choice.key):
            return Choice(choice.kind, choice.offering, tuple(passed))
        passed.append(choice.key)
    raise InsufficientCapacity(dict.fromkeys(passed, INSUFFICIENT_CAPACITY))


def instance_of(claim: NodeClaim, choice: Choice, provider_id: str, launched_s: float) -> Instance:
    """The instance that a choice is launched as: labels of the type, and where and how it was bought."""
    key, kind = choice.key, choice.kind.sold_as(choice.key)
    reserved = {RESERVATION: key.reservation} if key.reservation else {}
    return Instance(
        provider_id=provider_id,
        claim_uid=claim.uid,
        claim_name=claim.name,
        offering=key,
        labels={**kind.requirements.labels(), ZONE: key.zone, CAPACITY_TYPE: key.capacity_type, **reserved},
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        launched_s=launched_s,
        sold_out=dict.fromkeys(choice.sold_out, INSUFFICIENT_CAPACITY),
    )


async def reached(clock: Clock, when_s: float) -> None:
    """Return at that time; at once when it has passed."""
    if when_s <= clock.now_s():
        return
    arrived = asyncio.Event()
    clock.call_at(when_s, arrived.set)
    await arrived.wait()


def _choices(types: Iterable[InstanceType], claim: NodeClaim) -> list[Choice]:
    names = claim.requirements.get(INSTANCE_TYPE)
    allowed = [
        Choice(kind, offering)
        for kind in types
        if (names is None or names.has(kind.name)) and claim.requirements.conflict(kind.requirements) is None
        for offering in allowed_offerings(kind.offerings, claim.requirements)
    ]
    planned = offering_of(claim.annotations)
    return sorted(allowed, key=lambda choice: (choice.key != planned, *_order(choice)))


def _order(choice: Choice) -> tuple[int, int, str, str]:
    rank = CAPACITY_TYPE_ORDER.get(choice.offering.capacity_type, len(CAPACITY_TYPE_ORDER))
    return rank, choice.offering.price_micro, choice.kind.name, choice.offering.zone
