"""Who runs the cells: this process, others on this machine, or a Dask cluster.

What a worker gives is plain JSON, and who runs a cell changes nothing in it. A result that has come is the caller's at
once; only what a lost worker had not yet given is run again.
"""

import multiprocessing
import os
import threading
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from typing import Any

from kerf.errors import InputError, KerfError
from kerf.sim.objects import Json
from kerf.sim.sweep.cells import AnotherKerf, SweepCell, played

MOST_LOST = 3
"""So often a cell is given to another worker after one that was lost with it."""


class WorkersLost(KerfError):
    """Workers were lost again and again with the same cells."""


Outcome = Json | KerfError
"""A result, or why a cell could not be run."""


def here(cells: Sequence[SweepCell], workers: int) -> Iterator[tuple[SweepCell, Outcome]]:
    """Run them in so many processes on this machine, in this one for one; each as soon as it is there.

    Raises WorkersLost.
    """
    if workers == 1 or len(cells) == 1:
        for cell in cells:
            yield cell, _tried(cell)
        return
    left, lost = list(cells), 0
    while left:
        # Spawned: what this process holds, such as threads and loops, is not for a worker.
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(workers, len(left)), spawned, _end_with_parent) as pool:
            asked = {pool.submit(_tried, cell): cell for cell in left}
            try:
                for future in as_completed(asked):
                    outcome = future.result()
                    left.remove(asked[future])
                    yield asked[future], outcome
            except BrokenExecutor:
                lost += 1
        if left and lost > MOST_LOST:
            raise WorkersLost(f"workers were lost {lost} times, the last time with {len(left)} runs left")


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone: workers of one that is killed would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        # Whatever the worker is at: no process is left to take its result.
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def on_dask(cells: Sequence[SweepCell], scheduler: str) -> Iterator[tuple[SweepCell, Outcome]]:
    """Run them on a Dask cluster, each as soon as it is there; Dask gives what a lost worker had to another.

    Raises InputError without Dask, and for a scheduler that does not answer; WorkersLost.
    """
    try:
        import distributed
        from distributed.comm.addressing import get_address_host_port
        from distributed.comm.registry import backends
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise InputError(f"--scheduler needs Dask (hint: pip install 'kerf-autoscaler[dask]'): {error}") from error
    scheme, is_stated, _ = scheduler.partition("://")
    if is_stated and scheme not in backends:
        # A client that cannot know where to connect ends with a traceback of its own, long after.
        raise InputError(
            f"--scheduler {scheduler}: expected one of {', '.join(sorted(backends))} before ://, got {scheme}"
        )
    # Without types.
    connect: Any = distributed.Client
    completed: Any = distributed.as_completed
    try:
        if scheme in ("tcp", "tls") or not is_stated:
            get_address_host_port(scheduler)
        client: Any = connect(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"--scheduler {scheduler}: expected a Dask scheduler that answers, got: {error}") from error
    with client:
        asked = {client.submit(_tried, cell, key=f"kerf-{cell.digest}", pure=True): cell for cell in cells}
        for future in completed(list(asked), loop=client.loop):
            try:
                outcome = future.result()
            except (KilledWorker, CancelledError) as error:
                raise WorkersLost(f"workers, or the scheduler, were lost again and again: {error}") from error
            yield asked[future], outcome


def _tried(cell: SweepCell) -> Outcome:
    """A run that fails must not end the others; workers of another version end all of them."""
    try:
        return played(cell)
    except AnotherKerf:
        raise
    except KerfError as error:
        # Others of its kind have arguments that do not travel.
        return KerfError(str(error))
