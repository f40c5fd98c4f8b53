"""`kerf run` with a plan that takes as long as its test says, and what its probes and its Lease see meanwhile.

A cluster on which one plan takes ten seconds is large, and how long it takes depends on the machine. So the real plan
of a small cluster is made again and again in the deciding thread until the time is over: the interpreter's lock is held
as a large plan holds it, and what comes out is what Kerf would have decided. Everything else is the real program.
"""

import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from tools.controlplane.installation import Replica

_Made = TypeVar("_Made")
_ROOT = Path(__file__).parents[1]
_START = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from benchmarks.long_plans import serve
serve(Path({folder!r}))
"""
_LONG, _BEGUN, _ENDED = "long", "begun", "ended"
_WORK = {"checked_decision": "decide", "explain": "explain"}
"""What provisioning does in the thread, by the names of its functions."""
_PROBE_S = 0.02


class LongPlans:
    """What a test asks of the program, by files in `folder`: `program` is to be started in place of `kerf`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.program = folder / "kerf"
        text = _START.format(python=sys.executable, root=str(_ROOT), folder=str(folder))
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)

    def lengthen(self, work: str, for_s: float) -> None:
        """Let the next `decide` or `explain` go on for so many seconds; only that one."""
        for name in (_BEGUN, _ENDED):
            (self._folder / name).unlink(missing_ok=True)
        # Renamed, because the program may look at any moment.
        written = self._folder / "writing"
        written.write_text(f"{work} {for_s}", encoding="utf-8")
        written.rename(self._folder / _LONG)

    @property
    def has_begun(self) -> bool:
        """Whether the thread is at the long work, or was."""
        return (self._folder / _BEGUN).exists()

    @property
    def has_ended(self) -> bool:
        """Whether the thread has done the long work."""
        return (self._folder / _ENDED).exists()

    @property
    def is_made(self) -> bool:
        """Whether the thread is at the long work now."""
        return self.has_begun and not self.has_ended

    def probed(self, replica: Replica, look: Callable[[], object] = lambda: None) -> list[float]:
        """Seconds of each answer of /readyz while the plan is made; `look` is called after each.

        An answer that comes after the plan does not count. Raises HTTPError for one that is not 200.
        """
        address, found = f"http://{replica.address('health')}/readyz", list[float]()
        while True:
            began_s = time.monotonic()
            with urllib.request.urlopen(address, timeout=30) as answer:
                answer.read()
            took_s = time.monotonic() - began_s
            if not self.is_made:
                return found
            found.append(took_s)
            look()
            time.sleep(_PROBE_S)


def p99(seconds: list[float]) -> float:
    """The value that one in a hundred exceeds."""
    return sorted(seconds)[len(seconds) * 99 // 100]


def serve(folder: Path) -> None:
    """`kerf` itself, with work that is prolonged as the files in `folder` say."""
    from kerf.cli.main import entry
    from kerf.cli.run import replica
    from kerf.controllers.deciding import Threaded

    class Prolonged(Threaded):
        async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
            return await super().run(partial(_prolonged, folder, work), is_urgent=is_urgent)

    vars(replica)["Threaded"] = Prolonged
    entry()


def _prolonged(folder: Path, work: Callable[[], _Made]) -> _Made:
    """What `work` makes, made until its time is over."""
    name = _WORK.get(work.func.__name__, "") if isinstance(work, partial) else ""
    wanted, _, for_s = _read(folder / _LONG).partition(" ")
    if name != wanted:
        return work()
    end_s = time.monotonic() + float(for_s)
    (folder / _LONG).unlink()
    (folder / _BEGUN).touch()
    made = work()
    while time.monotonic() < end_s:
        made = work()
    (folder / _ENDED).touch()
    return made


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else "none"
