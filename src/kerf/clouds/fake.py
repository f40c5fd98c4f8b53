"""A cloud in memory that misbehaves on demand: the cloud of `kerf simulate` and of tests.

A cloud is hard to use because a launch has three outcomes, not two: it can succeed, fail, and succeed while the
caller never hears of it. So an instance exists from the moment it is asked for, long before `create` returns, and
only the claim's uid distinguishes a repeated call from a new one. Everything here is decided by the clock and the calls
made, so two equal runs give equal bytes.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kerf.cloudprovider import (
    CloudProvider,
    Instance,
    InstanceNotFound,
    InsufficientCapacity,
    LaunchFailed,
    RepairPolicy,
    Throttled,
)
from kerf.clouds.launching import (
    INTERRUPTION_NOTICE_S,
    Selection,
    choose,
    instance_of,
    interruption_of,
    reached,
)
from kerf.errors import CloudError
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.ports import Clock

LAUNCHED, RUNNING, INTERRUPTED, TERMINATING, ENDED = "launched", "running", "interrupted", "terminating", "ended"
REFUSED, THROTTLED, REPLY_LOST, PRICED = "refused", "throttled", "reply-lost", "priced"


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long the cloud takes, in seconds; `jitter_s` is the most that chance adds to a launch."""

    launch_s: float = 40
    terminate_s: float = 5
    jitter_s: float = 0


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """Something happened in the cloud; `what` is one of the words above.

    `instance` is None where there is none: a launch that was refused, a throttled call, a new price. `sold_out` are
    the offerings that a launch could not have, whether it was refused or fell through to a more expensive one.
    """

    at_s: float
    what: str
    instance: Instance | None = None
    claim_name: str = ""
    sold_out: tuple[OfferingKey, ...] = ()
    detail: str = ""


@dataclass(slots=True)
class Bill:
    """What one instance costs: paid from `from_s` until `until_s` (None: still), at (since, micro per hour) prices.

    `gpus` are physical cards, a part of one for types that are sold with a part.
    """

    instance: Instance
    gpus: float
    from_s: float
    prices: list[tuple[float, int]]
    until_s: float | None = None

    @property
    def price_micro(self) -> int:
        """The price per hour at present; 0 once it has ended."""
        return 0 if self.until_s is not None else self.prices[-1][1]

    def hours(self, now_s: float) -> float:
        """How long it has been paid for by `now_s`."""
        return ((now_s if self.until_s is None else min(now_s, self.until_s)) - self.from_s) / 3600

    def amount_micro(self, now_s: float) -> int:
        """What has been paid for it by `now_s`."""
        end_s = now_s if self.until_s is None else min(now_s, self.until_s)
        ends = [*(start for start, _ in self.prices[1:]), end_s]
        return sum(
            round(max(0.0, min(end, end_s) - start) * price / 3600)
            for (start, price), end in zip(self.prices, ends, strict=True)
        )


@dataclass(slots=True)
class _Machine:
    """An instance, and what its owner does not know of it yet."""

    instance: Instance
    bill: Bill
    running_s: float
    is_terminating: bool = False
    has_ended: bool = False


