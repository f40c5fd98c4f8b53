"""What a cloud must do for Kerf: the one file the author of a provider reads.

A provider is a class with the methods of `CloudProvider`, found by the entry point group `kerf.clouds`. It decides
nothing: it launches what a claim asks for, the cheapest that is to be had, and reports the truth. What each error
makes Kerf do is stated where the error is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kerf.errors import CloudError
from kerf.model.instancetypes import InstanceType, OfferingKey, offerings_text
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.quantities import NOTHING, Resources


class InsufficientCapacity(CloudError):
    """Everything the claim asks for is sold out.

    Kerf deletes the claim, leaves `offerings` out for a while (3 minutes, doubling to 30) and plans again at once.
    """

    def __init__(self, offerings: Sequence[OfferingKey], detail: str = "insufficient capacity") -> None:
        self.offerings = tuple(sorted(offerings))
        super().__init__(f"{detail}: {offerings_text(self.offerings)}")


class NodeClassNotReady(CloudError):
    """The NodeClass cannot be used. Kerf deletes the claim and says so on claim and pool."""


class Throttled(CloudError):
    """The cloud asks us to slow down. Kerf tries the same call again after `retry_after_s`."""

    def __init__(self, retry_after_s: float = 5) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"the cloud throttles us; again in {retry_after_s:g} s")


class LaunchFailed(CloudError):
    """The launch failed for another reason. Kerf tries again with back-off until the launch deadline."""


class InstanceNotFound(CloudError):
    """There is no such instance: for `delete` that means it is done."""


@dataclass(frozen=True)
class Instance:
    """A machine as the cloud sees it.

    `claim_uid` is the idempotency token it was created with, kept as a tag. `labels` are those its node will have.
    `sold_out` are offerings that were tried first and could not be had.
    """

    provider_id: str
    claim_uid: str
    claim_name: str
    offering: OfferingKey
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    capacity: Resources = NOTHING
    allocatable: Resources = NOTHING
    launched_s: float = 0
    is_interrupted: bool = False
    sold_out: tuple[OfferingKey, ...] = ()


class CloudProvider(Protocol):
    """A cloud. Every method may raise Throttled or CloudError; none blocks the event loop."""

    name: str

    @property
    def currency(self) -> str:
        """Of every price it states, e.g. `USD`."""
        ...

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """What can be bought for a pool, in name order, with current prices. Called before every plan: keep a cache."""
        ...

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch the cheapest available offering that the claim's requirements allow.

        Idempotent by `claim.uid`: a repeated call, also after a lost reply or a restart, returns the same instance.
        Raises InsufficientCapacity, NodeClassNotReady, LaunchFailed.
        """
        ...

    async def delete(self, provider_id: str) -> None:
        """Terminate. Returns when the request is accepted; raises InstanceNotFound once the instance is gone."""
        ...

    async def list_instances(self) -> Sequence[Instance]:
        """Every instance that Kerf has launched and that has not ended, by provider id."""
        ...
