"""AWS as a CloudProvider: nodes of EKS by EC2NodeClasses, launched by CreateFleet.

What a pool can buy follows from three things that change at different times: what AWS sells, what an EC2NodeClass
selects, and what runs already of what is reserved. Each is kept by its own module; here they come together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from kerf.cloudprovider import CloudProvider, Instance, Loop, News, NodeClasses, RepairPolicy
from kerf.clouds.aws import cluster as clusters
from kerf.clouds.aws.api import Api
from kerf.clouds.aws.discovery import AwsDiscovery
from kerf.clouds.aws.drift import drifted
from kerf.clouds.aws.dryruns import DryRuns
from kerf.clouds.aws.instances import Instances
from kerf.clouds.aws.interruption import InterruptionQueue, StatusChecks
from kerf.clouds.aws.launch import Launcher, Order
from kerf.clouds.aws.nodeclass.hashing import digest
from kerf.clouds.aws.nodeclass.model import GROUP, KIND, EC2NodeClass
from kerf.clouds.aws.nodeclass.status import Resolved
from kerf.clouds.aws.nodeclasses import EC2NodeClasses
from kerf.clouds.aws.offerings import offerings_of
from kerf.clouds.aws.prices import Prices
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.templates import Templates
from kerf.clouds.aws.types import instance_type, requirements_of
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.errors import CloudError
from kerf.model.instancetypes import InstanceType
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.ports import Clock

_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor"
_PRICES_S, _VERSION_S, _STATUS_S, _TEMPLATES_S, _PROFILES_S = 300, 300, 60, 300, 1800
"""How often: spot prices, the cluster's version, status checks, launch templates and profiles that are left over."""
_FIRST_S = 10.0
"""An EC2NodeClass is resolved within so long; one that is not there must not hold up the other pools for longer."""
_XIDS = r"XID(46|48|54|62|63|64|74|79|95|109|110|119|120|136|140|143|155|156|158)(?!\d)"
"""Errors of a card that do not go away by themselves, as the node monitoring agent names them: NvidiaXID79Error."""
_REPAIRS = (
    *(RepairPolicy("Ready", status, 30 * 60) for status in ("False", "Unknown")),
    RepairPolicy("AcceleratedHardwareReady", "False", 10 * 60, drain_s=5 * 60, reason=_XIDS),
    *(
        RepairPolicy(condition, "False", 30 * 60)
        for condition in (
            "AcceleratedHardwareReady",
            "StorageReady",
            "NetworkingReady",
            "KernelReady",
            "ContainerRuntimeReady",
        )
    ),
)
"""Karpenter's, v1.15. For some of the XIDs it reboots the instance first; Kerf replaces it."""


@dataclass(frozen=True)
class AwsOptions:
    """What an operator says: the cluster, its region, and the queue of interruptions, empty for none."""

    cluster: str
    region: str
    queue: str = ""


