"""The control plane of this tier: one for each worker, started by the first test that asks for it.

Nothing is built here. Without the programs the tier is skipped, and a line at the end of the run says so; with
KERF_REQUIRE_CONTROLPLANE=1 it fails instead.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from tests.conftest import LEFT_OUT
from tests.controlplane.cluster import end_all
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

BUILD = Path(__file__).parents[2] / "controlplane" / "build.py"
FIRST = (
    "test_guide.py",
    "test_live_commands.py",
    "test_crashes.py",
    "test_roles.py",
    "test_cluster_rules.py",
    "test_gangs.py",
    "test_bad_input.py",
    "test_window_crashes.py",
    "test_usage.py",
    "test_bursts.py",
    "test_document_002.py",
    "test_playground.py",
    "test_cordon.py",
    "test_differential.py",
)
"""Files that take longest, begun first."""
APART = (
    "test_hostile.py",
    "test_replicas.py",
    "test_same_as_simulated.py",
    "test_outages.py",
    "test_following_plans.py",
    "test_mixes.py",
    "test_dry_run.py",
    "test_documents.py",
    "test_long_plans.py",
    "test_sharing_modes.py",
)
"""Files in which each test has a cluster of its own, so that any worker may take any of them; they come next.

The many short files end the run: then no worker is left alone with a long one.
"""


AHEAD = 2
"""Tests that a worker holds: the one that runs, and the next."""


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]
    """A file stays on one worker where its tests share a cluster.

    Not `--dist loadgroup`: xdist 3.8 names the group in the ids of tests, which pytest 9.2 no longer lets it change.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return nodeid if path.rpartition("/")[2] in APART else path

    def _reschedule(self, node: WorkerController) -> None:
        """One test ahead, which xdist needs to begin the one before it, and no more: what waits cannot change hands."""
        if self._pending_of(self.assigned_work[node]) < AHEAD:
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByCluster | None:
    """With `--dist loadscope`."""
    return ByCluster(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, the many short files last."""
    mine = [item for item in items if Path(__file__).parent in item.path.parents]
    order = {name: number for number, name in enumerate((*FIRST, *APART))}
    mine.sort(key=lambda item: order.get(item.path.name, len(order)))
    items[:] = [*(item for item in items if item not in set(mine)), *mine]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The programs, all of them."""
    printed = subprocess.run([sys.executable, BUILD, "--print"], capture_output=True, text=True, check=True).stdout
    found = Binaries.find(os.environ, Path(printed.strip()))
    if found.missing:
        reason = f"{LEFT_OUT}: {', '.join(found.missing)} missing; build with `make controlplane`"
        if os.environ.get("KERF_REQUIRE_CONTROLPLANE") == "1":
            pytest.fail(f"{reason} (KERF_REQUIRE_CONTROLPLANE=1)")
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def control_plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """Shared by the tests of a worker, with the audit log on; whoever breaks it mends it."""
    with ControlPlane(binaries, ControlPlaneOptions(audit=True)) as plane:
        yield plane


@pytest.fixture(scope="session", autouse=True)
def kept() -> Iterator[None]:
    """Clusters that are kept for the next test end with the last one."""
    yield
    end_all()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """An empty namespace in which pods can be created; it goes with the test."""
    name = f"test-{uuid4().hex[:8]}"
    control_plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    control_plane.wait_until(lambda: control_plane.get("ServiceAccount", "default", name), 30, "its service account")
    yield name
    control_plane.delete("Namespace", name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test shows what the programs said last."""
    report = yield
    planes = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, ControlPlane)]
    if report.failed:
        report.sections.extend(("logs of the control plane", plane.tails()) for plane in planes)
    return report
