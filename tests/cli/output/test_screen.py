"""What a terminal shows: tables and lines that fit, colour, bars; and that a pipe gets plain bytes.

`KERF_UPDATE=1` writes the golden output; the diff is part of the review.
"""

import os
import re
from pathlib import Path

import pytest

from kerf.cli.output.bars import bar, parts_bar
from kerf.cli.output.screen import Screen
from kerf.cli.output.tables import Fitted, fitted_line
from tests.cli.program import CLUSTER, POOL_000, WORKLOAD_000, Result, files, kerf, on_terminal

GOLDEN = Path(__file__).parent / "golden"
CASE = files(POOL_000, WORKLOAD_000)
COMMANDS = {
    "nodes": ("nodes", *files(CLUSTER)),
    "gpus": ("gpus", *files(CLUSTER)),
    "gpus-mig": ("gpus", *files("examples/001-sharing/hami-mig-running.yaml")),
    "plan": ("plan", *CASE),
    "plan-wide": ("plan", *CASE, "-o", "wide"),
    "explain": ("explain", "nodepool/gpu-pool-1", "pod/gpu-app-0", "pod/gpu-app-1", *CASE),
    "lint": ("lint", "examples/lint/slices.yaml"),
}
WIDTHS = (80, 120, 200)
STYLE = re.compile(r"\x1b\[[0-9;]*m")
COPIED = ("kubectl ", "# kubectl ")


def shown(name: str, screen: str) -> Result:
    """The command on that screen."""
    if screen == "pipe":
        return kerf(*COMMANDS[name])
    if screen == "no-color":
        return on_terminal(*COMMANDS[name], width=80, NO_COLOR="1")
    if screen == "dumb":
        return on_terminal(*COMMANDS[name], width=80, TERM="dumb")
    return on_terminal(*COMMANDS[name], width=int(screen))


@pytest.mark.parametrize("screen", [*map(str, WIDTHS), "pipe", "no-color", "dumb"])
@pytest.mark.parametrize("name", COMMANDS)
def test_each_screen_has_its_bytes(name: str, screen: str) -> None:
    """As the golden file has them; an escape of a style is written `^[`."""
    text = shown(name, screen).stdout.replace("\x1b", "^[")
    path = GOLDEN / f"{name}.{screen}.txt"
    if os.environ.get("KERF_UPDATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_fits(name: str, width: int) -> None:
    """But for commands to copy, and for words that are longer than the terminal."""
    done = on_terminal(*COMMANDS[name], width=width)
    lines = [STYLE.sub("", line) for line in (done.stdout + done.stderr).splitlines()]

    too_long = [line for line in lines if len(line) > width and not line.strip().startswith(COPIED)]
    assert [] == [line for line in too_long if " " in line.strip()]


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("name", ["plan", "plan-wide", "explain", "lint", "nodes"])
def test_no_word_is_broken(name: str, width: int) -> None:
    """What a dumb terminal shows are the words of a pipe; a table that is too wide repeats names of columns."""
    plain, narrow = kerf(*COMMANDS[name]), on_terminal(*COMMANDS[name], width=width, TERM="dumb")

    assert set(plain.stdout.split()) == set(narrow.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_gets_no_style(name: str) -> None:
    """Whatever the terminal is called, and with any width."""
    asked = {"TERM": "xterm-256color", "COLUMNS": "60"}
    plain = kerf(*COMMANDS[name], environment=asked)

    assert (kerf(*COMMANDS[name]).stdout, False) == (plain.stdout, "\x1b" in plain.stdout + plain.stderr)


@pytest.mark.parametrize(
    "flags, environment, is_coloured",
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ((), {"TERM": "dumb"}, False),
        ((), {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color=always",), {"NO_COLOR": "1"}, True),
        (("--color=auto",), {}, True),
    ],
)
def test_who_decides_about_colour(flags: tuple[str, ...], environment: dict[str, str], is_coloured: bool) -> None:
    """The flag, then NO_COLOR, FORCE_COLOR and the terminal."""
    assert is_coloured == ("\x1b[" in on_terminal(*COMMANDS["nodes"], *flags, width=80, **environment).stdout)


@pytest.mark.parametrize("asked", [{"FORCE_COLOR": "1"}, {}])
def test_a_pipe_has_colour_where_it_is_asked_for(asked: dict[str, str]) -> None:
    """For `| less -R`; lines stay as long as their text."""
    flags = () if asked else ("--color", "always")

    assert "\x1b[1mNODEPOOL\x1b[0m" in kerf(*COMMANDS["plan"], *flags, environment=asked).stdout


def test_json_is_the_same_on_a_terminal() -> None:
    """Data is for programs."""
    command = (*COMMANDS["plan"], "-o", "json")

    assert kerf(*command).stdout == on_terminal(*command, width=40).stdout


def test_names_of_tenants_cannot_style() -> None:
    """What comes from an object is escaped before it is styled."""
    screen = Screen(40, has_colour=True, is_drawn=True)
    lines = [line for row in Fitted(("A", "B"), [("\x1b[31mred", "x\ny")], "", screen, is_styled=False).lines()
             for line in row]  # fmt: skip

    assert [True, "\\u001b[31mred  x\\ny"] == [lines[0].startswith("\x1b[1mA"), lines[1]]


def test_bars_are_as_long_as_their_share() -> None:
    """In eighths of a column; never longer than the whole, and a part that is there is seen."""
    plain = Screen(80)
    assert ["····", "██··", "████", "████"] == [bar(part, 4, 4, plain) for part in (0, 2, 4, 9)]
    assert "▍···" == bar(1, 10, 4, plain)
    assert "AAB···" == parts_bar([(0, 1 / 3), (1, 0.01)], 1, 6, plain)


def test_what_goes_on_stands_further_in() -> None:
    """A command to copy stays one line."""
    screen = Screen(20)

    assert ["  hint: four words", "    are here"] == fitted_line("  hint: four words are here", screen)
    assert ["    kubectl patch nodepool x -p '{}'"] == fitted_line("    kubectl patch nodepool x -p '{}'", screen)
