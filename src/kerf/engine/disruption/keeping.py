"""Why a node stays or goes, by the rules that the methods follow; computed when asked for."""

from collections.abc import Mapping
from functools import cached_property

from kerf.engine.disruption.balanced import Balance
from kerf.engine.disruption.budgets import Allowance, Census, holding
from kerf.engine.disruption.candidates import Candidate, awaited, candidate_of, local_volume, moving
from kerf.engine.disruption.causes import (
    Alternative,
    Broken,
    DeletedByPlan,
    DisturbsMore,
    Drifts,
    Due,
    Ending,
    Going,
    GroupStays,
    HoldsBuffer,
    InvalidSchedule,
    Keeping,
    Leaving,
    MinNodes,
    MissedDeadline,
    NeverConsolidated,
    NoAlternative,
    NodePoolBudget,
    NoneInItsPlace,
    NoNodeClaim,
    NoNodePool,
    NothingElseHasRoom,
    NotQuietYet,
    OfStaticPool,
    OnlyWhenEmpty,
    OthersFirst,
    PodComes,
    PriceUnknown,
    Replaced,
    ReplacementOf,
    RunComes,
    Starting,
    SuccessorComes,
    TooMuchBroken,
    UnreadableFloor,
)
from kerf.engine.disruption.ending import endings
from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.disruption.quiet import remaining_s
from kerf.engine.disruption.relocation import Relocation
from kerf.engine.disruption.repacking import nearest, unfilled_of
from kerf.engine.disruption.repair import too_many
from kerf.engine.disruption.staticdrift import in_its_place
from kerf.engine.disruption.successors import Successors, replaced
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.headroom.buffers import is_of_buffer
from kerf.engine.lifecycle import missed_deadline
from kerf.engine.supply.pricing import capacity_type_of, present_price
from kerf.engine.world import World
from kerf.model.bounds import MIN_NODES
from kerf.model.causes import Name, PoolClosed, Quoted
from kerf.model.instancetypes import SPOT
from kerf.model.nodeclaim import DISRUPTION_REASON, INITIALIZED, TRUE
from kerf.model.nodepool import DRIFTED, EMPTY, UNDERUTILIZED, UNHEALTHY, WHEN_EMPTY, NodePool
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.plan import Deletion, Plan
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterNode


