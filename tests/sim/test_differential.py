"""Kerf's fit and the in-memory scheduler judge random pods on random clusters alike, without a server.

They are written apart, so what one of them misreads the other shows. `tests/controlplane/test_differential.py` asks the
real scheduler the same.
"""

import pytest

from tests.differential.clusters import ALL, random_cluster
from tests.differential.play import PLUGINS, Disagreement, Played, fit_differs, play, shrunk

SEEDS = range(100, 124)


@pytest.mark.parametrize("seed", SEEDS)
def test_fit_and_scheduler_judge_pods_alike(seed: int) -> None:
    """Every constraint."""
    played = play(random_cluster(seed, ALL, 120), with_fit=True)

    def text(found: Disagreement) -> str:
        return found.text(shrunk(found.objects, lambda kept: fit_differs(kept, found.pod)))

    assert not played.disagreements, text(played.disagreements[0])


def test_the_clusters_are_telling() -> None:
    """Each plugin refuses pairs of pod and node that no other does."""
    total = Played()
    for seed in SEEDS[:4]:
        total.add(play(random_cluster(seed, ALL, 120)))

    assert total.alone.keys() == PLUGINS
    assert 0.3 <= total.bound / total.pods <= 0.95


def test_a_difference_is_shown_with_what_it_needs() -> None:
    """Of a cluster only the objects remain without which there is none."""
    cluster = random_cluster(7, ALL, 60)
    node = cluster.objects[-1]

    assert [node] == shrunk(cluster.objects, lambda kept: node in kept)
