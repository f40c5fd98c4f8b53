"""A cloud whose machines are KWOK nodes of a real API server: Kerf on a real control plane, without a bill.

It sells what the vendor of a pool's NodeClass sells, takes its time, sells out and takes back, so everything Kerf
does on a real cloud can be watched with kubectl. An instance is a ConfigMap (see `records`) from the moment it is
asked for: a caller that asks again with the same claim, also after a crash, finds it. `machines` acts the machines out.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kerf.catalog.select import AWS, KWOK, PROVIDER_OF_GROUP, load_market
from kerf.cloudprovider import CloudProvider, Instance, InstanceNotFound, LaunchFailed, Loop, News, NodeClassNotReady
from kerf.clouds.kwok.controls import Complaints, ControlBook, Controls
from kerf.clouds.kwok.machines import Machines
from kerf.clouds.kwok.records import (
    INSTANCE_LABEL,
    TERMINATING,
    InstanceRecord,
    Json,
    KwokLatencies,
    ObjectStore,
    config_map,
    date_text,
    provider_id,
    read_record,
    record_name,
    record_of,
)
from kerf.clouds.launching import choose, instance_of, reached
from kerf.errors import ApiError, CloudError, DecodeError, InputError
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.ports import AlreadyExists, Clock, NotFound
from kerf.telemetry import logger

__all__ = ["Catalogue", "KwokCloud", "KwokLatencies", "ObjectStore"]

_RETRY_S = 1.0


class Catalogue:
    """Which market a pool buys on: the one that `--catalog` names, else that of its NodeClass's vendor.

    Raises InputError, at once when `spec` cannot be used. Markets are loaded when they are first asked for.
    """

    def __init__(self, spec: str | None = None, region: str | None = None) -> None:
        self._fixed = None if spec is None else load_market(spec, AWS, region)
        self._region = region
        self._loaded: dict[str, Market] = {}

    def market(self, group: str) -> Market:
        """The market for NodeClasses of an API group; AWS's for one that is not known. Raises InputError."""
        if self._fixed is not None:
            return self._fixed
        vendor = PROVIDER_OF_GROUP.get(group, AWS)
        if vendor not in self._loaded:
            self._loaded[vendor] = load_market(None, vendor, None if vendor == KWOK else self._region)
        return self._loaded[vendor]


