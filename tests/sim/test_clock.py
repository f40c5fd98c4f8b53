"""Virtual time: jumps, ties, deadlock, and no way out of it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from kerf.sim.clock import RealInput, VirtualClock, VirtualDeadlock, VirtualLoop

START_S = 1_767_596_400  # 2026-01-05T07:00:00Z


def run(main: Callable[[VirtualClock], Coroutine[Any, Any, Any]]) -> Any:
    """What `main` returns, run in virtual time from START_S on."""

    async def started() -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return await main(VirtualClock(loop, START_S))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(started())


def test_sleeping_a_month_takes_no_time_and_ends_on_the_second() -> None:
    """A sleep moves the clock by exactly its length."""

    async def main(clock: VirtualClock) -> float:
        await asyncio.sleep(30 * 86_400)
        return clock.now_s()

    assert START_S + 2_592_000 == run(main)


def test_equal_deadlines_fire_in_the_order_of_the_calls() -> None:
    """A thousand timers for one instant keep their order, however they came to it."""

    async def main(clock: VirtualClock) -> list[int]:
        fired: list[int] = []
        for number in range(1000):
            clock.call_at(START_S + 5, partial(fired.append, number))
        await clock.sleep_until(START_S + 5)
        return fired

    assert list(range(1000)) == run(main)


def test_a_passed_time_fires_at_once_but_never_inside_the_call() -> None:
    """`call_at` in the past runs the callback in the next turn, at the present time."""

    async def main(clock: VirtualClock) -> tuple[list[float], list[float]]:
        seen: list[float] = []
        clock.call_at(START_S - 60, lambda: seen.append(clock.now_s()))
        before = list(seen)
        await clock.sleep_until(START_S)
        return before, seen

    assert ([], [START_S]) == run(main)


@pytest.mark.parametrize("wait_s", [0.1, 1 / 3, 1e-7, 0.3 + 1e-9, 86_400.7])
def test_a_timer_never_sees_a_clock_before_its_deadline(wait_s: float) -> None:
    """Whoever waits until a deadline finds the clock at or after it: no controller spins on a rounding error."""

    async def main(clock: VirtualClock) -> bool:
        await asyncio.sleep(0.1)
        deadline_s = clock.now_s() + wait_s
        await clock.sleep_until(deadline_s)
        return clock.now_s() >= deadline_s

    assert run(main)


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    """A time-out that was not needed leaves no trace."""

    async def main(clock: VirtualClock) -> float:
        async with asyncio.timeout(3600):
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        return clock.now_s()

    assert START_S + 2 == run(main)


def test_waiting_for_nothing_is_a_deadlock_that_names_the_tasks() -> None:
    """With no timer left and nobody ready, the loop raises and says who waits where."""

    async def main(clock: VirtualClock) -> None:
        stuck: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wait_for_ever() -> None:
            await stuck

        await asyncio.create_task(wait_for_ever(), name="provisioning")

    with pytest.raises(VirtualDeadlock, match=r"provisioning \(.*wait_for_ever:\d+\)"):
        run(main)


def test_an_error_in_a_callback_ends_the_run() -> None:
    """Nothing that fails in a simulation is only logged."""

    def fail() -> None:
        raise ValueError("five")

    async def main(clock: VirtualClock) -> None:
        clock.call_at(START_S + 5, fail)
        await clock.sleep_until(START_S + 10)

    with pytest.raises(ValueError, match="five"):
        run(main)


def test_a_thread_runs_inline() -> None:
    """`to_thread` takes no virtual time and gives result or error as ever."""

    async def main(clock: VirtualClock) -> tuple[int, float]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(len, "four"), clock.now_s()

    assert (4, START_S) == run(main)


def test_real_input_is_refused() -> None:
    """A socket in virtual time is an error, not a wait without end."""

    async def main(clock: VirtualClock) -> None:
        near, far = socket.socketpair()
        with near, far:
            asyncio.get_running_loop().add_reader(near, print)

    with pytest.raises(RealInput, match="virtual time has no input"):
        run(main)


def test_two_sleepers_alternate_by_time_then_by_call() -> None:
    """Tasks that sleep different lengths meet in the order of their deadlines; ties by who called first."""

    async def main(clock: VirtualClock) -> str:
        seen: list[str] = []

        async def ticks(name: str, every_s: int) -> None:
            for _ in range(3):
                await asyncio.sleep(every_s)
                seen.append(f"{name}{clock.now_s() - START_S:g}")

        sleepers: list[Awaitable[None]] = [ticks("a", 2), ticks("b", 3)]
        await asyncio.gather(*sleepers)
        return " ".join(seen)

    assert "a2 b3 a4 b6 a6 b9" == run(main)
