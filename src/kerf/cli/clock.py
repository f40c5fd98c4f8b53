"""The clock of a command: that of the machine."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """`kerf.ports.Clock` on the running loop; `now_s` is the seconds since the epoch.

    Timers run on the monotonic clock: a clock that is set does not fire them.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self.now_s = now_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Run `callback` at that time, or at once when it has passed."""
        asyncio.get_running_loop().call_later(max(0.0, when_s - self.now_s()), callback)
