"""How far a command is: a percentage and the time left, on a terminal and in logs; nothing of it in data."""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kerf.cli import progress as module
from kerf.cli.inputs.live import read_objects
from kerf.cli.progress import Meter, progress, quiet
from kerf.manifests.decode import decode
from kerf.manifests.read import parse, read_documents
from tests.cli.program import POOL_000, ROOT, WORKLOAD_000, Terminal, files, on_terminal


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Hand:
    """At 0."""
    return Hand()


@pytest.fixture(autouse=True)
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for users, and without waiting."""
    monkeypatch.delenv("KERF_PROGRESS")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("_DRAW_S", "_FIRST_LINE_S", "_LINE_S"):
        monkeypatch.setattr(module, name, 0.01)


def test_what_was_reported_says_how_long_the_rest_takes(clock: Hand) -> None:
    """A quarter in ten seconds: thirty more. It never goes back."""
    meter = Meter("simulating a", clock)
    assert "simulating a 0 %" == meter.line()
    clock.now_s = 10
    meter.tell(0.25)
    meter.tell(0.1)

    assert "simulating a 25 %, about 30s left" == meter.line()


def test_a_guess_is_there_from_the_first_second(clock: Hand) -> None:
    """It comes near its end, and is never done before the work is."""
    meter = Meter("planning 50000 pods", clock)
    meter.guess(0.5, 5)
    assert "planning 50000 pods 0 %, about 10s left" == meter.line()
    clock.now_s = 1
    assert "planning 50000 pods 9 %, about 11s left" == meter.line()
    clock.now_s = 1000
    assert 0.49 < meter.done() <= 0.5


def test_a_part_is_a_part(clock: Hand) -> None:
    """0 to 1 for itself; a guess begins where it is."""
    meter = Meter("reading", clock)
    meter.part(0.2, 0.4)(0.5)
    assert 0.3 == pytest.approx(meter.done())
    meter.guess(1.0, 10)
    assert 0.3 == pytest.approx(meter.done())


@pytest.mark.parametrize("seconds, text", [(0.2, "1s"), (59.5, "1m0s"), (61, "1m10s"), (3700, "1h1m"), (7200, "2h0m")])
def test_times_are_rounded_as_people_wait(seconds: float, text: str) -> None:
    """Up, and by tens of seconds from a minute on."""
    assert text == module._rounded(seconds)


@contextmanager
def stderr(monkeypatch: pytest.MonkeyPatch, stream: io.TextIOWrapper) -> Iterator[io.TextIOWrapper]:
    """Standard error of the test."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        yield stream


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def test_a_terminal_has_one_line_which_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the percentage at once."""
    with stderr(monkeypatch, Terminal(io.BytesIO())) as stream, progress("planning", 10):
        assert "\r\x1b[Kplanning 0 %, about 10s left" == _text(stream)[: len("\r\x1b[Kplanning 0 %, about 10s left")]
    assert _text(stream).endswith("\r\x1b[K")
    assert "\n" not in _text(stream)


def test_a_log_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, and then again and again; a dumb terminal too."""
    monkeypatch.setenv("TERM", "dumb")
    for kind in (io.TextIOWrapper, Terminal):
        with stderr(monkeypatch, kind(io.BytesIO())) as stream, progress("planning", 1000) as meter:
            while "\n" not in _text(stream):
                pass
            meter.tell(0.5)
        assert _text(stream).startswith("progress: planning 0 %, about 16m40s left\n")


@pytest.mark.parametrize("how", ["off", "quiet"])
def test_it_can_be_silent(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment, and where `-w` looks again."""
    if how == "off":
        monkeypatch.setenv("KERF_PROGRESS", "off")
    with stderr(monkeypatch, Terminal(io.BytesIO())) as stream:
        if how == "quiet":
            with quiet(), progress("planning", 10):
                pass
        else:
            with progress("planning", 10):
                pass
    assert "" == _text(stream)


def test_notes_stand_on_lines_of_their_own() -> None:
    """A line of progress is wiped before them."""
    done = on_terminal("nodes", *files(POOL_000, WORKLOAD_000), "-f", "examples/lint/slices.yaml", width=80)

    lines = [line.rpartition("\x1b[K")[2] for line in done.stderr.split("\n")]

    assert [] == [line for line in lines if "%" in line and ("note:" in line or "warning:" in line)]
    assert re.search("reading manifests [0-9]+ %, about [0-9]+s left", done.stderr)


def test_documents_are_counted() -> None:
    """A path after the other, then each few hundred documents."""
    heard: list[float] = []
    read_documents((str(ROOT / POOL_000), str(ROOT / WORKLOAD_000)), io.StringIO(), tell=heard.append)
    assert [0.5, 1.0] == heard
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n%d}\n"
    heard.clear()
    decode(parse("".join(namespace % number for number in range(600))), tell=heard.append)
    assert [0, 256 / 600, 512 / 600] == heard


class Lists:
    """A cluster whose pods are on two pages and which has nothing else."""

    async def call(self, wanted: Any, params: dict[str, Any], namespace: str = "") -> bytes:
        """A page of a list."""
        if wanted.resource.plural != "pods":
            return b'{"metadata": {"resourceVersion": "1"}, "items": []}'
        more = b"" if "continue" in params else b', "continue": "x", "remainingItemCount": 500'
        return b'{"metadata": {"resourceVersion": "1"' + more + b'}, "items": []}'

    async def fetch(self, path: str) -> bytes:
        """The groups."""
        return b'{"groups": []}'


def test_lists_of_a_cluster_are_counted() -> None:
    """Pods count for more, and by their pages."""
    import asyncio

    heard: list[float] = []
    asyncio.run(read_objects(Lists(), tell=heard.append))  # type: ignore[arg-type]

    assert sorted(heard) == heard
    assert 0.5 < heard[-1] <= 1
    assert [6, 11] == [round(each / heard[0]) for each in heard[1:3]]


def test_simulate_and_plan_say_how_far_they_are(tmp_path: Path) -> None:
    """On standard error, and nothing of it on standard output."""
    done = on_terminal("simulate", "examples/000-gpu-pools/scenario.yaml", "--summary", width=80)

    assert "simulating" in done.stderr
    assert "simulating" not in done.stdout


def test_what_takes_far_longer_than_was_guessed_says_no_time_that_is_left(clock: Hand) -> None:
    """Nobody knows it: what is spent is said instead, and the figures are back once the work reports."""
    meter = Meter("planning 100 pods", clock)
    meter.guess(1.0, 2)
    clock.now_s = 3
    assert "planning 100 pods 77 %, about 1s left" == meter.line()
    clock.now_s = 190
    assert "planning 100 pods, 3m10s so far, longer than expected" == meter.line()
    meter.tell(0.5)
    assert "planning 100 pods 50 %, about 3m10s left" == meter.line()
