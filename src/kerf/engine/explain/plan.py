"""A decision in words: every launch and refusal with its why, and what an operator should know beside it."""

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import replace
from functools import partial

from kerf.engine.decide import decide
from kerf.engine.decision import Decision, Refusal
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.hints.groups import with_limits_for_all
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.launches import why_launched, why_relabelled
from kerf.engine.explain.notes import estimates, fractions, free, notes, pool_notes
from kerf.engine.explain.preferences import dropped_notes
from kerf.engine.explain.refusals import Telling
from kerf.engine.explain.room import decision_notes
from kerf.engine.options import DEFAULT, Options
from kerf.engine.world import World
from kerf.model.causes import OfPool
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan, Unplaced
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot

NOT_ALL_TRIED = "too much is refused to try a hint for all of it: some reasons stand without one, or without its patch"


def plan(snapshot: ClusterSnapshot, market: Market, options: Options = DEFAULT) -> Plan:
    """What to do for the pending pods of a snapshot, and why."""
    return explain(decide(World(snapshot, market), options))


def _unreported(_: float) -> None:
    return


def explain(
    decision: Decision,
    tries: Tries | None = None,
    asked: Container[str] = (),
    tell: Callable[[float], None] = _unreported,
) -> Plan:
    """The same facts with their words.

    Hints are tried, at most so often as `tries` says; that is where the time goes. They are tried for the pods that are
    `asked` about first, by key, then for those that come first in the plan; each namespace has its share of them.
    `tell` gets how much of the pods without a place is explained, 0 to 1.
    """
    tries = tries or Tries()
    unplaced = _unplaced(decision, tries, asked, tell)
    tried = (NOT_ALL_TRIED,) if tries.refusals else ()
    return Plan(
        decision.options.strategy,
        decision.cost,
        decision.gpus,
        tuple(replace(launch, why=why_launched(launch)) for launch in decision.launches),
        placements=decision.placements,
        unplaced=unplaced,
        relabels=tuple(replace(each, why=why_relabelled(each)) for each in decision.relabels),
        notes=(*caveats(decision, decision.pending), *tried),
        unmet_floors=_unmet(decision),
        admissions=decision.admissions,
        evictions=decision.evictions,
    )


def caveats(decision: Decision, pods: Sequence[Pod]) -> tuple[str, ...]:
    """What an operator should know beside what was decided for these of the pods that wait."""
    world, keys = decision.world, {pod.key for pod in pods}
    launches = decision.launches
    if len(keys) < len(decision.pending):
        launches = tuple(each for each in launches if any(placed.pod in keys for placed in each.pods))
    return (
        *dict.fromkeys(map(cause_text, world.supply.notes)),
        *decision_notes(decision.notes),
        *dropped_notes(decision, pods),
        *(why for _, why in _unmet(decision)),
        *notes(world.snapshot, world.market, pods),
        *estimates(launches),
        *free(launches),
        *fractions(launches),
    )


def pool_caveats(decision: Decision, names: Collection[str]) -> tuple[str, ...]:
    """What an operator should know of these pools, whatever waits for them."""
    world = decision.world
    pools = tuple(pool for pool in world.snapshot.node_pools if pool.name in names)
    of_supply = (note for note in world.supply.notes if isinstance(note, OfPool) and note.pool in names)
    return (
        *dict.fromkeys(map(cause_text, of_supply)),
        *(why for pool, why in _unmet(decision) if pool in names),
        *pool_notes(replace(world.snapshot, node_pools=pools), world.market, decision.pending),
    )


def _unmet(decision: Decision) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(cause.pool), cause_text(cause)) for cause in decision.unmet_floors))


def _unplaced(
    decision: Decision, tries: Tries, asked: Container[str], tell: Callable[[float], None]
) -> tuple[Unplaced, ...]:
    """One entry a pod, by its key. Each namespace has its share of the tries, and what others left of theirs."""
    telling = Telling(tries, decision.world.snapshot.cron_job_keys, decision)
    turns = _turns(decision.refusals, asked)
    tries.share(len(turns))
    everyone = telling.everyone(decision.everyone)
    found: list[Unplaced] = []
    done, pods = 0, sum(len(refusal.pods) for refusal in decision.refusals)
    for number, refusals in enumerate(turns):
        tries.share(len(turns) - number - 1)
        for refusal in refusals:
            found += telling.unplaced(refusal)
            done += len(refusal.pods)
            tell(done / pods)
    if everyone:
        unbounded = replace(decision.options, with_bound=False)
        world, pools = decision.world, {pool.name: pool for pool in decision.world.snapshot.node_pools}
        again = partial(_again, world, unbounded)
        expected = max(len(world.snapshot.pending), decision.work)
        found = list(with_limits_for_all(found, everyone, pools, again, tries, expected))
    return tuple(sorted(found, key=lambda entry: entry.pod))


def _turns(refusals: Sequence[Refusal], asked: Container[str]) -> list[list[Refusal]]:
    """Those of each namespace in their order: first of the namespaces that are asked about, then of those with few."""
    found: dict[str, list[Refusal]] = {}
    for refusal in sorted(refusals, key=partial(_order, asked)):
        found.setdefault(refusal.pods[0].namespace if refusal.pods else "", []).append(refusal)
    # What these leave over goes to those with many.
    return sorted(found.values(), key=lambda held: (_order(asked, held[0])[0], len(held), _order(asked, held[0])[1]))


def _order(asked: Container[str], refusal: Refusal) -> tuple[bool, str]:
    keys = [pod.key for pod in refusal.pods]
    return not any(key in asked for key in keys), min(keys, default="")


def _again(world: World, options: Options, pool: NodePool) -> Decision:
    return decide(world.with_pools((pool,)), options)
