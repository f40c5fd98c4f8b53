"""The instances of a cluster: found by their tags, asked by their ids, and ended.

EC2 is eventually consistent: a new instance is missing from lists for seconds, and an unknown id fails a whole call. So
what this process launched is remembered until EC2 shows it, ids go into filters, which take unknown ones, and a batch
of terminations that fails is repeated one by one: one instance under termination protection holds up no other. An
instance without the cluster's tags is never ended.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kerf.cloudprovider import Instance, InstanceNotFound, InstanceState
from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.codes import is_about_credentials
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import MOST_VALUES, filter_of
from kerf.clouds.aws.tagging import CLAIM_UID, NODE_CLAIM, NODE_CLASS_HASH, cluster_tag, of_cluster, read_tags
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, RESERVATION, ZONE, ZONE_ID
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT, OfferingKey
from kerf.model.nodeclaim import NodeClaim

LAG_S = 60.0
"""So long an instance that EC2 does not list yet is taken to be there; ten seconds were seen."""
_PREFIX = "aws:///"
_STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "stopping": InstanceState.STOPPING,
    "stopped": InstanceState.STOPPED,
    "shutting-down": InstanceState.TERMINATING,
}
_STATE = "instance-state-name"
_BATCH_S = 0.1
_PAGE = 1000
_MOST_ENDED = 100
"""Instances of one call. EC2 takes 1,000 and recommends fewer (API reference, TerminateInstances, 2026-11): each call
that fails for one of its instances is repeated for all of them.
"""
_NO_SUCH = ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """An instance as EC2 listed it, with what only drift and garbage collection ask: security groups by id, the name
    of its profile, the version and digest of the EC2NodeClass that it was launched by, and the name of its placement
    group."""

    instance: Instance
    groups: tuple[str, ...] = ()
    profile: str = ""
    node_class_hash: str = ""
    placement_group: str = ""


def provider_id(zone: str, instance_id: str) -> str:
    """`aws:///us-east-1a/i-0abc`, as the cloud controller of a cluster writes it on a Node."""
    return f"{_PREFIX}{zone}/{instance_id}"


def instance_id(provider_id: str) -> str:
    """The id in a provider id. Raises InstanceNotFound for one of another cloud."""
    found = provider_id.rpartition("/")[2]
    if not provider_id.startswith(_PREFIX) or not found.startswith("i-"):
        raise InstanceNotFound(f"{provider_id} is no EC2 instance")
    return found


def instance_of(record: Record) -> Instance | None:
    """An instance as EC2 describes it; None for one that has ended. What its type has is not in it."""
    state = _STATES.get(record.get("State", {}).get("Name", ""))
    if state is None:
        return None
    tags, place = read_tags(record), record.get("Placement", {})
    zone, reservation = place.get("AvailabilityZone", ""), record.get("CapacityReservationId", "")
    capacity_type = RESERVED if reservation else SPOT if record.get("InstanceLifecycle") == "spot" else ON_DEMAND
    key = OfferingKey(record["InstanceType"], zone, capacity_type, reservation, place.get("GroupId", ""))
    zone_id = place.get("AvailabilityZoneId", "")
    labels = {INSTANCE_TYPE: key.instance_type, ZONE: zone, CAPACITY_TYPE: capacity_type}
    return Instance(
        provider_id=provider_id(zone, record["InstanceId"]),
        claim_uid=tags.get(CLAIM_UID, ""),
        claim_name=tags.get(NODE_CLAIM, ""),
        offering=key,
        labels={
            **labels,
            **({RESERVATION: reservation} if reservation else {}),
            **({ZONE_ID: zone_id} if zone_id else {}),
        },
        launched_s=_launched_s(record.get("LaunchTime")),
        state=state,
        image=record.get("ImageId", ""),
        subnet=record.get("SubnetId", ""),
        zone_id=zone_id,
    )


def listed_of(record: Record) -> Listed | None:
    """The same with all that is asked of it; None for one that has ended."""
    instance = instance_of(record)
    if instance is None:
        return None
    groups = tuple(sorted(group.get("GroupId", "") for group in record.get("SecurityGroups") or ()))
    profile = (record.get("IamInstanceProfile") or {}).get("Arn", "").rpartition("/")[2]
    group = (record.get("Placement") or {}).get("GroupName", "")
    return Listed(instance, groups, profile, read_tags(record).get(NODE_CLASS_HASH, ""), group)


def _launched_s(value: object) -> float:
    return value.timestamp() if isinstance(value, datetime) else 0.0


@dataclass(frozen=True, slots=True)
class _Launched:
    """An instance that this process launched, and until when EC2 may not show it."""

    instance: Instance
    until_s: float


class Instances:
    """Those of one cluster."""

    def __init__(self, api: Api, cluster: str, now_s: Callable[[], float], batch_s: float = _BATCH_S) -> None:
        self._api, self._cluster, self._now_s, self._batch_s = api, cluster, now_s, batch_s
        self._launched: dict[str, _Launched] = {}
        self._listed: dict[str, Listed] = {}
        self._was_listed, self._listing = False, asyncio.Lock()
        # By the order in which they were asked for: the listings so far, and the newest that has been answered.
        self._asked = self._answered = 0
        self._ending: dict[str, asyncio.Future[bool]] = {}
        self._batch: asyncio.Task[None] | None = None
        self._sought: dict[str, asyncio.Future[list[Record]]] = {}
        self._search: asyncio.Task[None] | None = None

    def note(self, instance: Instance) -> None:
        """This process launched it: it is there from now on."""
        self._launched[instance.provider_id] = _Launched(instance, self._now_s() + LAG_S)

    async def all(self) -> Sequence[Instance]:
        """Those that have not ended, by provider id."""
        # One that this process remembers may have ended already.
        states = (*_STATES, *(("terminated",) if self._launched else ()))
        self._asked += 1
        number = self._asked
        reservations = await self._api.pages(
            EC2,
            "DescribeInstances",
            "Reservations",
            Filters=[*of_cluster(self._cluster), filter_of(_STATE, states)],
            MaxResults=_PAGE,
        )
        records = _records(reservations)
        if number > self._answered:
            # Of two at once the older may be answered last, and must not take back what the newer has shown.
            found = ((record["InstanceId"], listed_of(record)) for record in records)
            self._listed, self._was_listed = {each_id: each for each_id, each in found if each is not None}, True
            self._answered = number
        return self._with_launched(records)

    async def known(self, wanted: str) -> Listed | None:
        """One by its provider id as the last listing had it, else as EC2 has it now; None where it has none."""
        number = instance_id(wanted)
        # A thousand claims are asked about at once at the start: one listing, and not a call for each.
        async with self._listing:
            if not self._was_listed:
                await self.all()
        if number in self._listed:
            return self._listed[number]
        return next((each for record in await self._described([number]) if (each := listed_of(record))), None)

    def listed(self) -> Sequence[Listed]:
        """The last listing, by id."""
        return tuple(self._listed[number] for number in sorted(self._listed))

    def reserved(self) -> Mapping[str, int]:
        """How many instances of the cluster run in each reservation, as far as is known."""
        listed = {each.instance.provider_id: each.instance for each in self._listed.values()}
        known = {**listed, **{key: held.instance for key, held in self._launched.items()}}
        living = (each for each in known.values() if each.state is not InstanceState.TERMINATING)
        return Counter(each.offering.reservation for each in living if each.offering.reservation)

    async def located(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Instances by their ids, of the last listing, else as EC2 has them now; what neither has is left out.

        One that this process launched a moment ago is there though EC2 does not show it: its notice comes once.
        """
        wanted, now_s = sorted(ids), self._now_s()
        hidden = {instance_id(key): held.instance for key, held in self._launched.items() if held.until_s > now_s}
        known = {**hidden, **{number: each.instance for number, each in self._listed.items()}}
        found = {number: known[number] for number in wanted if number in known}
        missing = [number for number in wanted if number not in found]
        return {**found, **(await self.describe(missing) if missing else {})}

    async def get(self, wanted: str) -> Instance:
        """One by its provider id. Raises InstanceNotFound."""
        records = await self._described([instance_id(wanted)])
        found = next((each for each in self._with_launched(records) if each.provider_id == wanted), None)
        if found is None or not all(self._is_ours(record) for record in records):
            raise InstanceNotFound(f"no instance {wanted} of this cluster")
        return found

    async def find(self, claim: NodeClaim) -> Instance | None:
        """The instance of a claim; None where EC2 shows none.

        One with its uid, else one that Karpenter launched for it: those have the name of the claim, and no uid.
        """
        for launched in self._launched.values():
            if launched.instance.claim_uid == claim.uid and launched.until_s > self._now_s():
                return launched.instance
        waiting = self._sought.get(claim.name)
        if waiting is None:
            waiting = self._sought[claim.name] = asyncio.get_running_loop().create_future()
            if self._search is None or self._search.done():
                self._search = asyncio.get_running_loop().create_task(self._seek())
        records = [record for record in await asyncio.shield(waiting) if self._is_ours(record)]
        found = [each for record in records if (each := instance_of(record)) is not None and each.is_of(claim)]
        return min(found, key=lambda each: (not each.claim_uid, each.launched_s, each.provider_id), default=None)

    async def _seek(self) -> None:
        """Look for all claims that were asked about within a moment: after a restart there can be a thousand."""
        while self._sought:
            await asyncio.sleep(self._batch_s)
            waiting, self._sought = self._sought, {}
            names = sorted(waiting)
            for start in range(0, len(names), MOST_VALUES):
                some = names[start : start + MOST_VALUES]
                try:
                    records = await self._named(some)
                except Exception as error:
                    for name in some:
                        _fail(waiting[name], error)
                    continue
                for name in some:
                    if not waiting[name].done():
                        waiting[name].set_result([each for each in records if read_tags(each).get(NODE_CLAIM) == name])

    async def _named(self, claims: Sequence[str]) -> list[Record]:
        # Kerf's own have both tags, that of the name and that of the uid, so one question is enough.
        filters = [filter_of(f"tag:{NODE_CLAIM}", claims), filter_of(_STATE, _STATES)]
        return _records(await self._api.pages(EC2, "DescribeInstances", "Reservations", Filters=filters))

    async def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        """Instances by their ids; those that EC2 does not show, that have ended, or are another's, are left out."""
        records = [record for record in await self._described(ids) if self._is_ours(record)]
        found = ((record["InstanceId"], instance_of(record)) for record in records)
        return {each: instance for each, instance in found if instance is not None}

    async def delete(self, wanted: str) -> None:
        """Terminate an instance of this cluster. Raises InstanceNotFound once it is gone. Calls go in batches."""
        number = instance_id(wanted)
        waiting = self._ending.get(number)
        if waiting is None:
            waiting = self._ending[number] = asyncio.get_running_loop().create_future()
            if self._batch is None or self._batch.done():
                self._batch = asyncio.get_running_loop().create_task(self._end())
        if not await asyncio.shield(waiting):
            raise InstanceNotFound(f"no instance {wanted} of this cluster")

    async def _end(self) -> None:
        """End all that were asked for within a moment."""
        while self._ending:
            await asyncio.sleep(self._batch_s)
            waiting, self._ending = self._ending, {}
            try:
                living, refused = await self._terminated(sorted(waiting))
            except Exception as error:
                for each in waiting.values():
                    _fail(each, error)
                continue
            for number, each in waiting.items():
                if number in refused:
                    _fail(each, refused[number])
                elif not each.done():
                    each.set_result(number in living)

    async def _terminated(self, ids: Sequence[str]) -> tuple[frozenset[str], Mapping[str, ApiFailed]]:
        """Ask for the end of those that are ours; the ids of those that have not ended yet, and why some may not."""
        records = await self._described(ids)
        ours = [record for record in records if self._is_ours(record)]
        living = {record["InstanceId"]: instance for record in ours if (instance := instance_of(record)) is not None}
        running = [number for number, each in living.items() if each.state is not InstanceState.TERMINATING]
        # What EC2 does not show yet is asked to end all the same, until EC2 shows that it has.
        shown = {record["InstanceId"] for record in records}
        unseen = {instance_id(key) for key, held in self._launched.items() if held.until_s > self._now_s()} - shown
        unseen &= set(ids)
        refused = await self._terminate(sorted({*running, *unseen}))
        gone = {number for number, error in refused.items() if error.code in _NO_SUCH}
        kept = {number: error for number, error in refused.items() if number not in gone}
        self._note_end([number for number in ids if number not in kept])
        return frozenset(living) - (gone - unseen) | unseen, kept

    def _note_end(self, ids: Sequence[str]) -> None:
        """What this process remembers of them ends: no claim gets one of them again."""
        for key, held in self._launched.items():
            if instance_id(key) in ids:
                ending = replace(held.instance, state=InstanceState.TERMINATING)
                self._launched[key] = replace(held, instance=ending)

    async def _terminate(self, ids: Sequence[str]) -> Mapping[str, ApiFailed]:
        """Terminate; what EC2 said of each that it refused. Raises ApiFailed where it refuses us; Throttled."""
        refused: dict[str, ApiFailed] = {}
        for start in range(0, len(ids), _MOST_ENDED):
            refused |= await self._terminate_some(ids[start : start + _MOST_ENDED])
        return refused

    async def _terminate_some(self, ids: Sequence[str]) -> Mapping[str, ApiFailed]:
        refusal = await self._refusal(ids)
        if refusal is None:
            return {}
        # One id that is unknown, or may not be ended, fails the whole call, and the message may not say which.
        found = {each: await self._refusal([each]) for each in ids} if len(ids) > 1 else {ids[0]: refusal}
        return {
            each: ApiFailed(error.operation, error.code, f"{each}: {error.message}")
            for each, error in found.items()
            if error is not None
        }

    async def _refusal(self, ids: Sequence[str]) -> ApiFailed | None:
        """Why EC2 does not end them; None where it does."""
        try:
            await self._api.call(EC2, "TerminateInstances", InstanceIds=list(ids))
        except ApiFailed as error:
            if is_about_credentials(error):
                raise
            return error
        return None

    async def _described(self, ids: Sequence[str]) -> list[Record]:
        found: list[Record] = []
        for start in range(0, len(ids), MOST_VALUES):
            some = [filter_of("instance-id", ids[start : start + MOST_VALUES])]
            found += _records(await self._api.pages(EC2, "DescribeInstances", "Reservations", Filters=some))
        return found

    def _is_ours(self, record: Record) -> bool:
        tags = read_tags(record)
        return tags.get(cluster_tag(self._cluster)) == "owned" and NODE_POOL in tags

    def _with_launched(self, records: Iterable[Record]) -> tuple[Instance, ...]:
        """The instances that EC2 shows, and those that it does not show yet."""
        shown: set[str] = set()
        found: dict[str, Instance] = {}
        for record in records:
            shown.add(record["InstanceId"])
            instance = instance_of(record)
            if instance is not None:
                found[instance.provider_id] = instance
        now_s = self._now_s()
        self._launched = {
            key: held for key, held in self._launched.items() if held.until_s > now_s and instance_id(key) not in shown
        }
        found.update({key: held.instance for key, held in self._launched.items()})
        return tuple(found[key] for key in sorted(found))


def _records(reservations: Iterable[Record]) -> list[Record]:
    """Each with its id, type and state: one without a state would look as if it had ended. Raises NotWhole."""
    with reading("DescribeInstances"):
        found = [record for reservation in reservations for record in reservation["Instances"]]
        for record in found:
            _ = record["InstanceId"], record["InstanceType"], record["State"]["Name"]
    return found


def _fail(waiting: "asyncio.Future[Any]", error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
