"""EC2NodeClass as a provider's kind: what was last found for each, and what Kerf writes on it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerf.cloudprovider import NodeClassNotReady, NodeClassState
from kerf.clouds.aws.dryruns import DryRuns
from kerf.clouds.aws.nodeclass.finalizer import finalize
from kerf.clouds.aws.nodeclass.hashing import HASH_ANNOTATION, HASH_VERSION, HASH_VERSION_ANNOTATION, digest
from kerf.clouds.aws.nodeclass.model import FINALIZER, GROUP, KIND, EC2NodeClass
from kerf.clouds.aws.nodeclass.reconcile import Discovery, NodeClassStatus, Outlook
from kerf.clouds.aws.nodeclass.status import GOOD, ConditionVerdict, Resolved
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.templates import Templates
from kerf.errors import CloudError
from kerf.model.nodeclaim import FALSE
from kerf.model.nodepool import NodePool
from kerf.ports import Clock


class _OnlyReading:
    """Discovery that makes no profile."""

    def __init__(self, discovery: Discovery) -> None:
        self.images, self.subnets, self.security_groups = discovery.images, discovery.subnets, discovery.security_groups
        self.reservations, self.placement_group = discovery.reservations, discovery.placement_group

    async def instance_profile(self, node_class: EC2NodeClass) -> str:
        """The profile of a user, or the one that another made."""
        return node_class.spec.instance_profile or node_class.instance_profile

    async def validate(
        self, node_class: EC2NodeClass, resolved: Resolved, pools: Sequence[NodePool] = ()
    ) -> ConditionVerdict:
        """Every one passes: a dry run of a launch makes a launch template."""
        return GOOD


class EC2NodeClasses:
    """All EC2NodeClasses of a cluster. What it keeps of them a restart finds again."""

    group, kind, finalizer = GROUP, KIND, FINALIZER

    def __init__(
        self, discovery: Discovery, validation: DryRuns, clock: Clock, templates: Templates, profiles: Profiles
    ) -> None:
        reading = _OnlyReading(discovery)
        self._status = NodeClassStatus(discovery, validation, clock)
        self._reading = NodeClassStatus(reading, reading, clock)
        self._templates, self._profiles = templates, profiles
        self._outlooks: dict[str, Outlook] = {}
        self._before: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self.ca_bundle = ""
        self.forgotten: Callable[[str], None] = lambda name: None
        """Called with the name of one that is gone."""

    async def resolve(
        self, node_class: Mapping[str, Any], *, pools: Sequence[NodePool] = (), only_reads: bool = False
    ) -> NodeClassState:
        """See NodeClasses."""
        status = self._reading if only_reads else self._status
        outlook = await status.reconcile(node_class, pools)
        name = node_class["metadata"]["name"]
        uid = str(node_class["metadata"].get("uid") or "")
        if self._uids.get(name, uid) != uid:
            self.forget(name)
        self._outlooks[name], self._uids[name] = outlook, uid
        self._before[name] = str((node_class.get("status") or {}).get("instanceProfile") or "")
        made = outlook.node_class
        hashed = {HASH_ANNOTATION: digest(made, self.ca_bundle), HASH_VERSION_ANNOTATION: HASH_VERSION} if made else {}
        return NodeClassState(outlook.status, hashed, outlook.again_s)

    async def release(self, node_class: Mapping[str, Any]) -> None:
        """See NodeClasses. Raises ApiFailed, Throttled."""
        metadata = node_class["metadata"]
        await finalize(EC2NodeClass(metadata["name"], metadata.get("uid") or ""), (), (self._templates, self._profiles))
        self.forget(metadata["name"])

    def forget(self, name: str) -> None:
        """The object is gone, and with it all that was found for it."""
        self._outlooks.pop(name, None)
        self._before.pop(name, None)
        uid = self._uids.pop(name, None)
        if uid is not None:
            self._status.forget(uid)
            self._reading.forget(uid)
        self.forgotten(name)

    def outlook(self, name: str) -> Outlook | None:
        """What was found last; None before it was resolved."""
        return self._outlooks.get(name)

    def usable(self, name: str) -> tuple[EC2NodeClass, Resolved]:
        """The EC2NodeClass and what it selects, for a launch.

        Raises NodeClassNotReady where a person has to do something, CloudError where it is only to be waited for.
        """
        outlook = self._outlooks.get(name)
        if outlook is None:
            raise CloudError(f"EC2NodeClass {name} is not resolved yet")
        ready = outlook.conditions[-1]
        if outlook.node_class is None or ready.status == FALSE:
            raise NodeClassNotReady(f"EC2NodeClass {name} is not ready: {ready.message or ready.reason}")
        if outlook.node_class.is_deleting:
            raise NodeClassNotReady(f"EC2NodeClass {name} is being deleted")
        if not outlook.is_ready:
            raise CloudError(f"EC2NodeClass {name} is not ready yet: {ready.message or ready.reason}")
        return outlook.node_class, outlook.resolved

    @property
    def profiles(self) -> frozenset[str]:
        """The profiles in the status of all of them, before and now."""
        found = {each.resolved.instance_profile for each in self._outlooks.values()}
        return frozenset({*found, *self._before.values()} - {""})
