"""Instances, claims and nodes that have lost each other, and instances that the cloud takes back.

A claim whose instance has vanished is deleted, an instance that no claim asked for is terminated once it is old enough
to be no launch in progress, and an interrupted instance is drained while there is time. A claim that was removed by
force leaves a node that our finalizer holds: it goes once its instance has.

A listing can be wrong: it lags, it is cut off, a role may see only a part. So what it lacks is asked for by id before
anything goes, a node that is Ready has an instance whatever the cloud says, and a listing that lacks many claims at
once ends none of them.
"""

from collections.abc import Callable, Iterable, Sequence

from kerf.cloudprovider import Instance, InstanceNotFound, Throttled
from kerf.config import Settings
from kerf.controllers.cloudloops import interrupt, is_news
from kerf.controllers.nodeclaim.termination import release_node
from kerf.controllers.runtime import Ports, Result
from kerf.errors import CloudError
from kerf.model import events
from kerf.model.constraints import NODE_POOL
from kerf.model.nodeclaim import LAUNCHED, TERMINATION_FINALIZER, NodeClaim
from kerf.model.promises import is_made_by_kerf
from kerf.model.snapshot import Event, Synced, Watched
from kerf.ports import NotFound
from kerf.state import ClusterState
from kerf.telemetry import logger

_LOST_OF = 5
"""A listing that lacks more than one claim in five is doubted; a single claim may always go."""
_MOST_NAMES = 5


def nobodys(_identity: str) -> bool:
    """No claim is hidden."""
    return False


class GarbageCollection:
    """One look at all instances, every so often.

    `is_foreign` knows the uids and provider ids of claims that exist and that the reader hides: their instances and
    nodes are another's.
    """

    name = "garbage-collection"

    def __init__(
        self, state: ClusterState, ports: Ports, settings: Settings, is_foreign: Callable[[str], bool] = nobodys
    ) -> None:
        self._state, self._ports, self._settings, self._is_foreign = state, ports, settings, is_foreign

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue."""
        return ("instances",) if isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """Compare claims with instances."""
        instances = await self._ports.cloud.list_instances()
        await self._claims_without_instance(instances)
        await self._instances_without_claim(instances)
        await self._nodes_without_claim(instances)
        return Result(self._settings.instance_poll_s)

    async def _claims_without_instance(self, instances: Sequence[Instance]) -> None:
        found = {instance.provider_id: instance for instance in instances}
        launched = [c for c in self._state.claims() if not c.is_deleting and c.is_true(LAUNCHED)]
        lost = [claim for claim in launched if claim.provider_id not in found]
        for claim in self._state.claims():
            instance = found.get(claim.provider_id) if claim.is_true(LAUNCHED) else None
            interruption = instance.interruption if instance is not None else None
            if interruption is not None and is_news(claim, interruption):
                await interrupt(self._ports, claim, interruption)
        if len(lost) > max(1, len(launched) // _LOST_OF):
            self._doubt(lost, len(launched))
            return
        for claim in lost:
            node = self._state.node_of(claim)
            if (node is None or not node.is_ready) and await self._is_gone(claim.provider_id):
                await self._delete(claim)

    def _doubt(self, lost: Sequence[NodeClaim], launched: int) -> None:
        names = ", ".join(claim.name for claim in lost[:_MOST_NAMES])
        hint = "is the cloud, or the role, right? kubectl delete nodeclaim ends one by hand"
        said = "a listing lacks too many instances to be believed"
        logger(self.name).warning(said, claims=launched, lost=len(lost), such_as=names, hint=hint)

    async def _is_gone(self, provider_id: str) -> bool:
        """Whether the cloud, asked by id, has no such instance."""
        try:
            await self._ports.cloud.get(provider_id)
        except InstanceNotFound:
            return True
        return False

    async def _delete(self, claim: NodeClaim) -> None:
        self._ports.recorder.record(events.interrupted(claim.name, "its instance is gone"))
        try:
            await self._ports.writer.delete_node_claim(claim)
        except NotFound:
            return

    async def _instances_without_claim(self, instances: Sequence[Instance]) -> None:
        # By its uid while the claim does not know its instance yet; afterwards another one of that uid is a twin.
        claimed = {claim.provider_id or claim.uid for claim in self._state.claims()}
        old = self._ports.clock.now_s() - self._settings.orphan_age_s
        for instance in instances:
            # Without a uid it is another autoscaler's, launched for a claim of that time: never garbage.
            if not instance.claim_uid or claimed & {instance.claim_uid, instance.provider_id}:
                continue
            if self._is_foreign(instance.claim_uid):
                continue
            if instance.launched_s <= old:
                await self._end(instance)

    async def _end(self, instance: Instance) -> None:
        """Terminate one. The cloud may refuse it at every look, and the others must not pay for that for ever."""
        try:
            await self._ports.cloud.delete(instance.provider_id)
        except InstanceNotFound:
            return
        except Throttled:
            raise
        except CloudError as error:
            said = "an instance that no claim asked for is not ended"
            logger(self.name).warning(said, instance=instance.provider_id, claim=instance.claim_name, why=str(error))

    async def _nodes_without_claim(self, instances: Sequence[Instance]) -> None:
        there = {instance.provider_id for instance in instances}
        pools = {pool.name for pool in self._state.pools()}
        old = self._ports.clock.now_s() - self._settings.orphan_age_s
        for node in self._state.nodes():
            if TERMINATION_FINALIZER not in node.finalizers or node.provider_id in there or node.created_s > old:
                continue
            # Kerf's own nodes carry what it wrote on their claim, also when their pool is gone.
            is_ours = node.labels.get(NODE_POOL, "") in pools or is_made_by_kerf(node.annotations)
            is_left = is_ours and self._state.claim_of(node) is None and not self._is_foreign(node.provider_id)
            if is_left and await self._is_gone(node.provider_id):
                await release_node(self._ports.writer, node)
                self._ports.recorder.record(events.released(node.name))
