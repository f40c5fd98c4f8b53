"""One instance for a claim, and never two: CreateFleet with the claim's uid as its token.

A launch has three outcomes: it succeeds, it fails, and it succeeds without a reply. EC2 answers a repeated token with
the first reply, but only to the same request, and prices, subnets and templates change between two tries. So a request
is kept until it is answered. After a restart it is lost, and EC2 answers IdempotentParameterMismatch: then some request
with this token was accepted, and its instance is looked for by its tag until EC2 must show it. So is that of a reply
which says neither what was launched nor why nothing was. A token that EC2 answered by a fleet without an instance is
spent; the next try takes the uid and its number. The number is kept nowhere: a new life begins with the uid and counts
up by what EC2 remembers. So a call that was refused spends no token, because EC2 may never have seen it: the new life
would launch by the token that the old one passed over.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.cloudprovider import Instance, InstanceState, InsufficientCapacity, LaunchFailed, Throttled, Withdrawn
from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.codes import NO_TEMPLATE
from kerf.clouds.aws.fleet import (
    MOST_CONFIGS,
    MOST_OVERRIDES,
    NO_SPOT_ROLE,
    FleetOutcome,
    FleetRequest,
    Launched,
    fleet_of,
    outcome_of,
)
from kerf.clouds.aws.instances import Instances, provider_id
from kerf.clouds.aws.minvalues import short_of
from kerf.clouds.aws.nodeclass.hashing import digest
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import Resolved
from kerf.clouds.aws.overrides import MOST_TYPES, PRICE_FACTOR, Overrides, overrides_of
from kerf.clouds.aws.refusals import launch_failed
from kerf.clouds.aws.reservations import Reservations
from kerf.clouds.aws.subnets import Subnets
from kerf.clouds.aws.tagging import instance_tags
from kerf.clouds.aws.templates import ClaimFacts, MachineFacts, Templates
from kerf.clouds.aws.types import EFA
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.errors import CloudError
from kerf.model.constraints import CAPACITY_TYPE, NODE_POOL, RESERVATION, ZONE, ZONE_ID
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.nodeclaim import NodeClaim
from kerf.model.promises import offering_of
from kerf.model.quantities import PODS

UNAVAILABLE_S = 180.0
"""An offering that was sold out is not asked for again so soon, unless a plan wants it."""
_TRIES = 5
_LAG_WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Between looks for an instance that must exist: fifteen seconds, where EC2's lists were seen to lag ten."""
_OLD_S = 15.0
_FORGOTTEN_S = 7200.0
_MISMATCH = "IdempotentParameterMismatch"


@dataclass(frozen=True)
class Order:
    """A claim with what it is launched by: its NodeClass, what that selects, and what is sold by it."""

    claim: NodeClaim
    node_class: EC2NodeClass
    resolved: Resolved
    types: Sequence[InstanceType]


@dataclass
class _Attempt:
    """How far a claim's launch has come; `fleet` is the request that was not answered yet."""

    at_s: float
    number: int = 1
    fleet: FleetRequest | None = None
    instance: str = ""
    was_tried: bool = False

    def token(self, uid: str) -> str:
        """At most 64 letters [EC2]."""
        return uid if self.number == 1 else f"{uid}-{self.number}"

    def spend(self) -> None:
        """EC2 has a fleet with this token, or had: only then it leads a new life to the next number."""
        self.number, self.fleet = self.number + 1, None


