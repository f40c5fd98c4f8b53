"""Runs the program as a user would, from the root of the checkout.

Nearly all of a short command is the start of Python and its imports, so tests run commands in this process. That both
ways give the same is what `test_processes.py` shows, once for each command.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from kerf.cli.main import program, run

ROOT = Path(__file__).parents[2]
POOL_000 = "examples/000-gpu-pools/pool.yaml"
WORKLOAD_000 = "examples/000-gpu-pools/workload.yaml"
POOL_003 = "examples/003-hami/nodepool.yaml"
WORKLOAD_003 = "examples/003-hami/workload.yaml"
POOL_004 = "examples/004-ack/nodepool.yaml"
WORKLOAD_004 = "examples/004-ack/workload.yaml"
CLUSTER = "tests/data/cli/cluster.yaml"
THREE = ("--replicas", "deployment/default/gpu-inference=3")


class Result(subprocess.CompletedProcess[str]):
    """What a run gave."""

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.stdout)


class Terminal(io.TextIOWrapper):
    """Text over bytes, which says that it is a terminal."""

    def isatty(self) -> bool:
        """As the stream of one."""
        return True


def on_terminal(*arguments: str, width: int, **environment: str) -> Result:
    """One run on a terminal so wide, which has colour unless the environment says otherwise."""
    given = {"COLUMNS": str(width), "TERM": "xterm-256color", "NO_COLOR": "", "FORCE_COLOR": "", **environment}
    return kerf(*arguments, environment=given, is_terminal=True)


def kerf(
    *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None, is_terminal: bool = False
) -> Result:
    """One run in this process; a hash seed needs a process of its own and gets it."""
    if environment is not None and "PYTHONHASHSEED" in environment:
        return kerf_process(*arguments, stdin=stdin, environment=environment)
    # Click keeps the help option as the first context wanted it, whichever test that was of.
    for name in arguments[:1]:
        command = program.get_command(click.Context(program), name)
        if command is not None:
            command._help_option = None
    stream = Terminal if is_terminal else io.TextIOWrapper
    out, err = (stream(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with _streams(_stream(stdin), out, err), contextlib.chdir(ROOT), patch.dict(os.environ, environment or {}):
        try:
            code: object = run(arguments)
        except SystemExit as ended:
            code = ended.code
    return Result(arguments, code if isinstance(code, int) else 1, _printed(out), _printed(err))


def kerf_process(*arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Result:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from kerf.cli.main import entry; entry()", *arguments],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=120,
        check=False,
    )
    return Result(done.args, done.returncode, done.stdout, done.stderr)


def _stream(text: str = "") -> io.TextIOWrapper:
    """Text over bytes, as the streams of a process are."""
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")


def _printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def _streams(stdin: io.TextIOWrapper, out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    with patch.object(sys, "stdin", stdin), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def files(*paths: str) -> tuple[str, ...]:
    """`-f` for each path."""
    return tuple(part for path in paths for part in ("-f", path))
