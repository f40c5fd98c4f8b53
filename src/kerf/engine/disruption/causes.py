"""Why a node stays or goes, as values: each cause carries what it rests on. `engine.explain.disruption` has the words.

A decision never reads a sentence, and a changed sentence never changes a decision.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from kerf.model.causes import Cause, Name, OverPriceCap, PoolClosed, Quoted
from kerf.model.groups import GroupName
from kerf.model.plan import Deletion


@dataclass(frozen=True, slots=True)
class MarkedForDeletion(Cause):
    """The node has the taint of nodes that are about to go."""


@dataclass(frozen=True, slots=True)
class DoNotDisrupt(Cause):
    """An annotation of the node forbids it, or one of its NodeClaim."""

    is_of_claim: bool = False


@dataclass(frozen=True, slots=True)
class Nominated(Cause):
    """A pod that waits is to go on the node: by its scheduler's word, or by the present plan."""

    pod: Name


@dataclass(frozen=True, slots=True)
class ProtectedPod(Cause):
    """An annotation of a pod on the node forbids it; until when, None where it says `true`."""

    pod: Name
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class SeveralBudgets(Cause):
    """More than one PodDisruptionBudget covers the pod; the API then refuses every eviction."""

    pod: Name


@dataclass(frozen=True, slots=True)
class BudgetPrevents(Cause):
    """The PodDisruptionBudget allows no eviction now."""

    namespace: Name
    name: Name


@dataclass(frozen=True, slots=True)
class GroupStays(Cause):
    """A group of pods moves as a whole or not at all: `here` of its `there` pods are on the node, the rest on `others`.

    `missing` is one of these which may not go now. Else of `pool` so many `nodes` would have to go together, and its
    budgets allow fewer. Both are empty where the node would go to save money.
    """

    group: GroupName
    here: int
    there: int
    others: tuple[Name, ...]
    missing: Name | None = None
    pool: Name | None = None
    nodes: int = 0
    allowed: int = 0

    def because_of(self, missing: Name) -> "GroupStays":
        """The same where one of the other nodes may not go."""
        return replace(self, missing=missing)

    def for_want_of(self, pool: Name, nodes: int, allowed: int) -> "GroupStays":
        """The same where the budgets of a pool allow fewer nodes."""
        return replace(self, pool=pool, nodes=nodes, allowed=allowed)


@dataclass(frozen=True, slots=True)
class NoPlaceFound(Cause):
    """A look found no place for all of so many pods of a node that has drifted: no room, and nothing to buy."""

    pods: int


Obstacle = (
    MarkedForDeletion
    | DoNotDisrupt
    | Nominated
    | ProtectedPod
    | SeveralBudgets
    | BudgetPrevents
    | GroupStays
    | NoPlaceFound
)
"""What forbids to disrupt a node that is old enough to go."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A node that would be looked at, and what forbids it."""

    node: Name
    cause: Obstacle


@dataclass(frozen=True, slots=True)
class LocalVolume(Cause):
    """A pod on the node has a volume that is a part of the node, so it does not move to save money."""

    pod: Name
    volume: Name


@dataclass(frozen=True, slots=True)
class NoNodeClaim(Cause):
    """The node is not Kerf's."""


@dataclass(frozen=True, slots=True)
class NoNodePool(Cause):
    """The pool that the claim names does not exist."""

    pool: Name


@dataclass(frozen=True, slots=True)
class Starting(Cause):
    """The node is not initialised yet."""


@dataclass(frozen=True, slots=True)
class NeverConsolidated(Cause):
    """The pool's consolidateAfter is Never."""

    pool: Name


@dataclass(frozen=True, slots=True)
class NoneInItsPlace(Cause):
    """Its pool is static, or has no more than the `nodes` of its floor, and can have no node in its place while it is
    there; `obstacle` is what stands in the way."""

    pool: Name
    obstacle: Cause
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class OfStaticPool(Cause):
    """The pool states how many nodes it has, so none of them goes to save money."""

    pool: Name
    replicas: int


@dataclass(frozen=True, slots=True)
class NotQuietYet(Cause):
    """A pod came or went less than consolidateAfter ago; `left_s` of it are left."""

    after_s: int
    left_s: float


@dataclass(frozen=True, slots=True)
class RunComes(Cause):
    """The node is kept ready for the next run of a CronJob, `namespace/name`."""

    cron_job: Name


@dataclass(frozen=True, slots=True)
class HoldsBuffer(Cause):
    """The node has no pods that would have to move, and a CapacityBuffer, `namespace/name`, has its room there."""

    buffer: Name