@dataclass
class Launcher:
    """Launches; all state in it may be lost."""

    api: Api
    instances: Instances
    subnets: Subnets
    reservations: Reservations
    templates: Templates
    cluster: ClusterFacts
    now_s: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    price_factor: float = PRICE_FACTOR
    is_wanted: Callable[[NodeClaim], bool] = lambda claim: True
    """Asked just before a launch is."""
    _attempts: dict[str, _Attempt] = field(default_factory=dict)
    _unavailable: dict[OfferingKey, float] = field(default_factory=dict)

    def mark(self, offerings: Mapping[OfferingKey, str]) -> None:
        """Leave offerings alone for three minutes: they are sold out, or the cloud takes them back."""
        until_s = self.now_s() + UNAVAILABLE_S
        self._unavailable.update(dict.fromkeys(offerings, until_s))

    async def launch(self, order: Order) -> Instance:
        """The instance of the claim. Raises InsufficientCapacity, LaunchFailed, Withdrawn, Throttled, CloudError."""
        claim = order.claim
        attempt = self._attempt(claim)
        found = await self._existing(claim, attempt)
        if found is not None:
            return completed(found, order)
        sold_out: dict[OfferingKey, str] = {}
        for _ in range(_TRIES):
            fleet = attempt.fleet = attempt.fleet or await self._prepared(order, sold_out)
            attempt.was_tried = True
            outcome = await self._asked(claim, attempt, fleet)
            if isinstance(outcome, Instance):
                return completed(outcome, order)
            sold_out.update(outcome.sold_out)
            self.mark(outcome.sold_out)
            for key in outcome.sold_out:
                if key.reservation:
                    self.reservations.full(key.reservation)
            if outcome.launched is not None:
                return self._noted(order, attempt, outcome.launched, sold_out)
            attempt.spend()
            self._judge(outcome, fleet, sold_out)
        raise LaunchFailed(f"EC2 launched nothing for {claim.name} in {_TRIES} tries")

    def _attempt(self, claim: NodeClaim) -> _Attempt:
        now_s = self.now_s()
        if claim.uid not in self._attempts:
            old = [uid for uid, held in self._attempts.items() if held.at_s < now_s - _FORGOTTEN_S]
            for uid in old:
                del self._attempts[uid]
            self._attempts[claim.uid] = _Attempt(now_s)
        return self._attempts[claim.uid]

    async def _existing(self, claim: NodeClaim, attempt: _Attempt) -> Instance | None:
        """The instance of an earlier try, by this process or the one before it. Raises LaunchFailed where it ended."""
        if not attempt.was_tried and self.now_s() - claim.created_s < _OLD_S:
            return None
        found = await self.instances.find(claim)
        if found is None and attempt.instance:
            raise LaunchFailed(f"the instance {attempt.instance} of {claim.name} has ended")
        if found is not None and found.state is InstanceState.TERMINATING:
            raise LaunchFailed(f"the instance {found.provider_id} of {claim.name} has ended")
        return found

    async def _prepared(self, order: Order, sold_out: Mapping[OfferingKey, str]) -> FleetRequest:
        """A request that EC2 has not seen. Raises InsufficientCapacity where nothing is left to ask for."""
        claim, now_s = order.claim, self.now_s()
        wanted = overrides_of(claim, order.types, self.price_factor)
        if not wanted.chosen:
            raise LaunchFailed(f"nothing is sold here that {claim.name} allows", "NothingSold")
        planned = offering_of(claim.annotations)
        resting = {key for key, until_s in self._unavailable.items() if until_s > now_s and key != planned}
        blocks = {each.id for each in order.resolved.reservations if each.is_block}
        left = replace(wanted.without({*resting, *sold_out}), is_block=wanted.reservation in blocks)
        if not left.chosen:
            resting_too = dict.fromkeys((each.key for each in wanted.chosen), "sold out a moment ago")
            raise InsufficientCapacity({**resting_too, **sold_out})
        facts, machines = _claim_facts(claim, left), _machines(order, left)
        templates = await self.templates.ensure(order.node_class, order.resolved, facts, machines)
        tags = instance_tags(
            claim, order.node_class, self.cluster.name, digest(order.node_class, self.cluster.ca_bundle)
        )
        # Nothing is awaited from here until the call: another launch would be given the same addresses.
        subnets = {zone: subnet.id for zone, subnet in self.subnets.by_zone(order.resolved.subnets).items()}
        if not any(each.offering.zone in subnets for each in left.chosen):
            full = dict.fromkeys((each.key for each in left.chosen), "no subnet has a free address")
            raise InsufficientCapacity({**full, **sold_out})
        fleet = fleet_of(left, subnets, templates, tags, order.node_class.spec.context, claim.requirements)
        if not fleet.offerings:
            raise LaunchFailed(f"no image of NodeClass {order.node_class.name} runs on what {claim.name} allows")
        resting_too = dict.fromkeys(resting, "sold out a moment ago")
        _check_choice(claim, wanted, fleet, {**resting_too, **sold_out}, subnets)
        return fleet

    async def _asked(self, claim: NodeClaim, attempt: _Attempt, fleet: FleetRequest) -> FleetOutcome | Instance:
        """What EC2 answers, or the instance of an earlier request with this token."""
        chosen: str | None = None

        def check() -> None:
            if not self.is_wanted(claim):
                raise Withdrawn(f"{claim.name} is being deleted: nothing was launched for it")

        # A burst would otherwise go to one subnet: EC2 counts an address seconds after it was asked for.
        for subnet in fleet.subnets:
            self.subnets.launched(subnet, 1)
        try:
            token = attempt.token(claim.uid)
            reply = await self.api.call_unless(check, EC2, "CreateFleet", **fleet.parameters, ClientToken=token)
            outcome = outcome_of(reply, fleet)
            chosen = outcome.launched.subnet if outcome.launched is not None else None
        except ApiFailed as error:
            if error.code in NO_TEMPLATE:
                self._forget(fleet)
            if error.code != _MISMATCH:
                attempt.fleet = None
                raise launch_failed(error.code, error.message) from error
            outcome = FleetOutcome()
        finally:
            for subnet in fleet.subnets:
                if subnet != chosen:
                    self.subnets.launched(subnet, -1)
        found = await self._looked_for(claim) if outcome.is_silent else None
        if found is None and outcome.unplaced:
            said = f"{outcome.unplaced} was launched for {claim.name}, and EC2 does not show it yet"
            raise CloudError(f"CreateFleet: {said}")
        return found or outcome

    async def _looked_for(self, claim: NodeClaim) -> Instance | None:
        """Something was accepted with this token: look until EC2 must show what came of it."""
        found = await self.instances.find(claim)
        for wait_s in _LAG_WAITS_S:
            if found is not None:
                break
            await self.sleep(wait_s)
            found = await self.instances.find(claim)
        return found

    def _judge(self, outcome: FleetOutcome, fleet: FleetRequest, sold_out: Mapping[OfferingKey, str]) -> None:
        """Return where another try may get something. Raises what the caller must know otherwise."""
        for subnet in sorted(outcome.full_subnets):
            self.subnets.exhausted(subnet)
        if outcome.is_throttled:
            raise Throttled
        if outcome.failures:
            code, message = outcome.failures[0]
            if code == NO_SPOT_ROLE:
                self.mark(dict.fromkeys(fleet.offerings.values(), code))
            if any(code in NO_TEMPLATE for code, _ in outcome.failures):
                self._forget(fleet)
            elif not sold_out:
                raise launch_failed(code, message)
        if outcome.sold_out and not outcome.full_subnets:
            raise InsufficientCapacity(sold_out)

    def _forget(self, fleet: FleetRequest) -> None:
        """One of its templates is gone: all are looked at again."""
        for name in fleet.templates:
            self.templates.forget(name)

    def _noted(
        self, order: Order, attempt: _Attempt, launched: Launched, sold_out: Mapping[OfferingKey, str]
    ) -> Instance:
        claim, key = order.claim, launched.key
        subnet = next((each for each in order.resolved.subnets if each.id == launched.subnet), None)
        instance = Instance(
            provider_id=provider_id(key.zone, launched.id),
            claim_uid=claim.uid,
            claim_name=claim.name,
            offering=key,
            launched_s=self.now_s(),
            state=InstanceState.PENDING,
            sold_out=sold_out,
            image=launched.image,
            subnet=launched.subnet,
            zone_id=subnet.zone_id if subnet is not None else "",
        )
        self.instances.note(completed(instance, order))
        if key.reservation:
            self.reservations.launched(key.reservation)
        attempt.instance = launched.id
        return completed(instance, order)


