"""Who runs cells changes nothing in what comes of them, and no lost worker loses a result."""

import os
import signal
import sys
from multiprocessing import active_children
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest

from kerf.errors import InputError
from kerf.sim.sweep.axes import read_sweep
from kerf.sim.sweep.cells import played
from kerf.sim.sweep.running import Outcome, here, on_dask
from tests.sim.sweep.files import write


def test_a_worker_that_is_killed_loses_no_result(tmp_path: Path) -> None:
    """What it had is run again by others; what had come stays."""
    cells = read_sweep(write(tmp_path)).cells[:3]
    found: dict[str, Outcome] = {}
    for cell, outcome in here(cells, 2):
        if not found:
            for child in active_children():
                child.kill()
        assert cell.digest not in found
        found[cell.digest] = outcome

    assert {cell.digest: played(cell) for cell in cells} == found


_SWEEP = """
import sys

from kerf.sim.sweep.axes import read_sweep
from kerf.sim.sweep.running import here

if __name__ == "__main__":
    for cell, outcome in here(read_sweep(sys.argv[1]).cells[:3], 2):
        print("came", flush=True)
        sys.stdin.read()
"""


def test_workers_of_a_sweep_that_is_killed_end(tmp_path: Path) -> None:
    """They have its standard output, too, so it ends when the last of them does."""
    script = tmp_path / "script.py"
    script.write_text(_SWEEP, encoding="utf-8")
    command = [sys.executable, str(script), write(tmp_path)]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as sweep:
        assert sweep.stdout is not None
        assert "came\n" == sweep.stdout.readline()
        sweep.kill()

        assert "" == sweep.communicate(timeout=60)[0]


# The cluster's own threads and sockets end when they like.
@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_is_killed_loses_no_result(tmp_path: Path) -> None:
    """Of a cluster of two one is killed once the first result has come; every result is as from this process."""
    distributed = pytest.importorskip("distributed")
    cells = read_sweep(write(tmp_path)).cells[:4]
    found: dict[str, Outcome] = {}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path), silence_logs=50
    ) as cluster:
        workers = [worker.pid for worker in cluster.workers.values()]
        for cell, outcome in on_dask(cells, cluster.scheduler_address):
            if not found:
                os.kill(workers[0], signal.SIGKILL)
            assert cell.digest not in found
            found[cell.digest] = outcome

    assert {cell.digest: played(cell) for cell in cells} == found


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer_is_said(tmp_path: Path) -> None:
    """As the user's input."""
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"--scheduler http://there: expected one of .*tcp, .* before ://, got http"):
        list(on_dask(read_sweep(write(tmp_path)).cells[:1], "http://there"))
    with pytest.raises(InputError, match=r"--scheduler nowhere: expected a Dask scheduler that answers, got"):
        list(on_dask(read_sweep(write(tmp_path)).cells[:1], "nowhere"))
