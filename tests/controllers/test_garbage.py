"""Garbage is looked for between decisions, and seldom during one."""

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from kerf.controllers.deciding import Threaded
from kerf.controllers.garbage import Garbage


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    """What other tests go by."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class Circle:
    """Garbage that counting references does not find."""

    def __init__(self) -> None:
        self.own = self


def test_new_garbage_is_gone_after_a_look() -> None:
    """Each time: it does not wait until much has come together."""
    garbage = Garbage()
    for _ in range(3):
        held = weakref.ref(Circle())
        garbage.look()

        assert held() is None


@pytest.mark.parametrize("looks_before", [0, 1, 2])
def test_what_becomes_garbage_later_is_found_too(looks_before: int) -> None:
    """However old it is by then, and although nothing but looks makes Python collect."""
    gc.collect()
    garbage, circle = Garbage(), Circle()
    for generation in range(looks_before):
        gc.collect(generation)
    held = weakref.ref(circle)
    del circle
    for _ in range(60):
        garbage.look()

    assert held() is None


def test_a_decision_is_not_interrupted_by_what_a_warm_one_makes() -> None:
    """Nine objects for each of ten thousand pods."""
    looked = list[str]()

    def note(phase: str, _: dict[str, int]) -> None:
        looked.append(phase)

    def work() -> int:
        gc.callbacks.append(note)
        try:
            return len([[] for _ in range(90_000)])
        finally:
            gc.callbacks.remove(note)

    async def main() -> int:
        deciding = Threaded()
        gc.collect()
        made = await deciding.run(work)
        deciding.close()
        return made

    assert asyncio.run(main()) == 90_000
    assert looked == []


def test_the_garbage_of_a_decision_goes_once_nothing_is_asked_for() -> None:
    """Nothing else need happen."""

    async def main() -> bool:
        deciding = Threaded()
        held = await deciding.run(lambda: weakref.ref(Circle()))
        deadline_s = time.monotonic() + 30
        while held() is not None and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)
        deciding.close()
        return held() is None

    assert asyncio.run(main())