@dataclass(frozen=True, slots=True)
class PodComes(Cause):
    """The plan puts a pod on the node."""

    pod: Name


@dataclass(frozen=True, slots=True)
class SuccessorComes(Cause):
    """The pod ends on a node that goes, and the node was bought for the pod that is made in its place."""

    pod: Name


@dataclass(frozen=True, slots=True)
class ReplacementOf(Cause):
    """The node was bought in place of another, whose pods are still to come."""

    node: Name


@dataclass(frozen=True, slots=True)
class OnlyWhenEmpty(Cause):
    """So many pods are on the node, and the pool's policy takes empty nodes only."""

    pods: int
    pool: Name


@dataclass(frozen=True, slots=True)
class UnreadableFloor(Cause):
    """The pool's floor is no number of nodes, so none of them goes; `stated` is what it says."""

    pool: Name
    stated: Quoted


@dataclass(frozen=True, slots=True)
class MinNodes(Cause):
    """The pool has no more nodes than it keeps."""

    pool: Name
    nodes: int


@dataclass(frozen=True, slots=True)
class InvalidSchedule(Cause):
    """A budget of the pool has a schedule that cannot be followed, or is never due, so none of its nodes goes."""

    pool: Name
    mistake: Quoted


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A budget of a pool that lets no node go; `index` is its place among those of its pool, None where it is alone.

    `schedule` is as a person wrote it, empty for one that counts at all hours.
    """

    index: int | None
    nodes: Quoted
    reasons: tuple[Name, ...]
    schedule: Quoted
    duration_s: int


@dataclass(frozen=True, slots=True)
class NodePoolBudget(Cause):
    """The pool's disruption budgets allow no further node to go for the reason.

    `opens_s` is when they let one go, None where no schedule says so; `going` nodes of it go already or are not ready,
    0 where these do not stand in the way. `budgets` are those that hold it, one after the other.
    """

    pool: Name
    reason: Name
    opens_s: float | None = None
    going: int = 0
    budgets: tuple[HeldBudget, ...] = ()


@dataclass(frozen=True, slots=True)
class NothingElseHasRoom(Cause):
    """At least one of so many pods on the node finds no place on other nodes.

    `is_spot`: the node is one, its pool buys spot nodes that cost less, and these may not take its place.
    """

    pods: int
    is_spot: bool = False


@dataclass(frozen=True, slots=True)
class NothingCheaper(Cause):
    """A look at the fleet found nothing that costs less than the node for its pods, or not by enough to move them."""


@dataclass(frozen=True, slots=True)
class PriceUnknown(Cause):
    """The market does not know what the node costs, so nothing would be saved."""


@dataclass(frozen=True, slots=True)
class OthersFirst(Cause):
    """Nothing keeps the node; the plan takes others first."""

    is_empty: bool


@dataclass(frozen=True, slots=True)
class DisturbsMore(Cause):
    """Its pods fit elsewhere, and by consolidationPolicy Balanced their move disturbs more than it saves."""

    pool: Name


@dataclass(frozen=True, slots=True)
class Drifts(Cause):
    """Why a node goes: it is not what its pool or its NodeClass says now; `reason` is that of its condition."""

    reason: Name


@dataclass(frozen=True, slots=True)
class Broken(Cause):
    """Why a node goes: one of its conditions has been what its provider does not tolerate, for too long."""

    condition: Name


@dataclass(frozen=True, slots=True)
class TooMuchBroken(Cause):
    """More than a fifth of the pool is broken, so something else is at fault, and none of it goes."""

    pool: Name
    broken: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Due(Cause):
    """The node is to go, whatever it costs; `holds` is what keeps it for now, None where its turn or a place for its
    pods is all that it waits for: then `closed` is why its own pool buys none."""

    why: Broken | Drifts
    holds: (
        Obstacle | TooMuchBroken | InvalidSchedule | NodePoolBudget | MinNodes | UnreadableFloor | NoneInItsPlace | None
    )
    closed: PoolClosed | None = None


NoSaving = OnlyWhenEmpty | LocalVolume | GroupStays | PriceUnknown | NothingCheaper
"""Why a node with pods that may go to save money does not."""


@dataclass(frozen=True, slots=True)
class Unconsolidatable:
    """Such a node, and the first of the reasons that applies."""

    node: Name
    cause: NoSaving


Keeping = (
    Obstacle
    | Due
    | TooMuchBroken
    | NoneInItsPlace
    | NoNodeClaim
    | NoNodePool
    | Starting
    | NeverConsolidated
    | OfStaticPool
    | NotQuietYet
    | RunComes
    | HoldsBuffer
    | PodComes
    | SuccessorComes
    | ReplacementOf
    | OnlyWhenEmpty
    | UnreadableFloor
    | MinNodes
    | InvalidSchedule
    | NodePoolBudget
    | LocalVolume
    | NothingElseHasRoom
    | PriceUnknown
    | DisturbsMore
    | OthersFirst
)
"""Why a node stays."""


class Lacks(StrEnum):
    """Why nodes that could take a node's pods are not bought."""

    SAVING = "saving"
    SPOT = "spot"
    SPOT_TYPES = "spot-types"
    AGAIN = "again"
    PLAN = "plan"
    TURNS = "turns"
    DISPLACED = "displaced"
    GROUP = "group"
    REST = "rest"
    WORTH = "worth"
    BALANCE = "balance"
    MARGIN = "margin"
    PRICE = "price"
    ROOM = "room"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Alternative(Cause):
    """What could be bought for a node's pods: so many of each type, what they cost an hour, the node now, and what
    stands against it. `nodes` are those that are there and have room for some of its pods: for all, without types."""

    pods: int
    types: tuple[tuple[Name, int], ...]
    price_micro: int
    now_micro: int
    lacks: Lacks
    nodes: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class NoAlternative(Cause):
    """Nothing that is there or could be bought takes the node's pods."""

    pods: int


@dataclass(frozen=True, slots=True)
class DeletedByPlan(Cause):
    """The plan takes the node away."""

    deletion: Deletion


@dataclass(frozen=True, slots=True)
class Leaving(Cause):
    """The node or its claim is being deleted already; `reason` is what its claim says of it, None where nothing."""

    reason: Name | None


@dataclass(frozen=True, slots=True)
class MissedDeadline(Cause):
    """The claim is given up: it had not reached a stage, by the condition of that name, when its time was over."""

    stage: Name
    at_s: float


@dataclass(frozen=True, slots=True)
class Replaced(Cause):
    """The node goes once the nodes of these claims are up, which were bought for its pods."""

    claims: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class HasExpired(Cause):
    """Why a node goes: its claim is as old as it states, `after_s`. No budget holds that back."""

    after_s: int


@dataclass(frozen=True, slots=True)
class Surplus(Cause):
    """Why a node goes: its static pool states fewer nodes than it has. No budget holds that back."""

    pool: Name
    replicas: int


Ending = HasExpired | Surplus
"""Why a node goes at once, whatever budgets say."""


Going = DeletedByPlan | Leaving | MissedDeadline | Replaced | HasExpired | Surplus
"""Why a node goes."""


@dataclass(frozen=True, slots=True)
class EmptyFor(Cause):
    """Why a node goes: no pod that counts has run there for so long."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Repacked(Cause):
    """Why nodes go: so many pods of so many nodes cost less elsewhere and on so many new ones, by that much an hour."""

    pods: int
    nodes: int
    bought: int
    saved_micro: int


@dataclass(frozen=True, slots=True)
class RepackedInTurn(Cause):
    """Why `going` nodes go: they are the first of so many whose pods cost less elsewhere and on so many new ones, by
    that much an hour once all have gone; budgets let no more go now."""

    pods: int
    nodes: int
    bought: int
    saved_micro: int
    going: int


@dataclass(frozen=True, slots=True)
class FloorCostsLess(Cause):
    """Why so many empty nodes go that pools keep: so many new ones in their place cost that much less an hour."""

    nodes: int
    bought: int
    saved_micro: int


@dataclass(frozen=True, slots=True)
class TakesPods(Cause):
    """Why a node is bought: so many pods come from these nodes, which go once it is up.

    `exchanges` are the models of GPU that they have there and get here, where these are others.
    """

    pods: int
    nodes: tuple[Name, ...]
    exchanges: tuple[tuple[Name, Name], ...] = ()


@dataclass(frozen=True, slots=True)
class PodsFit(Cause):
    """Why a node goes: its pods fit on other nodes."""

    pods: int


@dataclass(frozen=True, slots=True)
class ReplacesTooDear(Cause):
    """Why a node is bought: it is to take the pods of one above a price cap; it saves so much an hour after that."""

    node: Name
    pool: Name
    excess: OverPriceCap
    saved_micro: int
    currency: Name