def _check_choice(
    claim: NodeClaim,
    wanted: Overrides,
    fleet: FleetRequest,
    sold_out: Mapping[OfferingKey, str],
    subnets: Mapping[str, str],
) -> None:
    """The request leaves EC2 the choice that minValues of the claim ask for, as far as there is one.

    Raises InsufficientCapacity where stock or addresses took it away, for then a plan knows better; LaunchFailed where
    EC2's limits do. What is not sold any more was planned with: the rest is launched.
    """
    kinds = {each.kind.name: each.kind for each in wanted.chosen}
    sent = {name for name, _ in fleet.offerings}
    short = short_of(claim.requirements, (kinds[name] for name in kinds if name in sent))
    if not short:
        return
    gone, is_cut = dict[OfferingKey, str](), len(kinds) >= MOST_TYPES
    for each in wanted.chosen:
        full = "" if each.offering.zone in subnets else "no subnet has a free address"
        why = sold_out.get(each.key, full)
        if why and each.kind.name not in sent:
            gone[each.key] = f"{why}, and without it {short}"
        is_cut |= not why and each.kind.name in fleet.runnable and each.kind.name not in sent
    if gone:
        raise InsufficientCapacity(gone)
    if is_cut:
        limits = f"{MOST_TYPES} types, {MOST_CONFIGS} launch templates and {MOST_OVERRIDES} overrides"
        raise LaunchFailed(f"{short}: EC2 takes no more than {limits} in one launch", "InstanceTypeResolutionFailed")


