"""Completion: what a shell and kubectl propose, and that it costs no import of the commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.cli.completion import SHELLS, proposals
from kerf.cli.main import COMMANDS
from tests.cli.program import ROOT, kerf


def completed(*words: str) -> list[str]:
    """What kubectl is told, without the explanations."""
    return [line.partition("\t")[0] for line in proposals(words)]


@pytest.mark.parametrize(
    "words, proposed",
    [
        (("",), [*COMMANDS, ":4"]),
        (("ex",), ["explain", ":4"]),
        (("plan", "--str"), ["--strategy", "--strategies", ":4"]),
        (("plan", "-o", ""), ["table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns=", ":4"]),
        (("explain", "nodecla"), ["nodeclaim", "nodeclass", ":4"]),
        (("plan", "-f", "exa"), [":0"]),
    ],
)
def test_kubectl_is_told_what_could_come_next(words: tuple[str, ...], proposed: list[str]) -> None:
    """A line each, then cobra's directive: 4 no files, 0 files as well."""
    assert proposed == completed(*words)


def test_a_command_is_proposed_with_its_explanation() -> None:
    """After a tab, as cobra's."""
    assert f"gpus\t{COMMANDS['gpus']}" == proposals(["gp"])[0]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_script(shell: str) -> None:
    """It asks the program by a variable."""
    done = kerf("completion", shell)

    assert 0 == done.returncode
    assert f"_KERF_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_flags(tmp_path: Path) -> None:
    """With nothing but `source` of what the command prints."""
    program = tmp_path / "kerf"
    program.write_text(f"#!{sys.executable}\nfrom kerf.cli.main import entry\nentry()\n", encoding="utf-8")
    program.chmod(0o755)
    script = "source <(kerf completion bash); COMP_WORDS=(kerf nodes --k); COMP_CWORD=2; _kerf_completion kerf; "
    command = ["bash", "--norc", "-c", script + 'echo "${COMPREPLY[@]}"']
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )

    assert ("--kubeconfig\n", "") == (done.stdout, done.stderr)


def test_proposing_commands_loads_none() -> None:
    """Tab must answer at once."""
    code = (
        "import sys; from kerf.cli.completion import proposals; proposals(['']);"
        "print(sorted({'numpy', 'msgspec', 'yaml', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout
