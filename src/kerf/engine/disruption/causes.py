"""Why a node stays or goes, as values: each cause carries what it rests on. `engine.explain.disruption` has the words.

A decision never reads a sentence, and a changed sentence never changes a decision.
"""

from dataclasses import dataclass

from kerf.model.causes import Cause, Name, OverPriceCap
from kerf.model.plan import Deletion


@dataclass(frozen=True, slots=True)
class MarkedForDeletion:
    """The node has the taint of nodes that are about to go."""


@dataclass(frozen=True, slots=True)
class DoNotDisrupt:
    """An annotation of the node forbids it."""


@dataclass(frozen=True, slots=True)
class Nominated:
    """A pod that waits is to go on the node: by its scheduler's word, or by the present plan."""

    pod: str


@dataclass(frozen=True, slots=True)
class ProtectedPod:
    """An annotation of a pod on the node forbids it."""

    pod: str


@dataclass(frozen=True, slots=True)
class SeveralBudgets:
    """More than one PodDisruptionBudget covers the pod; the API then refuses every eviction."""

    pod: str


@dataclass(frozen=True, slots=True)
class BudgetPrevents:
    """The PodDisruptionBudget allows no eviction now."""

    namespace: str
    name: str


Obstacle = MarkedForDeletion | DoNotDisrupt | Nominated | ProtectedPod | SeveralBudgets | BudgetPrevents
"""What forbids to disrupt a node that is old enough to go."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A node that would be looked at, and what forbids it."""

    node: str
    cause: Obstacle


@dataclass(frozen=True, slots=True)
class NoNodeClaim:
    """The node is not Kerf's."""


@dataclass(frozen=True, slots=True)
class NoNodePool:
    """The pool that the claim names does not exist."""

    pool: str


@dataclass(frozen=True, slots=True)
class Starting:
    """The node is not initialised yet."""


@dataclass(frozen=True, slots=True)
class NeverConsolidated:
    """The pool's consolidateAfter is Never."""

    pool: str


@dataclass(frozen=True, slots=True)
class NotQuietYet:
    """A pod came or went less than consolidateAfter ago; `left_s` of it are left."""

    after_s: int
    left_s: float


@dataclass(frozen=True, slots=True)
class RunComes:
    """The node is kept ready for the next run of a CronJob, `namespace/name`."""

    cron_job: str


@dataclass(frozen=True, slots=True)
class PodComes:
    """The plan puts a pod on the node."""

    pod: str


@dataclass(frozen=True, slots=True)
class ReplacementOf:
    """The node was bought in place of another, whose pods are still to come."""

    node: str


@dataclass(frozen=True, slots=True)
class OnlyWhenEmpty:
    """So many pods are on the node, and the pool's policy takes empty nodes only."""

    pods: int
    pool: str


@dataclass(frozen=True, slots=True)
class UnreadableFloor:
    """The pool's floor is no number of nodes, so none of them goes; `stated` is what it says."""

    pool: str
    stated: str


@dataclass(frozen=True, slots=True)
class MinNodes:
    """The pool has no more nodes than it keeps."""

    pool: str
    nodes: int


@dataclass(frozen=True, slots=True)
class NodePoolBudget:
    """The pool's disruption budgets allow no further node to go for the reason."""

    pool: str
    reason: str


@dataclass(frozen=True, slots=True)
class NothingElseHasRoom:
    """At least one of so many pods on the node finds no place on other nodes."""

    pods: int


@dataclass(frozen=True, slots=True)
class PriceUnknown:
    """The market does not know what the node costs, so nothing would be saved."""


@dataclass(frozen=True, slots=True)
class OthersFirst:
    """Nothing keeps the node; the plan takes others first."""

    is_empty: bool


Keeping = (
    Obstacle
    | NoNodeClaim
    | NoNodePool
    | Starting
    | NeverConsolidated
    | NotQuietYet
    | RunComes
    | PodComes
    | ReplacementOf
    | OnlyWhenEmpty
    | UnreadableFloor
    | MinNodes
    | NodePoolBudget
    | NothingElseHasRoom
    | PriceUnknown
    | OthersFirst
)
"""Why a node stays."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The plan takes the node away."""

    deletion: Deletion


@dataclass(frozen=True, slots=True)
class Leaving:
    """The node or its claim is being deleted already."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The plan buys a node for its pods: the launch's name and instance type."""

    launch: str
    instance_type: str


Going = Deleted | Leaving | Replaced
"""Why a node goes."""


@dataclass(frozen=True, slots=True)
class EmptyFor(Cause):
    """Why a node goes: no pod that counts has run there for so long."""

    seconds: int


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
