"""A dry run compares what another autoscaler launched with what Kerf would have bought for the same pods."""

import json

from kerf.cli.inputs.leader import answer_of
from kerf.cli.run.decisions import Decisions, answer
from kerf.controllers.composition import compose
from kerf.controllers.runtime import Runtime
from kerf.controllers.shadow import MOST_WAVES, ShadowBook, Wave
from kerf.engine.study.refit import Fleet, Refit
from tests.controllers.cluster import Cluster, pod, pool

G5 = {("g5.xlarge", "on-demand"): 1}


def shadowed(cluster: Cluster) -> tuple[ShadowBook, Runtime]:
    """A dry run of all controllers, and what it compares."""
    book = ShadowBook()
    runtime = compose(cluster.ports, cluster.settings, assume_node_classes=True, shadow_book=book)
    runtime.lead(is_dry_run=True)
    cluster.at(cluster.now_s, runtime.start)
    return book, runtime


def bought(cluster: Cluster, number: int, *pods: str) -> None:
    """The other autoscaler launches a node, which takes these pods; they ask for no GPU."""
    cluster.running(number)
    cluster.put(*(pod(name, node=f"node-{number}", limits={"cpu": "1"}) for name in pods))


def test_a_wave_is_compared_when_its_nodes_have_their_pods(cluster: Cluster) -> None:
    """Two nodes for two pods that fit on one; nothing is said before the wave has been quiet for half a minute."""
    cluster.put(pool())
    book, runtime = shadowed(cluster)
    cluster.at(10)
    bought(cluster, 1, "p")
    bought(cluster, 2, "q")
    cluster.at(30)
    before = list(book.waves)
    cluster.at(80)
    runtime.stop()

    (wave,) = book.waves
    assert [] == before
    assert (2, 2, 1, 0) == (wave.refit.pods, wave.refit.present.nodes, wave.refit.planned.nodes, wave.failed)
    assert G5 == wave.refit.planned.types
    assert (1, 2, (2, 1)) == (book.count, book.pods, book.nodes)
    assert book.price_micro[0] == 2 * book.price_micro[1] > 0


def test_claims_of_before_belong_to_no_wave(cluster: Cluster) -> None:
    """The dry run did not see which pods they were bought for."""
    cluster.put(pool())
    bought(cluster, 1, "p")
    cluster.at(10)
    book, runtime = shadowed(cluster)
    cluster.at(100)
    runtime.stop()

    assert 0 == book.count


def test_a_claim_that_never_comes_up_is_counted_as_failed(cluster: Cluster) -> None:
    """The wave waits for it as long as a registration may take, and no longer."""
    cluster.put(pool())
    book, runtime = shadowed(cluster)
    cluster.at(10)
    bought(cluster, 1, "p")
    cluster.claimed("gpu-2", reached=("Launched",))
    cluster.at(300)
    waiting = book.count
    cluster.at(1000)
    runtime.stop()

    assert (0, 1) == (waiting, book.count)
    assert (1, 1) == (book.waves[0].failed, book.waves[0].refit.present.nodes)


def test_the_book_remembers_so_many_waves_and_the_sums_of_all() -> None:
    """A dry run may go on for months."""
    book = ShadowBook(since_s=0)
    for second in range(3 * MOST_WAVES):
        book.add(Wave(second, second + 60, Refit(1, Fleet(2, 20, G5), Fleet(1, 10, G5))))

    assert (MOST_WAVES, 300, 300, (600, 300), (6_000, 3_000)) == (
        len(book.waves),
        book.count,
        book.pods,
        book.nodes,
        book.price_micro,
    )


def test_the_leader_reports_what_it_compared(cluster: Cluster) -> None:
    """As a person's `kerf shadow` reads it; a leader that acts has nothing to report."""
    book = ShadowBook(since_s=1_800_000_000)
    book.add(Wave(1_800_000_060, 1_800_000_120, Refit(3, Fleet(2, 2_000_000, G5), Fleet(1, 1_500_000, G5), 1, 1), 1))
    answered = cluster.at(
        cluster.now_s, lambda: answer(cluster.settings, ("", ""), cluster.book, Decisions(cluster.feed), book)
    )
    seen = answer_of(json.dumps(answered).encode()).shadow
    silent = cluster.at(
        cluster.now_s, lambda: answer(cluster.settings, ("", ""), cluster.book, Decisions(cluster.feed), ShadowBook())
    )

    assert seen is not None
    assert ("2027-01-15T08:00:00.000000Z", 1, 3, 2, 1.5) == (
        seen.since,
        seen.count,
        seen.pods,
        seen.present.nodes,
        seen.planned.per_hour,
    )
    (wave,) = seen.waves
    assert (1, 1, 1) == (wave.placed_on_others, wave.unplaced, wave.failed)
    assert ["g5.xlarge"] == [each.instance_type for each in wave.present.types]
    assert answer_of(json.dumps(silent).encode()).shadow is None
