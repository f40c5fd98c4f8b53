"""The examples at the end of each command's help: every line is run, in a folder with the files that it names."""

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kerf.cli.examples import ExampleCommand
from kerf.cli.exits import DONE, LOOK, UNREACHABLE
from kerf.cli.main import COMMANDS, HIDDEN, program, run
from tests.cli.program import ROOT, kerf

FILES = {
    "pool.yaml": "000-gpu-pools/pool.yaml",
    "workload.yaml": "000-gpu-pools/workload.yaml",
    "cluster.yaml": "002-batch-running/cluster.yaml",
    "usage.yaml": "002-batch-running/usage.yaml",
    "dump.yaml": "001-sharing/hami-mig-running.yaml",
    "provisioner.yaml": "001-migrate/provisioner.yaml",
    "slices.yaml": "lint/slices.yaml",
    "scenario.yaml": "trace/scenario.yaml",
    "pods.csv": "trace/pods.csv",
    "sweep.yaml": "trace/sweep.yaml",
}
"""Names that examples use, and the files of `examples/` that stand for them."""
CLUSTERLESS = ("manifests", "manpage", "version", "completion", "advise per-node")
"""Commands that need neither a file nor a cluster."""
WITHOUT = {"aws": "its commands have theirs in their text", "advise": "its commands have theirs"}
"""Groups, which have no examples of their own."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Each command by the words that call it, those of groups too."""
    context = click.Context(program)
    for name in (*COMMANDS, *HIDDEN):
        command = program.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in command.commands.items())


EXAMPLES = [line for _, command in commands() if isinstance(command, ExampleCommand) for _, line in command.examples]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that examples name, and a sweep that is short; the home of a user who has no cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, path in FILES.items():
        text = (ROOT / "examples" / path).read_text(encoding="utf-8")
        if name == "sweep.yaml":
            text = text.replace("duration: 3h", "duration: 10m").replace("seeds: [1, 2, 3]", "seeds: [1]")
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "kerf.yaml").write_text("batch-idle: 2s\n", encoding="utf-8")
    return tmp_path


def test_every_command_has_examples() -> None:
    """But for groups, and for the commands of `kerf aws`."""
    named = [name for name, command in commands() if not isinstance(command, ExampleCommand)]

    assert [] == [name for name in named if name.split()[0] not in WITHOUT]


def test_examples_are_shown_by_the_name_of_the_program() -> None:
    """A plugin of kubectl shows `kubectl kerf`."""
    assert "\nExamples:\n  # Each node of the cluster and what it costs\n  kerf nodes\n" in kerf("nodes", "-h").stdout
    command = program.get_command(click.Context(program), "nodes")
    assert command is not None
    with click.Context(program, info_name="kubectl kerf") as above:
        shown = command.get_help(click.Context(command, parent=above, info_name="nodes"))
    assert "\n  kubectl kerf nodes -f cluster.yaml" in shown


@pytest.mark.parametrize("line", EXAMPLES)
def test_each_example_runs(line: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It does what it says; one that reads the cluster ends with 4, as there is none."""
    asked = re.split(r" [|>] |\)", line.partition("kerf ")[2])[0]
    reads_files = any(name in asked.split() for name in FILES)
    with contextlib.chdir(folder):
        code = run(shlex.split(asked))

    expected = (DONE, LOOK) if reads_files or asked.startswith(CLUSTERLESS) else (UNREACHABLE,)
    assert code in expected, capfd.readouterr().err
