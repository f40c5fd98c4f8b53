"""A few threads in which calls of AWS block, and which end with the process whatever they wait for.

A thread pool of the standard library is joined at the end of the process. A long poll of a queue would hold up a
replica that is asked to stop for twenty seconds.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")
_Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Threads:
    """`count` of them, which start with the first call."""

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._count, self._is_started = count, False

    async def run(self, call: Callable[[], _T]) -> _T:
        """What the call gives, in a thread; where this is cancelled, the call goes on all the same."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()
        self._work.put((loop, future, call))
        if not self._is_started:
            self._is_started = True
            for number in range(self._count):
                threading.Thread(target=self._serve, name=f"aws-{number}", daemon=True).start()
        return await future

    def close(self) -> None:
        """Let the threads end, each after its call."""
        for _ in range(self._count if self._is_started else 0):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            loop, future, call = work
            result, error = None, None
            try:
                result = call()
            except Exception as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(_deliver, future, result, error)
            except RuntimeError:
                # The loop has ended, and with it the task that waited.
                continue


def _deliver(future: "asyncio.Future[Any]", result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