class FakeCloud(CloudProvider):
    """A cloud whose stock, prices, replies and moods its owner sets.

    A stock-out is not announced: `instance_types` goes on offering what is sold out, as real clouds do, and only
    `create` finds out. An instance is paid for from the call that made it until it has ended.
    """

    name = "fake"

    def __init__(
        self,
        types: Sequence[InstanceType],
        clock: Clock,
        *,
        currency: str = "USD",
        latencies: Latencies | None = None,
        seed: int = 0,
    ) -> None:
        self._currency = currency
        self.bills: list[Bill] = []
        self._types = {instance_type.name: instance_type for instance_type in sorted(types, key=lambda t: t.name)}
        self._market = tuple(self._types.values())
        self._clock = clock
        self._latencies = latencies or Latencies()
        self._random = random.Random(seed)
        self._machines: dict[str, _Machine] = {}
        self._by_claim: dict[str, _Machine] = {}
        self._stock_outs: list[tuple[Selection, float]] = []
        self._left: int | None = None
        self._throttled_until_s = float("-inf")
        self._retry_after_s = 5.0
        self._replies_to_lose = 0
        self._listeners: list[Callable[[CloudEvent], None]] = []

    # What Kerf calls.

    @property
    def currency(self) -> str:
        """That of the types it was given."""
        return self._currency

    @property
    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Those of KWOK in Karpenter, and its AWS provider's for cards."""
        ready = (RepairPolicy("Ready", status, 600) for status in ("False", "Unknown"))
        return (*ready, RepairPolicy("AcceleratedHardwareReady", "False", 600, drain_s=300))

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """Every type at its present price, by name; the same values until a price changes."""
        del pool  # Every pool may buy on the whole market; its requirements are the engine's business.
        self._refuse_when_throttled("instance_types")
        return self._market

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch the cheapest offering in stock that the claim allows; takes the launch latency.

        The instance exists at once, so a call that is cut off leaves it behind, and the next one with the same uid
        gets it. Raises InsufficientCapacity, LaunchFailed, Throttled, and CloudError for a reply that is lost.
        """
        self._refuse_when_throttled("create", claim.name)
        machine = self._by_claim.get(claim.uid)
        if machine is None:
            machine = self._launch(claim)
        await reached(self._clock, machine.running_s)
        if machine.has_ended or machine.is_terminating:
            raise LaunchFailed(f"instance {machine.instance.provider_id} of this claim has ended")
        if self._replies_to_lose > 0:
            self._replies_to_lose -= 1
            self._tell(REPLY_LOST, machine.instance, detail="the instance runs, the reply did not arrive")
            raise CloudError(f"launching for {claim.name}: the connection was lost before the reply")
        return machine.instance

    async def delete(self, provider_id: str) -> None:
        """Begin to terminate; a repeated call is accepted. Raises InstanceNotFound once the instance is gone."""
        self._refuse_when_throttled("delete")
        machine = self._machines.get(provider_id)
        if machine is None:
            raise InstanceNotFound(f"no instance {provider_id}")
        self._terminate(machine, self._latencies.terminate_s, "")

    async def list_instances(self) -> Sequence[Instance]:
        """Every instance that has not ended, by provider id; those that terminate are still there."""
        self._refuse_when_throttled("list_instances")
        return tuple(machine.instance for _, machine in sorted(self._machines.items()))

    # What its owner sets.

    def subscribe(self, listener: Callable[[CloudEvent], None]) -> None:
        """Tell `listener` of every event, at once."""
        self._listeners.append(listener)

    def sell_out(
        self,
        instance_type: str | None = None,
        zone: str | None = None,
        capacity_type: str | None = None,
        *,
        until_s: float = float("inf"),
    ) -> None:
        """Refuse these offerings until a time; None stands for every type, zone or capacity type."""
        self._stock_outs.append((Selection(instance_type, zone, capacity_type), until_s))

    def leave(self, count: int) -> None:
        """Be sold out of everything after so many launches."""
        self._left = count

    def set_price(
        self, price_micro: int, instance_type: str, zone: str | None = None, capacity_type: str | None = None
    ) -> None:
        """Set the price per hour of offerings, also for the instances that run on them."""
        selection = Selection(instance_type, zone, capacity_type)
        old = self._types[instance_type]
        offerings = tuple(
            replace(offering, price_micro=price_micro, is_estimate=False, is_final=True)
            if selection.covers(OfferingKey(instance_type, offering.zone, offering.capacity_type))
            else offering
            for offering in old.offerings
        )
        self._types[instance_type] = replace(old, offerings=offerings)
        self._market = tuple(self._types.values())
        for machine in self._machines.values():
            if selection.covers(machine.instance.offering):
                machine.bill.prices.append((self._clock.now_s(), price_micro))
        self._tell(PRICED, None, detail=instance_type)

    def throttle(self, until_s: float, retry_after_s: float = 5) -> None:
        """Refuse every call until a time."""
        self._throttled_until_s, self._retry_after_s = until_s, retry_after_s

    def lose_replies(self, count: int) -> None:
        """Let the next `count` launches succeed without telling the caller."""
        self._replies_to_lose += count

    def interrupt(self, provider_id: str, notice_s: float = INTERRUPTION_NOTICE_S) -> None:
        """Announce that an instance is taken back, and take it back after `notice_s`. Raises InstanceNotFound."""
        machine = self._machines.get(provider_id)
        if machine is None:
            raise InstanceNotFound(f"no instance {provider_id}")
        end_s = self._clock.now_s() + notice_s
        machine.instance = replace(machine.instance, interruption=interruption_of(machine.instance.offering, end_s))
        self._tell(INTERRUPTED, machine.instance, detail=f"ends in {notice_s:g} s")
        self._clock.call_at(end_s, lambda: self._terminate(machine, 0, "taken back by the cloud"))

    def find(self, instance_type: str) -> InstanceType:
        """The type of that name at its present price. Raises KeyError."""
        return self._types[instance_type]

    @property
    def instances(self) -> tuple[Instance, ...]:
        """As `list_instances`, for a test that watches; never throttled."""
        return tuple(machine.instance for _, machine in sorted(self._machines.items()))

    @property
    def price_per_hour_micro(self) -> int:
        """What all instances that exist cost an hour at present."""
        return sum(machine.bill.price_micro for machine in self._machines.values())

    def is_terminating(self, provider_id: str) -> bool:
        """Whether the instance is on its way out, or gone."""
        machine = self._machines.get(provider_id)
        return machine is None or machine.is_terminating

    def is_taken_back(self, provider_id: str) -> bool:
        """Whether the cloud itself has announced that it ends the instance, or it has ended."""
        machine = self._machines.get(provider_id)
        return machine is None or machine.instance.is_interrupted

    # How it works.

    def _refuse_when_throttled(self, call: str, claim_name: str = "") -> None:
        if self._clock.now_s() < self._throttled_until_s:
            self._tell(THROTTLED, None, claim_name=claim_name, detail=call)
            raise Throttled(self._retry_after_s)

    def _in_stock(self, key: OfferingKey) -> bool:
        now_s = self._clock.now_s()
        if self._left == 0 or (key.reservation and not self._has_left(key.reservation)):
            return False
        return not any(now_s < until_s and selection.covers(key) for selection, until_s in self._stock_outs)

    def _has_left(self, reservation: str) -> bool:
        """Whether the reservation has an instance left; the least of what its offerings say is how many it has."""
        offerings = (o for kind in self._market for o in kind.offerings if o.reservation == reservation)
        most = min((o.most for o in offerings if o.most is not None), default=None)
        taken = sum(machine.instance.offering.reservation == reservation for machine in self._machines.values())
        return most is None or taken < most

    def _launch(self, claim: NodeClaim) -> _Machine:
        try:
            choice = choose(self._market, claim, self._in_stock)
        except InsufficientCapacity as refusal:
            self._tell(REFUSED, None, claim_name=claim.name, sold_out=refusal.offerings, detail=str(refusal))
            raise
        self._left = None if self._left is None else self._left - 1
        now_s = self._clock.now_s()
        instance = instance_of(claim, choice, f"fake:///{choice.key.zone}/i-{len(self.bills) + 1:06d}", now_s)
        bill = Bill(instance, choice.kind.gpu_eighths / 8, now_s, [(now_s, choice.offering.price_micro)])
        machine = _Machine(instance, bill, now_s + self._launch_s())
        self.bills.append(bill)
        self._machines[instance.provider_id] = self._by_claim[claim.uid] = machine
        self._tell(LAUNCHED, instance, sold_out=choice.sold_out)
        self._clock.call_at(machine.running_s, lambda: self._run(machine))
        return machine

    def _launch_s(self) -> float:
        jitter = self._latencies.jitter_s
        return self._latencies.launch_s + (self._random.uniform(0, jitter) if jitter else 0)

    def _run(self, machine: _Machine) -> None:
        if not machine.is_terminating:
            self._tell(RUNNING, machine.instance)

    def _terminate(self, machine: _Machine, after_s: float, why: str) -> None:
        if machine.is_terminating:
            return
        machine.is_terminating = True
        self._tell(TERMINATING, machine.instance, detail=why)
        self._clock.call_at(self._clock.now_s() + after_s, lambda: self._end(machine, why))

    def _end(self, machine: _Machine, why: str) -> None:
        machine.has_ended = True
        machine.bill.until_s = self._clock.now_s()
        del self._machines[machine.instance.provider_id]
        self._tell(ENDED, machine.instance, detail=why)

    def _tell(
        self,
        what: str,
        instance: Instance | None,
        *,
        claim_name: str = "",
        sold_out: tuple[OfferingKey, ...] = (),
        detail: str = "",
    ) -> None:
        name = claim_name or (instance.claim_name if instance is not None else "")
        event = CloudEvent(self._clock.now_s(), what, instance, name, sold_out, detail)
        for listener in self._listeners:
            listener(event)
