"""Figures of single decisions on clusters in which one of them was quadratic: CPU seconds, and how they grow.

Run as `python -m benchmarks.bench_decisions SET [SIZE ...]`: a process of its own for each set, which prints each
figure as a line of JSON once it is known. A `_growth` is the time of twice the size over the time of the size: 2 for
what is linear, 4 for what is quadratic.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from benchmarks import clusters, diverse, judging
from benchmarks.bench_openb import loop_s
from kerf.catalog import aws
from kerf.catalog.select import AWS, load_market
from kerf.cli.collector import collect_seldom
from kerf.engine.bounding import bounded
from kerf.engine.buy.bound import proven
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.plan import explain
from kerf.engine.explain.plan import plan as provisioned
from kerf.engine.options import Options
from kerf.engine.place.shapes import Readings, group, queue_order
from kerf.engine.place.trial import Trial
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE
from kerf.model.instancetypes import MICRO
from kerf.model.market import Market
from kerf.model.policies import FIRST_FIT
from kerf.model.snapshot import ClusterSnapshot
from kerf.verify.check import of_plan

Figures = Iterator[tuple[str, float]]
Decide = Callable[[ClusterSnapshot], object]
_RUNS, _ENOUGH_S = 3, 5.0
_OPTIONS = Options(with_bound=False)
_AS_KARPENTER = Options(FIRST_FIT, with_bound=False)


def disruption(snapshot: ClusterSnapshot, market: Market = clusters.MARKET, *, repacks: bool = True) -> None:
    """One pass over all nodes: each method is asked, and none has a command."""
    found, _ = candidates(snapshot)
    command, _ = first_command(World(snapshot, market), found, tuple, repacks=repacks)
    assert command is None, "a cluster that is not settled measures the way to its first command only"


def disruption_on_catalogue(snapshot: ClusterSnapshot) -> None:
    """The same where every type of AWS is for sale, and nothing is known yet of what pools offer: prices are new. As in
    most passes, cheaper nodes for the whole fleet are not looked for."""
    disruption(snapshot, replace(load_market(None, AWS)), repacks=False)


def provision(snapshot: ClusterSnapshot) -> None:
    """One plan for the pods that wait, as the controller makes it."""
    plan = provisioned(snapshot, clusters.MARKET, _OPTIONS)
    assert plan.unplaced


@cache
def aws_market() -> Market:
    """The catalogue that `kerf plan` takes where nothing else is said."""
    return aws.load()


def decided(snapshot: ClusterSnapshot) -> Decision:
    """One decision on the AWS catalogue, without a word of it."""
    made = decide(World(snapshot, aws_market()), _OPTIONS)
    assert made.refusals
    return made


def words_s(snapshot: ClusterSnapshot, tries: Tries | None = None) -> float:
    """CPU seconds for the words of a decision on the AWS catalogue, once: a second time some are known."""
    made = decided(snapshot)
    start = time.process_time()
    explain(made, tries)
    return time.process_time() - start


def seconds(measured: Decide, snapshot: ClusterSnapshot) -> float:
    """The best of three in CPU seconds; the first alone where it takes long."""
    best, spent = float("inf"), 0.0
    for _ in range(_RUNS):
        # What a decision has worked out about a snapshot is kept on it, and every cluster is new to the controller.
        fresh = replace(snapshot)
        start = time.process_time()
        measured(fresh)
        taken = time.process_time() - start
        best, spent = min(best, taken), spent + taken
        if spent > _ENOUGH_S:
            break
    return best


def growth(measured: Decide, made: Callable[[int], ClusterSnapshot], size: int) -> float:
    """The time of twice the size over the time of the size."""
    single = seconds(measured, made(size))
    return seconds(measured, made(2 * size)) / single


def budget(size: int = 1_000, small: int = 250, large: int = 5_000) -> Figures:
    """A pass over pools whose budget is 0."""
    for nodes in (small, size):
        yield f"disruption_budget_{nodes}_s", seconds(disruption, clusters.without_budget(nodes))
    yield "disruption_budget_growth", growth(disruption, clusters.without_budget, size)
    yield f"disruption_budget_{large}_s", seconds(disruption, clusters.without_budget(large))


def waiting(shapes: int = 400, small: int = 1_000) -> Figures:
    """A pass while pods wait: of five shapes on `shapes` nodes, and two small ones for each of `small` nodes."""

    def with_shapes(nodes: int) -> ClusterSnapshot:
        return clusters.with_waiting(nodes, clusters.waiting_shapes())

    def with_small(nodes: int) -> ClusterSnapshot:
        return clusters.with_waiting(nodes, clusters.waiting_small(2 * nodes))

    yield f"disruption_waiting_{shapes}_s", seconds(disruption, with_shapes(shapes))
    yield f"disruption_catalogue_{shapes}_s", seconds(disruption_on_catalogue, with_shapes(shapes))
    yield "disruption_waiting_growth", growth(disruption, with_shapes, shapes)
    yield f"disruption_small_{small}_s", seconds(disruption, with_small(small))
    yield "disruption_small_growth", growth(disruption, with_small, small)


def groups(size: int = 80, large: int = 400) -> Figures:
    """A plan for groups of which a limit allows half."""
    for count in (size, large):
        yield f"groups_{count}_loops", seconds(provision, clusters.groups(count)) / loop_s()
        if count == size:
            yield f"groups_equal_{count}_loops", seconds(provision, clusters.groups(count, equal=True)) / loop_s()
    yield "groups_growth", growth(provision, clusters.groups, large // 2)


def catalogue(size: int = 80, cards: int = 400, related: int = 60, shapes: int = 50, nodes: int = 100) -> Figures:
    """The same on all types that AWS sells: a plan for groups that ask cpu alone, one for groups with a GPU a pod, one
    for groups that a limit refuses and whose pods go by each other, and one for shapes with a label of their own each.

    Deciding and putting it into words are measured apart: the controller acts once it has decided.
    """

    def with_cards(count: int) -> ClusterSnapshot:
        return clusters.groups(count, gpu=1)

    yield f"groups_{size}_catalogue_loops", seconds(decided, clusters.groups(size)) / loop_s()
    yield f"groups_{size}_catalogue_words_loops", words_s(clusters.groups(size)) / loop_s()
    yield f"groups_{cards}_gpu_catalogue_loops", seconds(decided, with_cards(cards)) / loop_s()
    yield f"groups_{cards}_gpu_catalogue_words_loops", words_s(with_cards(cards)) / loop_s()
    yield "groups_gpu_catalogue_growth", growth(decided, with_cards, cards)
    yield f"groups_related_{related}_catalogue_loops", seconds(decided, clusters.related_groups(related)) / loop_s()
    labelled = clusters.refused_labels(nodes, shapes)
    yield f"refused_labels_{shapes}_catalogue_s", seconds(decided, labelled)
    yield f"refused_labels_{shapes}_catalogue_words_s", words_s(labelled)


def refused(shapes: int = 400, nodes: int = 1_000) -> Figures:
    """A plan for pods that nothing can hold, each of another shape."""
    yield f"refused_{shapes}_loops", seconds(provision, clusters.refused(nodes, shapes)) / loop_s()
    yield f"refused_labels_{shapes}_loops", seconds(provision, clusters.refused_labels(nodes, shapes)) / loop_s()
    yield "refused_growth", growth(provision, lambda count: clusters.refused(nodes, count), shapes)
    yield "refused_nodes_growth", growth(provision, lambda count: clusters.refused(count, shapes), nodes)


def refused_gpu(shapes: int = 400, nodes: int = 1_000) -> Figures:
    """A plan for pods whose cards nothing can give, each of another shape."""
    yield f"refused_gpu_{shapes}_loops", seconds(provision, clusters.refused_gpu(nodes, shapes)) / loop_s()
    yield "refused_gpu_growth", growth(provision, lambda count: clusters.refused_gpu(nodes, count), shapes)
    yield "refused_gpu_nodes_growth", growth(provision, lambda count: clusters.refused_gpu(count, shapes), nodes)


def hints(shapes: int = 400, nodes: int = 1_000, equal: int = 2_000, lonely: int = 20, fleets: int = 8) -> Figures:
    """Plans whose words try many changes: for pods that go by others and are refused, for a limit that allows half of
    equal pods, and for groups that another pod keeps off, on the AWS catalogue; means of `fleets` with few pods."""
    yield f"refused_spread_{shapes}_loops", seconds(provision, clusters.refused_spread(nodes, shapes)) / loop_s()
    yield f"refused_apart_{shapes}_loops", seconds(provision, clusters.refused_apart(nodes, shapes)) / loop_s()
    yield f"refused_alone_{shapes}_loops", seconds(provision, clusters.refused_alone(nodes, shapes)) / loop_s()
    yield f"half_limited_{equal}_s", seconds(provision, clusters.half_limited(equal))
    yield "half_limited_growth", growth(provision, clusters.half_limited, equal // 2)
    yield f"kept_off_{lonely}_catalogue_words_s", words_s(clusters.kept_off(lonely))
    yield f"keeping_off_{lonely}_catalogue_words_s", words_s(clusters.keeping_off(lonely), Tries.for_all())
    yield from few_limited(fleets)


def few_limited(fleets: int) -> Figures:
    """Plans and their words for few pods that go by others, of which a limit allows half, on the AWS catalogue."""
    decisions_s = explained_s = 0.0
    refused = 0
    for seed in range(fleets):
        start = time.process_time()
        made = decided(clusters.few_limited(seed))
        middle = time.process_time()
        explain(made, Tries.for_all())
        decisions_s, explained_s = decisions_s + middle - start, explained_s + time.process_time() - middle
        refused += sum(len(each.pods) for each in made.refusals)
    yield "few_limited_loops", decisions_s / fleets / loop_s()
    yield "few_limited_words_loops", explained_s / fleets / loop_s()
    yield "few_limited_refused", refused / fleets


def spread(nodes: int = 5_000, pods: int = 10_000, shapes: int = 200) -> Figures:
    """Waiting pods with zonal spread put on nodes there are, beside twenty running pods a node: the trial alone."""

    def placing(snapshot: ClusterSnapshot) -> None:
        trial, read = Trial(snapshot, clusters.MARKET), Readings.of(snapshot)
        placed = sum(len(trial.place(shape)[0]) for shape in group(snapshot.pending, read))
        assert placed == len(snapshot.pending), f"{placed} placed"

    def with_nodes(count: int) -> ClusterSnapshot:
        return clusters.spread(count, pods * count // nodes, shapes)

    def with_hosts(count: int) -> ClusterSnapshot:
        return clusters.spread(count, pods * count // nodes, shapes, HOSTNAME)

    yield f"spread_{nodes}_s", seconds(placing, with_nodes(nodes))
    yield "spread_growth", growth(placing, with_nodes, nodes // 2)
    yield f"spread_hosts_{nodes}_s", seconds(placing, with_hosts(nodes))
    yield "spread_hosts_growth", growth(placing, with_hosts, nodes // 2)


def zonal(nodes: int = 5_000, shapes: int = 200, types: int = 16) -> Figures:
    """A plan for two pods a node with zonal spread, beside twenty running ones: where nodes have room, and where all
    must be bought for. Memory is the most of the process beyond what it had before there was a cluster."""
    before, market = _peak_mib(), clusters.many_types(types)
    snapshot = clusters.spread(nodes, 2 * nodes, shapes)
    for name, held in (("zonal", snapshot), ("zonal_bought", clusters.without_room(snapshot))):
        start = time.process_time()
        made = decide(World(held, market), _OPTIONS)
        yield f"{name}_{nodes}_s", time.process_time() - start
        assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"
        assert bool(made.launches) == (held is not snapshot), f"{len(made.launches)} launches"
    yield f"zonal_{nodes}_mib", _peak_mib() - before


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def different(pods: int = 10_000, types: int = 400) -> Figures:
    """A plan for pods with zonal spread of which no two are equal, on an empty cluster."""
    market = diverse.types(types)

    def planned(snapshot: ClusterSnapshot) -> None:
        made = decide(World(snapshot, market), _OPTIONS)
        assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"

    yield f"different_{pods}_s", seconds(planned, clusters.different(pods))
    yield "different_growth", growth(planned, clusters.different, pods // 4)


def verified(pods: int = 10_000, types: int = 400) -> Figures:
    """What the second reader takes of a decision in percent, and how that grows: pods with zonal spread of which no two
    are equal."""
    market = diverse.types(types)
    made: dict[int, tuple[Decision, float]] = {}
    for size in (pods // 2, pods):
        start = time.process_time()
        made[size] = decide(World(clusters.different(size), market), _OPTIONS), 0.0
        made[size] = made[size][0], time.process_time() - start
    taken = {size: min(_verified_s(decision) for _ in range(_RUNS)) for size, (decision, _) in made.items()}
    yield "verified_percent", 100 * taken[pods] / made[pods][1]
    yield "verified_growth", taken[pods] / taken[pods // 2]


def _verified_s(decision: Decision) -> float:
    """CPU seconds for the rules of one decision."""
    start = time.process_time()
    assert not of_plan(decision)
    return time.process_time() - start


def alone(pods: int = 10_000, few: int = 2_000, types: int = 400, pairs: int = 800) -> Figures:
    """A plan for pods that each keep others of their own workload off their node, and there are no others; and one for
    pods without labels that each keep off another pod."""
    market = diverse.types(types)

    def planned(snapshot: ClusterSnapshot) -> None:
        made = decide(World(snapshot, market), _OPTIONS)
        assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"

    yield f"alone_{few}_s", seconds(planned, clusters.alone(few))
    yield f"alone_{pods}_s", seconds(planned, clusters.alone(pods))
    yield "alone_growth", growth(planned, clusters.alone, few)
    yield f"pairs_{pairs}_s", seconds(planned, clusters.pairs(pairs))
    yield "pairs_growth", growth(planned, clusters.pairs, pairs)


def labels(pods: int = 1_000, types: int = 16) -> Figures:
    """A plan for pods of which each asks for another label, and one for pods of which each asks for another value."""
    market = diverse.types(types)

    def planned(snapshot: ClusterSnapshot) -> None:
        made = decide(World(snapshot, market), _OPTIONS)
        assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"

    for name, made in (("forbidding", clusters.forbidding), ("tenants", clusters.of_tenants)):
        yield f"{name}_{pods}_s", seconds(planned, made(pods))
        yield f"{name}_growth", growth(planned, made, pods)


def strangers(pods: int = 1_600, pairs: int = 2_000, types: int = 16) -> Figures:
    """A plan for pods of which each keeps off all others: on nodes, and in zones, where few get a place; with words,
    in which each has its reason. Then for pods that are spread with all others, or near them, or would rather be
    near or away. And one for pairs of pods that must share a node."""
    market = diverse.types(types)

    def planned(snapshot: ClusterSnapshot) -> None:
        provisioned(snapshot, market, _OPTIONS)

    sets = (
        ("strangers", clusters.strangers, pods),
        ("strangers_zonal", partial(clusters.strangers, key=ZONE), pods),
        ("strange_namespaces", clusters.strange_namespaces, pods),
        ("strangers_spread", partial(clusters.beside_strangers, asked="spread"), pods),
        ("strangers_even", partial(clusters.beside_strangers, asked="even"), pods),
        ("strangers_near", partial(clusters.beside_strangers, asked="near"), pods),
        ("strangers_rather_near", partial(clusters.beside_strangers, asked="rather_near"), pods),
        ("strangers_rather_away", partial(clusters.beside_strangers, asked="rather_away"), pods),
        ("couples", clusters.couples, pairs),
    )
    for name, made, count in sets:
        yield f"{name}_{count}_loops", seconds(planned, made(count)) / loop_s()
        yield f"{name}_growth", growth(planned, made, count)


def preferences(pods: int = 4_000, types: int = 400, few: int = 400) -> Figures:
    """A plan for pods of Karpenter's own benchmark: one preference that all can have, one that none but the first can,
    and one that costs each of them a node of its own.

    For a few of them its own rule is asked, too: nodes, dollars and preferences lost are parts of what that comes to.
    """
    market = diverse.types(types)

    def decided(snapshot: ClusterSnapshot, options: Options = _OPTIONS) -> Decision:
        made = decide(World(snapshot, market), options)
        held = {launch.offering.zone for launch in made.launches}
        assert len(snapshot.pending) == len(made.launches), f"{len(made.launches)} launches"
        assert held == {diverse.PREFERRED_ZONE}, f"in {held}"
        return made

    yield f"preferences_{pods}_s", seconds(decided, diverse.preferring(pods))
    yield "preferences_growth", growth(decided, diverse.preferring, pods // 2)
    ours, theirs = (_worth(decided(diverse.preferring(few), each)) for each in (_OPTIONS, _AS_KARPENTER))
    for name, mine, other in zip(("nodes", "usd", "dropped"), ours, theirs, strict=True):
        yield f"preferences_{name}_part", mine / other


def _worth(made: Decision) -> tuple[int, int, int]:
    """Nodes, price in micro-units an hour, and preferences that were lost."""
    lost = sum(len(dropped) for dropped in made.dropped.values())
    return len(made.launches), sum(launch.price_micro for launch in made.launches), lost


def diversity(pods: int = 10_000, types: int = 400) -> Figures:
    """A plan for Karpenter's own diverse workload on an empty cluster, and the bound of it; once, for it takes long.

    Every pod has a place, and an independent judge finds no pod that could not be bound there.
    """
    snapshot, market = diverse.diverse(pods), diverse.types(types)
    start = time.process_time()
    made = decide(World(snapshot, market), _OPTIONS)
    yield f"diverse_{pods}_plan_s", time.process_time() - start
    yield f"diverse_{pods}_nodes", len(made.launches)
    yield f"diverse_{pods}_usd_h", sum(launch.price_micro for launch in made.launches) / MICRO
    assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"
    wrong = judging.wrong(made.launches, sorted(snapshot.pending, key=queue_order), market)
    assert not wrong, f"{len(wrong)} cannot be bound, such as {wrong[0]}"
    start = time.process_time()
    bounded(made)
    yield f"diverse_{pods}_bound_s", time.process_time() - start


def bounds(shapes: int = 500, copies: int = 10) -> Figures:
    """The lower bound for so many shapes with a slice each, of 20 sizes and each of another, on the AWS catalogue."""

    def proved(snapshot: ClusterSnapshot) -> object:
        return proven(group(snapshot.pending), World(snapshot, aws_market()).supply.available)

    for name, sizes in (("", 20), ("sizes_", shapes)):
        taken_s = seconds(proved, clusters.slices(shapes, copies, sizes))
        yield f"bounds_{shapes}_{name}catalogue_loops", taken_s / loop_s()


SETS: dict[str, Callable[..., Figures]] = {
    "budget": budget,
    "waiting": waiting,
    "groups": groups,
    "catalogue": catalogue,
    "refused": refused,
    "refused-gpu": refused_gpu,
    "hints": hints,
    "spread": spread,
    "zonal": zonal,
    "different": different,
    "alone": alone,
    "verified": verified,
    "labels": labels,
    "strangers": strangers,
    "preferences": preferences,
    "diverse": diversity,
    "bounds": bounds,
}

if __name__ == "__main__":
    # As in a command.
    collect_seldom()
    for name, value in SETS[sys.argv[1]](*map(int, sys.argv[2:])):
        print(json.dumps({name: value}), flush=True)
