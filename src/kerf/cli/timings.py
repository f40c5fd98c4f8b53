"""`--timings`: where the seconds and the bytes of a command went, as one JSON line on stderr."""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

from kerf.cli.echo import echo

LAPS = ("read_s", "plan_s", "bound_s", "render_s")


class Stopwatch:
    """Adds up seconds by name. Does nothing at all when it is not wanted."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._laps = dict.fromkeys(LAPS, 0.0)
        if is_wanted:
            _load_late_imports()
            self._rss_bytes = _rss_bytes("VmRSS")
        self._last_s = time.perf_counter()

    def lap(self, name: str) -> None:
        """Adds the time since the last lap to that of `name`."""
        now_s = time.perf_counter()
        self._laps[name] += now_s - self._last_s
        self._last_s = now_s

    def tell(self, **counts: int) -> None:
        """Writes the line."""
        if not self._is_wanted:
            return
        seconds = {name: round(value, 4) for name, value in self._laps.items()}
        memory = {"peak_rss_bytes": _rss_bytes("VmHWM"), "rss_after_imports_bytes": self._rss_bytes}
        echo(json.dumps({**seconds, **memory, **counts}), err=True)


def _load_late_imports() -> None:
    """What the engine imports where it uses it: loading is not work, and is paid once."""
    for name in ("highspy", "numpy"):
        importlib.import_module(name)


def _rss_bytes(field: str) -> int:
    """VmRSS (now) or VmHWM (the most so far) of this process; where /proc does not tell, the most so far for both."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
    except (OSError, ValueError, StopIteration):
        # ru_maxrss is in bytes on macOS and in KiB elsewhere.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
