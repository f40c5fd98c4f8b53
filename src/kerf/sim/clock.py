"""Virtual time: an event loop that jumps to the next deadline instead of waiting for it.

The controllers that run in production run here unchanged, so the loop must be asyncio's own. Two things make that
hard. asyncio's heap of timers does not keep the order of equal deadlines; here they fire in the order of the calls.
And a loop on which nothing can ever happen would hang or spin; here it raises `VirtualDeadlock` and names who waits.

Deadlines are rounded up to 2**-20 s. Sums of such numbers and whole seconds since the epoch are exact in a float, so
a timer for an instant never sees a clock that shows a little less.
"""

import asyncio
import heapq
import math
import selectors
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from kerf.errors import KerfError

_TICKS_PER_S = 2**20

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualDeadlock(KerfError):
    """Tasks wait for something, and no timer is left that could bring it about; the text names the tasks."""


class RealInput(KerfError):
    """A task opened a socket or a pipe in virtual time, where no task could ever wait for it."""


class _Timer(asyncio.TimerHandle):
    """A timer that stays behind the earlier ones of the same deadline."""

    __slots__ = ("sequence",)
    sequence: int
    _scheduled: bool
    _when: float

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        # Fields, not calls: a heap of timers asks this a million times in a simulated week.
        if isinstance(other, _Timer):
            return self._when < other._when or (self._when == other._when and self.sequence < other.sequence)
        return self._when < other.when()


class _JumpingSelector(selectors.BaseSelector):
    """Asked to wait, it makes the loop jump. It accepts the loop's pipe to itself and nothing else."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        self.jump: Callable[[float | None], None] | None = None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self._keys:
            raise RealInput(f"virtual time has no input or output, but {fileobj!r} wants to be waited for")
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.jump is not None:
            self.jump(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's loop with a clock of its own, at 0 when it is made; use it with `asyncio.Runner(loop_factory=...)`."""

    _scheduled: list[_Timer]
    _clock_resolution: float

    def __init__(self) -> None:
        self._now_s = 0.0
        self._sequence = 0
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.jump = self._jump
        # asyncio fires what is due before now + resolution: half a tick makes that "due now" and nothing else.
        self._clock_resolution = 0.5 / _TICKS_PER_S

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now_s

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run `callback` at loop time `when`; equal times in the order of the calls."""
        exact = max(self._now_s, math.ceil(when * _TICKS_PER_S) / _TICKS_PER_S)
        timer = _Timer(exact, callback, args, self, context)
        self._sequence += 1
        timer.sequence = self._sequence
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Let an error in a callback end the run: a simulation that goes on without a part of it proves nothing."""
        if "handle" in context and isinstance(context.get("exception"), Exception):
            raise context["exception"]
        super().call_exception_handler(context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run `func` at once and in place: a thread would need real time."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _jump(self, timeout: float | None) -> None:
        if timeout is None:
            raise VirtualDeadlock(f"virtual deadlock: no timer is left, and these tasks wait: {self._waiting()}")
        if timeout > 0:
            self._now_s = self._scheduled[0].when()

    def _waiting(self) -> str:
        found = []
        for task in asyncio.all_tasks(self):
            frames = task.get_stack(limit=1)
            place = f" ({frames[-1].f_code.co_qualname}:{frames[-1].f_lineno})" if frames else ""
            found.append(task.get_name() + place)
        return ", ".join(sorted(found)) or "none"


class VirtualClock:
    """`kerf.ports.Clock` over a VirtualLoop; the loop's zero is `start_s`, whole seconds since the epoch."""

    def __init__(self, loop: VirtualLoop, start_s: float) -> None:
        self._loop = loop
        self._start_s = math.floor(start_s)
        self._ahead_s = 0

    def set_by(self, by_s: int) -> None:
        """Show so many seconds more from now on, or less; timers run on."""
        self._ahead_s += by_s

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return self._start_s + self._ahead_s + self._loop.time()

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Run `callback` at that time, or at once when it has passed; equal times in the order of the calls."""
        self._loop.call_at(when_s - self._start_s - self._ahead_s, callback)

    async def sleep_until(self, when_s: float) -> None:
        """Return at that time; at once, but not before others had their turn, when it has passed."""
        reached: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_at(when_s - self._start_s - self._ahead_s, reached.set_result, None)
        try:
            await reached
        finally:
            timer.cancel()
