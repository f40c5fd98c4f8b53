"""Completion: what a shell and kubectl propose, and that it costs no import of the commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.cli.completion import SHELLS, install, proposals
from kerf.cli.main import COMMANDS
from tests.cli.program import CLUSTER, POOL_000, ROOT, kerf


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
        (("explain", "-f", POOL_000, "nodepool/gpu"), ["nodepool/gpu-pool-1", ":4"]),
        (("explain", "-f", POOL_000, "np", ""), ["gpu-pool-1", ":4"]),
        (("explain", "np/g"), [":4"]),
        (("nodes", "-f", CLUSTER, "ip-10"), ["ip-10-0-0-1", "ip-10-0-0-2", ":4"]),
        (("advise", "pool", "-f", POOL_000, ""), ["gpu-pool-1", ":4"]),
        (("plan", "-f", "exa"), [":0"]),
    ],
)
def test_kubectl_learns_what_could_come_next(
    words: tuple[str, ...], proposed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line each, then cobra's directive: 4 no files, 0 files as well. Names are those of the files of -f."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", "")
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


KUBECTL = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  *slow*) sleep 5 ;;
  *nodeclaims*) exit 1 ;;
  *namespace*) printf 'namespace/data\\nnamespace/default\\n' ;;
  *contexts*) printf 'here\\nthere\\n' ;;
  *) printf 'nodepool.karpenter.sh/a\\nnodepool.karpenter.sh/b\\n' ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in for kubectl was asked, a line each; with a cache of its own."""
    log, program = tmp_path / "log", tmp_path / "kubectl"
    program.write_text(KUBECTL.format(log=log), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return log


def test_names_of_a_cluster_are_asked_of_kubectl_once(asked: Path) -> None:
    """Its answer is kept for ten seconds; another cluster and another kind are other questions."""
    assert ["np/a", "np/b", ":4"] == completed("explain", "np/")
    assert ["np/b", ":4"] == completed("explain", "np/b")
    assert ["data", "default", ":4"] == completed("plan", "-n", "d")
    assert ["there", ":4"] == completed("plan", "--context", "t")
    assert ["np/a", "np/b", ":4"] == completed("explain", "--context", "there", "np/")
    assert [
        "get nodepools.karpenter.sh -o name --request-timeout=0.45s",
        "get namespaces -o name --request-timeout=0.45s",
        "config get-contexts -o name",
        "get nodepools.karpenter.sh -o name --request-timeout=0.45s --context=there",
    ] == asked.read_text(encoding="utf-8").splitlines()


def test_what_does_not_answer_in_time_is_not_proposed(asked: Path) -> None:
    """Nor what fails; both are asked again at the next Tab."""
    assert [":4"] == completed("explain", "--context", "slow", "np/")
    assert [":4"] == completed("explain", "nodeclaim/")
    assert [":4"] == completed("explain", "nodeclaim/")
    assert 3 == len(asked.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("shell", SHELLS)
def test_one_command_installs_it(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the shell reads it; a second time nothing is added."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    settings = tmp_path / f".{shell}rc"
    if shell != "fish":
        settings.write_text("alias k=kubectl", encoding="utf-8")
    first, again = install(shell, tmp_path), install(shell, tmp_path)

    script = Path(first[0].removeprefix("wrote "))
    assert f"_KERF_COMPLETE={shell}_complete" in script.read_text(encoding="utf-8")
    if shell != "fish":
        text = settings.read_text(encoding="utf-8")
        assert text.startswith("alias k=kubectl\n# kerf completion\n")
        assert 1 == text.count("# kerf completion")
        assert f"{settings} reads it already" == again[1]


def test_the_shell_is_that_of_the_user(tmp_path: Path) -> None:
    """Or is named."""
    done = kerf("completion", "install", environment={"SHELL": "/usr/bin/fish", "HOME": str(tmp_path)})
    assert (0, True) == (done.returncode, (tmp_path / ".config/fish/completions/kerf.fish").exists())
    unknown = kerf("completion", "install", environment={"SHELL": "/bin/csh", "HOME": str(tmp_path)})
    assert (2, True) == (unknown.returncode, "kerf completion install bash|zsh|fish" in unknown.stderr)
    unset = kerf("completion", "install", environment={"SHELL": "", "HOME": str(tmp_path)})
    assert (2, True) == (unset.returncode, "SHELL is not set: name one" in unset.stderr)


def test_proposing_commands_loads_none() -> None:
    """Tab must answer at once."""
    code = (
        "import sys; from kerf.cli.completion import proposals; proposals(['']);"
        "print(sorted({'numpy', 'msgspec', 'yaml', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout
