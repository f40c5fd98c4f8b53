"""The real kube-scheduler, the in-memory one and Kerf's fit judge random pods on random clusters alike.

One pod comes at a time. An extender records which nodes passed all filters, and that set has to be the same for all; so
do the counts of the message where no node passed.
"""

from collections.abc import Iterator

import pytest

from tests.differential.clusters import ALL, SIMPLE, RandomCluster, random_cluster
from tests.differential.memory import Memory
from tests.differential.play import PLUGINS, Disagreement, Played, fit_differs, play, shrunk
from tests.differential.real import RealCluster
from tools.controlplane.recording import real_scheduler
from tools.controlplane.server import Binaries

LEAST_ALONE = 50


@pytest.fixture(scope="module")
def real(binaries: Binaries) -> Iterator[RealCluster]:
    """A server with nothing but what all clusters share."""
    with real_scheduler(binaries) as scheduler:
        cluster = RealCluster(scheduler)
        cluster.share()
        yield cluster


def played(real: RealCluster, cluster: RandomCluster) -> Played:
    """What came of a cluster."""
    with real.filled(cluster.objects):
        return play(cluster, real=real, with_fit=True)


def smallest(real: RealCluster, found: Disagreement) -> str:
    """The disagreement for people, with no more of the cluster than shows it."""

    def differs(objects: list[dict[str, object]]) -> bool:
        memory = Memory(objects)
        with real.filled(objects):
            said = real.end(real.begin(found.pod))
        answer = memory.ask(found.pod)
        memory.close()
        return said.feasible != answer.feasible

    if found.first == "Kerf's fit":
        # The in-memory scheduler has agreed with the real one, and is asked faster.
        return found.text(shrunk(found.objects, lambda kept: fit_differs(kept, found.pod)))
    return found.text(shrunk(found.objects, differs))  # type: ignore[arg-type]


def check(real: RealCluster, pods: int, first_seed: int) -> Played:
    """Play clusters until so many pods were asked about: in every third, pods ask nothing of others or of volumes."""
    total, seed = Played(), first_seed
    while total.pods < pods:
        total.add(played(real, random_cluster(seed, ALL if seed % 3 else SIMPLE)))
        if total.disagreements:
            pytest.fail("\n\n".join(smallest(real, found) for found in total.disagreements[:1]))
        seed += 1
    return total


def is_telling(total: Played) -> bool:
    """Whether there was enough to disagree on."""
    return 0.3 <= total.bound / total.pods <= 0.7 and all(total.alone[name] >= LEAST_ALONE for name in PLUGINS)


def test_all_judge_pods_alike(real: RealCluster) -> None:
    """2,000 pods; 30 to 70 % of them find a place, and each plugin alone refuses at least 50 pairs."""
    total = check(real, 2000, 1)

    assert is_telling(total), f"{total.bound} of {total.pods} bound, {total.alone}"