class Fates:
    """What becomes of the nodes of one snapshot with one plan. What several nodes need is worked out once."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world, self._snapshot, self._plan = world, world.snapshot, plan
        self._in_place = dict[str, NoneInItsPlace | None]()
        """By pool what keeps a node of it from having another in its place."""
        self._held = dict[tuple[str, str], InvalidSchedule | NodePoolBudget | None]()
        """By pool and reason what its budgets say."""

    def going(self, node: ClusterNode) -> Going | None:
        """What takes the node away; None for a node that stays. Whatever a plan does, one that is too old goes."""
        ending = self._endings.get(node.name)
        if ending is not None:
            return ending
        deletion = self._deletions.get(node.name)
        if deletion is not None:
            return DeletedByPlan(deletion)
        claim = node.claim
        if claim is not None and claim.replaced_by and not claim.is_deleting:
            return Replaced(tuple(map(Name, claim.replaced_by)))
        if not node.is_deleting:
            return None
        missed = missed_deadline(claim) if claim is not None else None
        if missed is not None:
            return MissedDeadline(Name(missed.type), missed.since_s)
        reason = claim.condition(DISRUPTION_REASON) if claim is not None else None
        return Leaving(Name(reason.reason)) if reason is not None and reason.status == TRUE else Leaving(None)

    def keeping(self, node: ClusterNode) -> Keeping:
        """Why a node stays that `going` says nothing of: the first of the rules that applies."""
        if node.claim is None:
            return NoNodeClaim()
        pool = self._snapshot.pool(node.claim.node_pool)
        if pool is None:
            return NoNodePool(Name(node.claim.node_pool))
        if not node.claim.is_true(INITIALIZED) or node.node is None:
            return Starting()
        due = self._due(node, pool)
        if due is not None:
            return due
        if pool.replicas is not None:
            return OfStaticPool(Name(pool.name), pool.replicas)
        quiet_s = remaining_s(node.claim, pool, self._snapshot.taken_at_s)
        if quiet_s is None:
            return NeverConsolidated(Name(pool.name))
        if quiet_s > 0:
            return NotQuietYet(pool.disruption.consolidate_after_s or 0, quiet_s)
        found = self._obstacles.of(node) or self._coming_to(node) or self._buffer_on(node)
        return found or self._of_pool(node, pool) or self._of_pods(node)

    def _due(self, node: ClusterNode, pool: NodePool) -> Due | None:
        """What keeps a node that is broken or has drifted; None for any other."""
        candidate = candidate_of(node, self._snapshot)
        if candidate is None or node.node is None or not (candidate.unhealthy or candidate.drift):
            return None
        is_forced = candidate.is_forced
        obstacle = self._obstacles.of_empty(node) if is_forced else self._obstacles.of(node)
        if candidate.unhealthy:
            held = too_many(self._snapshot, self._world.monitored)
            much = next((each for each in held if each.pool == pool.name), None)
            broken = None if much is None else TooMuchBroken(Name(pool.name), much.broken, much.nodes)
            why = Broken(Name(candidate.unhealthy))
            return Due(why, obstacle or broken or self._of_stated(pool, UNHEALTHY))
        held_by = obstacle or self._group_on(candidate) or self._of_stated(pool, DRIFTED) or self._of_limits(pool)
        asks = held_by is None and candidate.pods
        problem = dict(self._world.supply.pool_problems).get(pool.name) if asks else None
        closed = None if problem is None else PoolClosed(Name(pool.name), problem)
        return Due(Drifts(Name(candidate.drift)), held_by, closed)

    def _of_limits(self, pool: NodePool) -> NoneInItsPlace | None:
        """What keeps a node from having another in its place where one has to come first: of a static pool, or of one
        that has no more nodes than its floor."""
        if pool.replicas is None and self._census.spare(pool) != 0:
            return None
        if pool.name not in self._in_place:
            self._in_place[pool.name] = in_its_place(self._world, pool)
        return self._in_place[pool.name]

    def _group_on(self, candidate: Candidate) -> GroupStays | None:
        """The group whose other nodes do not go with one that has drifted."""
        allowance = Allowance(self._snapshot, DRIFTED, are_replaced=True)
        return self._groups.together(candidate, self._drifted, allowance).stays

    @cached_property
    def _drifted(self) -> Mapping[str, Candidate]:
        """The nodes that have drifted and may go, by name."""
        found = (candidate_of(each, self._snapshot) for each in self._snapshot.nodes)
        return {each.node.name: each for each in found if each is not None and self._may_drift(each)}

    def _may_drift(self, candidate: Candidate) -> bool:
        held = self._obstacles.of_empty(candidate.cluster_node)
        if not candidate.is_forced:
            held = held or self._obstacles.of(candidate.cluster_node)
        return bool(candidate.drift) and held is None

    def _coming_to(self, node: ClusterNode) -> RunComes | PodComes | None:
        pod = self._coming.get(node.name) or awaited(node, self._waiting, self._snapshot)
        if not pod:
            return None
        kept = Placeholder.of(pod)
        if kept is not None and kept.keeper == Keeper.RUN:
            return RunComes(Name(kept.name))
        return PodComes(Name(pod))

    def _buffer_on(self, node: ClusterNode) -> HoldsBuffer | None:
        kept = Placeholder.of(self._buffers.get(node.name, ""))
        return None if kept is None or moving(node) else HoldsBuffer(Name(kept.name))

    def _of_pool(self, node: ClusterNode, pool: NodePool) -> Keeping | None:
        """What the pool's settings say."""
        pods = len(moving(node))
        if pods and pool.disruption.policy == WHEN_EMPTY:
            return OnlyWhenEmpty(pods, Name(pool.name))
        return self._of_budgets(pool, UNDERUTILIZED if pods else EMPTY)

    def _of_budgets(
        self, pool: NodePool, reason: str
    ) -> UnreadableFloor | MinNodes | InvalidSchedule | NodePoolBudget | None:
        """Whether the pool's floor or its budgets keep a node that would go for the reason, with none in its place."""
        if self._census.spare(pool) == 0 and not pool.bounds.invalid_floor:
            return MinNodes(Name(pool.name), pool.bounds.min_nodes)
        return self._of_stated(pool, reason)

    def _of_stated(self, pool: NodePool, reason: str) -> UnreadableFloor | InvalidSchedule | NodePoolBudget | None:
        """Whether its budgets keep a node that would go for the reason, or a floor that cannot be read."""
        if pool.bounds.invalid_floor:
            return UnreadableFloor(Name(pool.name), Quoted(pool.stated_annotations.get(MIN_NODES, "")))
        if (pool.name, reason) not in self._held:
            # A schedule that never opens is followed for a hundred times.
            self._held[pool.name, reason] = holding(self._snapshot, pool, reason)
        return self._held[pool.name, reason]

    def _of_pods(self, node: ClusterNode) -> Keeping:
        """What its pods and its price say, where all else lets it go."""
        candidate, pods = candidate_of(node, self._snapshot), len(moving(node))
        if not pods:
            ending = self._successors.awaited_by(candidate) if candidate is not None else ""
            if ending:
                return SuccessorComes(Name(ending))
            old = replaced(candidate, self._snapshot) if candidate is not None else ""
            return ReplacementOf(Name(old)) if old else OthersFirst(is_empty=True)
        group = self._groups.broken_by([node.name])
        if group is not None:
            return group
        local = local_volume(node, self._snapshot)
        if local is not None:
            return local
        if candidate is not None and self._relocation.of(candidate) is None:
            return NothingElseHasRoom(pods, self._is_spot_kept(node, candidate.pool))
        price = present_price(node, self._world.supply)
        if price <= 0:
            return PriceUnknown()
        if candidate is not None and not self._balance.allows([candidate], price):
            return DisturbsMore(Name(candidate.pool.name))
        return OthersFirst(is_empty=False)

    def _is_spot_kept(self, node: ClusterNode, pool: NodePool) -> bool:
        """Whether it is a spot node in whose place its pool would buy one that costs less if that was allowed."""
        if self._world.replaces_spot or capacity_type_of(node) != SPOT:
            return False
        price = present_price(node, self._world.supply)
        offered = self._world.supply.by_pool.get(pool.name, ())
        return any(o.capacity_type == SPOT and o.price_micro < price for each in offered for o in each.offerings)

    def alternative(self, node: ClusterNode) -> Alternative | NoAlternative | None:
        """What would take the pods of a node that stays because they fit on no other; None for any other node.

        Cost: two decisions for its pods, and once the bound of all that may go.
        """
        candidate = candidate_of(node, self._snapshot)
        if candidate is None or self.going(node) is not None:
            return None
        if not isinstance(self.keeping(node), NothingElseHasRoom):
            return None
        return nearest(self._world, candidate, self._unfilled)

    @cached_property
    def _unfilled(self) -> float:
        return unfilled_of(self._world)

    @cached_property
    def _endings(self) -> Mapping[str, Ending]:
        return endings(self._snapshot)

    @cached_property
    def _balance(self) -> Balance:
        return Balance(self._world)

    @cached_property
    def _deletions(self) -> Mapping[str, Deletion]:
        return {deletion.node: deletion for deletion in self._plan.deletions}

    @cached_property
    def _coming(self) -> Mapping[str, str]:
        """The first pod that the plan puts on each node."""
        placed = ((each.node, each.pod.pod) for each in reversed(self._plan.placements))
        return {node: pod for node, pod in placed if not is_of_buffer(pod)}

    @cached_property
    def _waiting(self) -> frozenset[str]:
        return frozenset(pod.key for pod in self._snapshot.pending if REJECTED not in pod.annotations)

    @cached_property
    def _buffers(self) -> Mapping[str, str]:
        """The first pod of a CapacityBuffer that the plan puts on each node."""
        placed = ((each.node, each.pod.pod) for each in reversed(self._plan.placements))
        return {node: pod for node, pod in placed if is_of_buffer(pod)}

    @cached_property
    def _groups(self) -> WholeGroups:
        return WholeGroups.of(self._snapshot)

    @cached_property
    def _obstacles(self) -> Obstacles:
        return Obstacles(self._snapshot)

    @cached_property
    def _successors(self) -> Successors:
        return Successors(self._snapshot)

    @cached_property
    def _census(self) -> Census:
        return Census.of(self._snapshot)

    @cached_property
    def _relocation(self) -> Relocation:
        return Relocation(self._world)
