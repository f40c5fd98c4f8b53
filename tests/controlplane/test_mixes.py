"""Random mixes of HAMi's pods on a real server: as planned, and as simulated."""

from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.controlplane.cluster import cluster
from tests.controlplane.test_following_plans import outcome
from tests.mixes import in_order, mixed
from tests.scenarios.test_mixes import played
from tools.controlplane.server import Binaries

IN_THE_GATE, TOGETHER, MOST = 8, 20, 200
LATER = (pytest.mark.long, pytest.mark.alone)
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("first", "end"),
    [
        (0, IN_THE_GATE),
        *(pytest.param(n, min(n + TOGETHER, MOST), marks=LATER) for n in range(IN_THE_GATE, MOST, TOGETHER)),
    ],
)
def test_mixes_are_placed_as_they_were_planned(binaries: Binaries, tmp_path: Path, first: int, end: int) -> None:
    """Each on a pool of its own and in one of four orders, many at a time: no more launches than the simulator's.

    A wave comes over some seconds here, so that one plan may see all of it where the simulator makes two. Never the
    other way round: a batch ends when no pod has come for five seconds.
    """
    mixes = [in_order(mixed(seed), seed % 4) for seed in range(first, end)]
    simulated = {mix.name: played(tmp_path, mix).totals.launches for mix in mixes}
    with cluster(binaries, with_hami=True) as site:
        site.plane.apply([mix.pool for mix in mixes])
        replica = site.start("--batch-idle=5s", "--batch-max=30s")
        count = 0
        for waves in zip_longest(*(mix.waves for mix in mixes), fillvalue=()):
            count += sum(map(len, waves))
            for pod in (pod for wave in waves for pod in wave):
                site.plane.request("POST", PODS, pod).good("create a pod")
            site.until(lambda count=count: count == len(site.pods("Running")), "all of them run", 120)  # type: ignore[misc]

        created = Counter(claim["objectRef"]["name"].rpartition("-")[0] for claim in site.created_claims())
        assert {} == {name: (most, created[name]) for name, most in simulated.items() if created[name] > most}
        assert simulated.keys() >= created.keys()
        assert 0 == outcome(replica, "other-node") + outcome(replica, "other-cards")
