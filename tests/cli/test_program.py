"""What holds for every command: help, exit codes, streams, interruption."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kerf import __version__
from kerf.cli.main import COMMANDS
from tests.cli.program import POOL_000, ROOT, WORKLOAD_000, files, kerf

ENTRY = [sys.executable, "-c", "from kerf.cli.main import entry; entry()"]


def test_help_imports_no_library_but_click() -> None:
    """`kerf --help` imports neither numpy nor any client, so that it answers at once."""
    code = (
        "import sys; from kerf.cli.main import run; run(['--help']);"
        "heavy = {'numpy', 'highspy', 'rich', 'yaml', 'msgspec', 'kubernetes', 'boto3', 'structlog'};"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "loaded: []" in done.stdout


def test_help_lists_every_command() -> None:
    """Each command has its line in the help text."""
    done = kerf("--help")

    assert 0 == done.returncode
    assert [] == [name for name in COMMANDS if f"\n  {name} " not in done.stdout]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command: str) -> None:
    """`kerf COMMAND -h` is no error and tells the flags."""
    done = kerf(command, "-h")

    assert (0, "") == (done.returncode, done.stderr)
    assert "--help" in done.stdout


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("nothing",), "No such command 'nothing'"),
        (("plan", "--nothing"), "No such option"),
        (("plan", "-o", "xml"), "'xml' is not one of"),
        (("plan", "--strategy", "luck"), "'luck' is not one of"),
        (("plan", "-w", "-f", "-"), "standard input can be read once"),
        (("explain", "planet/mars", *files(POOL_000)), "expected one of pod, deployment"),
        (("explain", "pod/a/b/c", *files(POOL_000)), "expected pod/NAME or pod/NAMESPACE/NAME"),
        (("explain", "-l", "a==b==c", *files(POOL_000)), "-l a==b==c: expected KEY=VALUE"),
        (("simulate",), "expected a SCENARIO, or --trace FILE.csv"),
        (("simulate", "a", "b", "--chart", "c.svg"), "--chart draws one scenario, got 2"),
    ],
)
def test_wrong_usage_is_two(arguments: tuple[str, ...], told: str) -> None:
    """Wrong usage: one line on stderr that begins with `error:`, exit 2."""
    done = kerf(*arguments)

    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("command", [("plan",), ("gpus",), ("nodes",), ("explain", "pod/x"), ("plan", "-w")])
def test_without_files_and_cluster_the_way_out_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    """Neither a kubeconfig nor a pod: one line, exit 4."""
    done = kerf(*command, environment={"HOME": str(tmp_path), "KUBECONFIG": ""})

    told = f"no cluster: {tmp_path}/.kube/config does not exist and this is no pod (hint: --kubeconfig FILE, or -f"
    assert (4, "", f"error: {told} for manifests)\n") == (done.returncode, done.stdout, done.stderr)


def test_an_interruption_is_130(tmp_path: Path) -> None:
    """Ctrl-C while reading ends the program with 130 and no traceback."""
    pipe = tmp_path / "pods.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen([*ENTRY, "plan", "-f", str(pipe)], stderr=subprocess.PIPE, text=True)
    with process, pipe.open("w"):  # the pipe opens once the program reads it
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert (130, "\n") == (process.returncode, told)


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    """`kerf plan | head -0` is quiet."""
    arguments = [*ENTRY, "plan", *files(POOL_000, WORKLOAD_000), "-o", "json"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()

    assert "" == told


def test_kerf_says_its_version() -> None:
    """`kerf --version`."""
    assert f"kerf {__version__}\n" == kerf("--version").stdout