class AwsCloud(CloudProvider):
    """EC2 in one region, for one cluster. Make it by `connect`."""

    name = "aws"

    def __init__(
        self,
        api: Api,
        clock: Clock,
        options: AwsOptions,
        facts: ClusterFacts,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api, self._options, self._facts = api, options, facts
        self._clock, self._began_s = clock, clock.now_s()
        self._profiles = Profiles(api, clock, options.cluster, options.region)
        self._templates = Templates(api, clock, facts)
        self._discovery = AwsDiscovery(api, clock, self._profiles, facts.version)
        dry_runs = DryRuns(api, clock, self._templates, options.cluster)
        self._kinds = EC2NodeClasses(self._discovery, dry_runs, clock, self._templates, self._profiles)
        self._kinds.ca_bundle, self._kinds.forgotten = facts.ca_bundle, self._forget
        self._prices = Prices(api, clock, options.region)
        self._instances = Instances(api, options.cluster, clock.now_s)
        space, reserved = self._discovery.subnet_space, self._discovery.reserved
        self._launcher = Launcher(api, self._instances, space, reserved, self._templates, facts, clock.now_s, sleep)
        self._queue = InterruptionQueue(api, self._instances, options.queue, clock.now_s) if options.queue else None
        self._checks = StatusChecks(api, self._instances)
        self._first_asked_s: dict[str, float] = {}
        self._offers: dict[str, tuple[tuple[object, ...], tuple[InstanceType, ...]]] = {}

    @classmethod
    async def connect(cls, api: Api, clock: Clock, options: AwsOptions) -> "AwsCloud":
        """The cloud of a cluster, which EKS is asked about. Raises CloudError where it does not answer."""
        return cls(api, clock, options, await clusters.describe(api, options.cluster, options.region))

    @property
    def currency(self) -> str:
        """Of the price list of the partition."""
        return "CNY" if self._options.region.startswith("cn-") else "USD"

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """What the pool's EC2NodeClass can buy; nothing where it is of another kind, or cannot be resolved.

        Raises CloudError for one that is being resolved for the first time: a plan without its types would say of each
        that AWS does not sell it.
        """
        reference = pool.node_class
        if not _is_ours(reference):
            return ()
        outlook = self._kinds.outlook(reference.name)
        if outlook is None:
            now_s = self._clock.now_s()
            if now_s - self._first_asked_s.setdefault(reference.name, now_s) < _FIRST_S:
                raise CloudError(f"EC2NodeClass {reference.name} is not resolved yet")
            return ()
        if outlook.node_class is None:
            return ()
        return self._types(outlook.node_class, outlook.resolved)

    def _types(self, node_class: EC2NodeClass, resolved: Resolved) -> tuple[InstanceType, ...]:
        """By name; the same tuple until something has changed that types depend on."""
        resolved = replace(resolved, reservations=self._discovery.reserved.counted(resolved.reservations))
        running, prices = self._instances.reserved(), self._prices.current
        reserved = tuple((each, running.get(each.id, 0)) for each in resolved.reservations)
        zones = tuple(sorted({(subnet.zone, subnet.zone_id) for subnet in resolved.subnets}))
        key = (node_class.spec, zones, resolved.images, reserved, resolved.placement_group, prices)
        held = self._offers.get(node_class.name)
        if held is not None and held[0] == key:
            return held[1]
        found = list[InstanceType]()
        for name in sorted(prices.rows):
            offerings = offerings_of(name, resolved, prices, running)
            row = prices.rows[name]
            kind = instance_type(row, node_class, resolved, offerings, self._options.region, prices.notes)
            found += [kind] if kind is not None else []
        types = tuple(found)
        self._offers[node_class.name] = key, types
        return types

    def _forget(self, name: str) -> None:
        """An EC2NodeClass is gone: its types are two megabytes."""
        self._offers.pop(name, None)
        self._first_asked_s.pop(name, None)

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch. Raises InsufficientCapacity, NodeClassNotReady, LaunchFailed, Withdrawn, Throttled, CloudError."""
        node_class, resolved = self._kinds.usable(claim.node_class.name)
        return await self._launcher.launch(Order(claim, node_class, resolved, self._types(node_class, resolved)))

    def launches_while(self, is_wanted: Callable[[NodeClaim], bool]) -> None:
        """Launches stand in line for their tokens, minutes where there are many."""
        self._launcher.is_wanted = is_wanted

    async def delete(self, provider_id: str) -> None:
        """Terminate an instance of this cluster; a repeated call is accepted. Raises InstanceNotFound."""
        await self._instances.delete(provider_id)

    async def list_instances(self) -> Sequence[Instance]:
        """Every instance that an autoscaler launched for this cluster, by provider id."""
        return await self._instances.all()

    async def get(self, provider_id: str) -> Instance:
        """One instance, asked by its id. Raises InstanceNotFound."""
        return await self._instances.get(provider_id)

    async def drift(self, claim: NodeClaim) -> str | None:
        """Karpenter's reason, as far as EC2 shows the instance and the EC2NodeClass can be read."""
        outlook = self._kinds.outlook(claim.node_class.name) if _is_ours(claim.node_class) else None
        if outlook is None or outlook.node_class is None or not claim.provider_id:
            return None
        held = await self._instances.known(claim.provider_id)
        if held is None:
            return None
        row = self._prices.current.rows.get(held.instance.offering.instance_type)
        kind = requirements_of(row) if row is not None else None
        return drifted(held, digest(outlook.node_class, self._facts.ca_bundle), outlook.resolved, kind)

    def boot_log(self, claim: NodeClaim) -> str:
        """EC2 keeps the console of an instance for an hour after its end; that of now is to be had on Nitro alone.

        Source: GetConsoleOutput in the EC2 API reference, read 2026-11.
        """
        instance = claim.provider_id.rpartition("/")[2]
        if not instance:
            return ""
        latest = " --latest" if claim.labels.get(_HYPERVISOR) == "nitro" else ""
        named = f"--region {self._options.region} --instance-id {instance}"
        return f"aws ec2 get-console-output {named}{latest} --output text"

    @property
    def has_drift(self) -> bool:
        """EC2NodeClasses change, and so do images."""
        return True

    @property
    def node_classes(self) -> NodeClasses:
        """EC2NodeClass."""
        return self._kinds

    @property
    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Those of Karpenter."""
        return _REPAIRS

    @property
    def loops(self) -> Sequence[Loop]:
        """Prices and the cluster's version, which are only read; interruptions; and what is left over."""
        queue = [Loop("interruption-queue", self._queue.turn, 0)] if self._queue is not None else []
        return (
            *queue,
            Loop("prices", self._prices.refresh, _PRICES_S, only_reads=True),
            Loop("cluster-version", self._follow_version, _VERSION_S, only_reads=True),
            Loop("status-checks", self._checks.turn, _STATUS_S),
            Loop("launch-templates", self._collect_templates, _TEMPLATES_S),
            Loop("instance-profiles", self._collect_profiles, _PROFILES_S),
        )

    async def _follow_version(self) -> News:
        """A new version of the cluster moves the images of aliases."""
        facts = await clusters.describe(self._api, self._options.cluster, self._options.region)
        self._discovery.kubernetes = facts.version
        return News()

    async def _collect_templates(self) -> News:
        await self._templates.collect()
        return News()

    async def _collect_profiles(self) -> News:
        """Not in the first half hour: an EC2NodeClass that was not resolved yet may need one."""
        if self._clock.now_s() - self._began_s >= _PROFILES_S:
            await self._instances.all()
            used = [each.profile for each in self._instances.listed()]
            await self._profiles.collect(self._kinds.profiles, used)
        return News()


def _is_ours(reference: NodeClassRef) -> bool:
    return (reference.group, reference.kind) == (GROUP, KIND)