class KwokCloud(CloudProvider):
    """Its loop acts the machines out, in one process at a time.

    A plan has one currency, so pools of two vendors cannot be served together: the first pool of each round of
    `instance_types` decides, and one whose prices are in another currency is offered nothing.
    """

    name = "kwok"

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        market: Market | Catalogue,
        *,
        namespace: str,
        latencies: KwokLatencies | None = None,
    ) -> None:
        self._store, self._clock, self._source, self._namespace = store, clock, market, namespace
        self._complaints = Complaints()
        self._controls = ControlBook(store, namespace, latencies or KwokLatencies(), self._complaints)
        self._machines = Machines(store, clock, self._controls, namespace, self._complaints)
        self._acting = asyncio.Lock()
        self._round: dict[str, Market] = {}
        self._refused: set[str] = set()
        self._listed: dict[str, tuple[str, InstanceRecord | None]] = {}

    @property
    def currency(self) -> str:
        """Of the market on which the pools of this round buy."""
        return next(iter(self._round.values()), self._market("")).currency

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """What the vendor of the pool's NodeClass sells; nothing where its currency is not that of the other pools."""
        try:
            market = self._market(pool.node_class.group)
        except InputError as error:
            self._refuse(pool, str(error))
            return ()
        if pool.name in self._round:
            self._round = {}
        self._round[pool.name] = market
        if market.currency != self.currency:
            first = next(iter(self._round))
            self._refuse(pool, f"its prices are in {market.currency}, those of pool {first} in {self.currency}")
            return ()
        return market.types

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch the cheapest offering in stock that the claim allows; takes the launch latency.

        Raises InsufficientCapacity, NodeClassNotReady, LaunchFailed, and CloudError while the API does not answer.
        """
        with _as_cloud_error(f"launching for {claim.name}"):
            controls = await self._controls.read()
            record = await self._find(claim)
            if record is None:
                await self._launch(claim, controls)
                record = await self._find(claim)
            if record is not None:
                await reached(self._clock, record.up_s(controls.latencies))
                record = await self._find(claim)
        if record is None or record.terminating_s is not None:
            raise LaunchFailed(f"the instance of {claim.name} has ended")
        return record.shown(controls.latencies)

    async def delete(self, provider_id: str) -> None:
        """Begin to terminate; a repeated call is accepted. Raises InstanceNotFound once the instance is gone."""
        name = record_of(provider_id)
        with _as_cloud_error(f"terminating {provider_id}"):
            try:
                obj = await self._store.get("ConfigMap", self._namespace, name or "-")
                record = self._read(obj)
                if record is None:
                    # What this machine is cannot be known: it ends, and its node with it.
                    await self._store.delete("ConfigMap", self._namespace, name)
            except NotFound:
                record = None
            if record is None or record.instance.provider_id != provider_id or await self._has_ended(record):
                raise InstanceNotFound(f"no instance {provider_id}")
            if record.terminating_s is None:
                change = {"data": {TERMINATING: date_text(self._clock.now_s())}}
                await self._store.patch("ConfigMap", self._namespace, name, change)

    async def list_instances(self) -> Sequence[Instance]:
        """Every instance that has not ended, by provider id; those that terminate are still there."""
        with _as_cloud_error("listing instances"):
            labels = f"{INSTANCE_LABEL}=true"
            found = await self._store.list("ConfigMap", namespace=self._namespace, labels=labels)
            self._listed = {obj["metadata"]["name"]: self._again(obj) for obj in found}
            records = [record for _, record in self._listed.values() if record is not None]
            latencies, now = (await self._controls.read()).latencies, self._clock.now_s()
        ends = ((record, record.end_s(latencies)) for record in records)
        living = (record.shown(latencies) for record, end_s in ends if end_s is None or now < end_s)
        return tuple(sorted(living, key=lambda instance: instance.provider_id))

    @property
    def loops(self) -> Sequence[Loop]:
        """One, which never ends by itself."""
        return (Loop("machines", self.run_machines, _RETRY_S),)

    async def run_machines(self) -> News:
        """Act the machines out for ever; cancel it to stop. Another process may go on from there at any time."""
        # A run of an earlier lead may still be coming to rest.
        async with self._acting:
            while True:
                try:
                    await self._machines.run()
                except Exception as error:
                    # Our own bug must not stop every machine.
                    logger("kwok").error("acting the machines out failed", exc_info=error)
                await asyncio.sleep(_RETRY_S)

    def _market(self, group: str) -> Market:
        return self._source if isinstance(self._source, Market) else self._source.market(group)

    def _refuse(self, pool: NodePool, why: str) -> None:
        if f"{pool.name}: {why}" not in self._refused:
            self._refused.add(f"{pool.name}: {why}")
            hint = "name one catalogue for all with --catalog"
            logger("kwok").warning("nothing is sold to a pool", pool=pool.name, why=why, hint=hint)

    async def _find(self, claim: NodeClaim) -> InstanceRecord | None:
        """The instance of the claim; None when it has none. Raises LaunchFailed for one that cannot be read."""
        try:
            obj = await self._store.get("ConfigMap", self._namespace, record_name(claim.uid))
        except NotFound:
            return None
        try:
            return read_record(obj)
        except DecodeError as error:
            raise LaunchFailed(str(error)) from error

    async def _launch(self, claim: NodeClaim, controls: Controls) -> None:
        now = self._clock.now_s()
        choice = choose(self._types(claim), claim, lambda key: controls.is_in_stock(key, now))
        instance = instance_of(claim, choice, provider_id(choice.key.zone, claim.uid), now)
        try:
            await self._store.create(config_map(instance, claim, choice.kind.devices, self._namespace))
        except AlreadyExists:
            # Our own earlier run, or another replica, was there first: that one is the instance.
            return

    def _types(self, claim: NodeClaim) -> Sequence[InstanceType]:
        """What the claim may be launched as: a plan is made on the markets of all pools of one currency together."""
        try:
            own = self._market(claim.node_class.group)
        except InputError as error:
            raise NodeClassNotReady(str(error)) from error
        markets = {id(market): market for market in (own, *self._round.values()) if market.currency == own.currency}
        return [kind for market in markets.values() for kind in market.types]

    async def _has_ended(self, record: InstanceRecord) -> bool:
        end_s = record.end_s((await self._controls.read()).latencies)
        return end_s is not None and self._clock.now_s() >= end_s

    def _again(self, obj: Json) -> tuple[str, InstanceRecord | None]:
        """(version, what it says), read only where that version was not listed before."""
        name, version = obj["metadata"]["name"], obj["metadata"]["resourceVersion"]
        known = self._listed.get(name)
        return known if known is not None and known[0] == version else (version, self._read(obj))

    def _read(self, obj: Json) -> InstanceRecord | None:
        try:
            return read_record(obj)
        except DecodeError as error:
            self._complaints.about(error)
            return None


@contextmanager
def _as_cloud_error(doing: str) -> Iterator[None]:
    """What the API does not do is what the cloud does not do."""
    try:
        yield
    except ApiError as error:
        raise CloudError(f"{doing}: {error}") from error
