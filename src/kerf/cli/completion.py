"""`kerf completion`, and what kubectl asks when the user presses Tab after `kubectl kerf`.

The shells ask the program itself, by a variable, what could come next. kubectl asks another program, which must lie on
the PATH under the name `kubectl_complete-kerf`, with the words so far as arguments; it wants one proposal a line and a
number last. Commands, flags and their values are completed, and names of objects (`inputs/knownnames`).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from kerf.cli.echo import echo
from kerf.cli.examples import ExampleCommand
from kerf.cli.exits import DONE
from kerf.cli.main import program
from kerf.errors import brief

SHELLS = ("bash", "zsh", "fish")
INSTALL = "install"
_FILES, _NO_FILES = 0, 4
"""Directives of cobra, which kubectl is made with: the shell may propose files, or not."""


@click.command(
    cls=ExampleCommand,
    examples=(
        ("For your shell, from now on", "kerf completion install"),
        ("For this bash alone", "source <(kerf completion bash)"),
        ("The script for zsh", "kerf completion zsh > ~/.zfunc/_kerf"),
    ),
)
@click.argument("shell", type=click.Choice((*SHELLS, INSTALL)))
@click.argument("of_shell", metavar="[SHELL]", required=False, type=click.Choice(SHELLS))
def completion(shell: str, of_shell: str | None) -> int:
    """Print the script that completes `kerf` in a shell. For bash and zsh: `source <(kerf completion bash)`.

    `kerf completion install` installs it for your shell (SHELL, or the shell that you name). For fish: `kerf completion
    fish | source`. kubectl's own script completes `kubectl kerf`.
    """
    if shell != INSTALL:
        if of_shell is not None:
            raise click.UsageError(f"{shell} {of_shell}: expected one shell")
        echo(_script(shell), nl=True)
        return DONE
    mine = of_shell or os.path.basename(os.environ.get("SHELL", ""))
    if mine not in SHELLS:
        is_what = f"SHELL is {brief(mine)}" if mine else "SHELL is not set"
        raise click.UsageError(f"{is_what}: name one, kerf completion install {'|'.join(SHELLS)}")
    for line in install(mine, Path.home()):
        echo(line)
    return DONE


def _script(shell: str) -> str:
    known = get_completion_class(shell)
    if known is None:
        raise click.UsageError(f"{shell}: this version of click does not complete it")
    return known(program, {}, "kerf", "_KERF_COMPLETE").source()


def install(shell: str, home: Path) -> list[str]:
    """Write the script under `home` where the shell reads it, and what makes it do so; what was done, a line each.

    A second time nothing is added. Raises OSError.
    """
    if shell == "fish":
        return [_written(_folder("XDG_CONFIG_HOME", home / ".config") / "fish/completions/kerf.fish", shell)]
    lines: tuple[str, ...]
    if shell == "zsh":
        script = home / ".zfunc" / "_kerf"
        settings, lines = home / ".zshrc", ("fpath+=(~/.zfunc)", "autoload -Uz compinit && compinit")
    else:
        script = _folder("XDG_DATA_HOME", home / ".local/share") / "kerf/completion.bash"
        settings, lines = home / ".bashrc", (f'[ -r "{script}" ] && . "{script}"',)
    return [_written(script, shell), _with_lines(settings, lines), f"open a new {shell}, or: source {settings}"]


def _folder(variable: str, usual: Path) -> Path:
    given = os.environ.get(variable)
    return Path(given) if given else usual


def _written(path: Path, shell: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_script(shell) + "\n", encoding="utf-8")
    return f"wrote {path}"


def _with_lines(path: Path, lines: Sequence[str]) -> str:
    """The lines at the end of the file, those that it does not have yet."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    new = [line for line in lines if line not in text.splitlines()]
    if not new:
        return f"{path} reads it already"
    begin = "" if not text or text.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(begin + "# kerf completion\n" + "".join(f"{line}\n" for line in new))
    return f"added to {path}: {'; '.join(new)}"


def proposals(words: Sequence[str]) -> list[str]:
    """What kubectl wants to hear for the words after `kubectl kerf`, of which the last is being typed."""
    *before, typed = words or ("",)
    items = ShellComplete(program, {}, "kubectl kerf", "").get_completions(before, typed)
    plain = [item for item in items if item.type == "plain"]
    return [*map(_line, plain), f":{_FILES if len(plain) < len(items) else _NO_FILES}"]


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)


def kubectl_entry() -> None:
    """The console script `kubectl_complete-kerf`."""
    sys.stdout.write("".join(f"{line}\n" for line in proposals(sys.argv[1:])))