def completed(instance: Instance, order: Order) -> Instance:
    """An instance with what its type has: labels, capacity, and what of it pods can use."""
    key = instance.offering
    kind = next((each for each in order.types if each.name == key.instance_type), None)
    sold = kind.sold_as(key) if kind is not None else None
    labels = {
        **(sold.requirements.labels() if sold is not None else {}),
        **instance.labels,
        ZONE: key.zone,
        CAPACITY_TYPE: key.capacity_type,
        **_reserved(key, order),
        **({ZONE_ID: instance.zone_id} if instance.zone_id else {}),
    }
    if sold is None:
        return replace(instance, labels=labels)
    absent = () if _has_efa(order) else (EFA,)
    capacity, allocatable = sold.capacity.without(absent), sold.allocatable.without(absent)
    return replace(instance, labels=labels, capacity=capacity, allocatable=allocatable)


def _has_efa(order: Order) -> bool:
    """Whether the instance has interfaces for EFA, which a launch asks for only where they are wanted."""
    return EFA in order.claim.requests or bool(order.node_class.spec.network_interfaces)


def _reserved(key: OfferingKey, order: Order) -> dict[str, str]:
    """The labels of a node that takes a reservation; its id alone where the EC2NodeClass no longer selects it."""
    if not key.reservation:
        return {}
    held = next((each for each in order.resolved.reservations if each.id == key.reservation), None)
    return {RESERVATION: key.reservation, **(held.labels if held is not None else {})}


def _claim_facts(claim: NodeClaim, overrides: Overrides) -> ClaimFacts:
    """What templates know of a claim: nothing that only this claim has, or each would have its own.

    The id of the zone is that of the subnet, which EC2 chooses: Kerf writes it once the node is there.
    """
    return ClaimFacts(
        labels={NODE_POOL: claim.node_pool, **{key: claim.labels[key] for key in claim.labels if key != ZONE_ID}},
        taints=claim.taints,
        startup_taints=claim.startup_taints,
        capacity_type=overrides.capacity_type,
        needs_efa=EFA in claim.requests,
    )


def _machines(order: Order, overrides: Overrides) -> list[MachineFacts]:
    """The types of the overrides, each once, best first."""
    reservation = next((each for each in order.resolved.reservations if each.id == overrides.reservation), None)
    kinds = {each.kind.name: each.kind for each in overrides.chosen}
    return [
        MachineFacts(name, kind.requirements, kind.capacity.get(PODS, 0), kind.capacity.get(EFA, 0), reservation)
        for name, kind in kinds.items()
    ]
