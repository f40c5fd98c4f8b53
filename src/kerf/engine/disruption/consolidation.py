"""Under-used nodes go when all their pods fit on other nodes that are there: one node at a time, by deletion.

Price over disruption decides the order, as in Karpenter since 1.14. A pod is never moved to a node that is not yet
initialised, nor to one that is itself about to go; and a node with some members of a group stays.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.disruption.asked import Asked
from kerf.engine.disruption.balanced import Balance
from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate, local_volume, may_save
from kerf.engine.disruption.causes import (
    NoSaving,
    NothingCheaper,
    OnlyWhenEmpty,
    PodsFit,
    PriceUnknown,
    Unconsolidatable,
)
from kerf.engine.disruption.command import Command, deleting
from kerf.engine.disruption.disturbance import MILLION, of_node
from kerf.engine.disruption.relocation import Relocation
from kerf.engine.disruption.substitution import real
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import CONSOLIDATABLE
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY
from kerf.model.plan import Deletion


def propose(world: World, candidates: Sequence[Candidate], asked: Asked | None = None) -> Iterator[Command]:
    """Commands that each delete one node, the best first. Cost: `Relocation`, and nothing where no budget is open.

    Of those whose pods the others may hold by cpu and memory only those that are due are asked, with what was `asked`
    before.
    """
    allowance = Allowance(world.snapshot, UNDERUTILIZED)
    may_go = [each for each in candidates if may_save(each, allowance)]
    if not may_go:
        if asked is not None:
            asked.none_left()
        return
    others, balance = Relocation(world), Balance(world)
    # Whether there is room settles most, so it is asked first.
    may_go = [each for each in may_go if others.may_hold(each)]
    if may_go:
        groups = WholeGroups.of(world.snapshot)
        may_go = [each for each in may_go if groups.broken_by([each.node.name]) is None]
    priced = ((each, present_price(each.cluster_node, world.supply)) for each in may_go)
    eligible = [(each, saved) for each, saved in priced if saved > 0]
    if asked is not None:
        now_s, version = world.snapshot.taken_at_s, world.snapshot.version
        due = {each.node.name for each in asked.due([each for each, _ in eligible], version, now_s)}
        eligible = [each for each in eligible if each[0].node.name in due]
    for candidate, saved in sorted(eligible, key=lambda each: (-_gain(*each), each[0].node.name)):
        moved = others.of(candidate)
        if moved is None:
            if asked is not None:
                asked.refused(candidate)
            continue
        if not balance.allows([candidate], saved):
            continue
        cause = PodsFit(real(pod.key for pod in candidate.pods))
        deletion = Deletion(
            candidate.node.name, candidate.claim.name, candidate.pool.name, saved, UNDERUTILIZED, cause, moved
        )
        yield deleting(world, (deletion,))


def unconsolidatable(world: World, staying: Sequence[Candidate]) -> Iterator[Unconsolidatable]:
    """Why those with pods do not go to save money that may, their budgets open, and that no method takes.

    Cost: linear in candidates, and the groups of the fleet.
    """
    allowance, groups = Allowance(world.snapshot, UNDERUTILIZED), WholeGroups.of(world.snapshot)
    for each in staying:
        if not each.pods or each.pool.replicas is not None or not each.claim.is_true(CONSOLIDATABLE):
            continue
        local = local_volume(each.cluster_node, world.snapshot)
        cause: NoSaving
        if each.pool.disruption.policy == WHEN_EMPTY:
            cause = OnlyWhenEmpty(len(each.pods), Name(each.pool.name))
        elif local is not None:
            cause = local
        elif not may_save(each, allowance):
            # Its budgets speak for themselves.
            continue
        elif present_price(each.cluster_node, world.supply) <= 0:
            cause = PriceUnknown()
        else:
            cause = groups.broken_by([each.node.name]) or NothingCheaper()
        yield Unconsolidatable(Name(each.node.name), cause)


def _gain(candidate: Candidate, saved_micro: int) -> int:
    """Price over what the move disturbs, in millionths."""
    return saved_micro * MILLION // of_node(candidate.pods)
