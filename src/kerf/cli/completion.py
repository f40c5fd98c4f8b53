"""`kerf completion`, and what kubectl asks when somebody presses Tab after `kubectl kerf`.

The shells ask the program itself, by a variable, what could come next. kubectl asks another program, which must lie on
the PATH under the name `kubectl_complete-kerf`, with the words so far as arguments; it wants one proposal a line and a
number last. Commands, flags and their values are completed; names in a cluster are not, since a shell that waits for a
server at every Tab is worse than one that proposes less.
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from kerf.cli.echo import echo
from kerf.cli.examples import ExampleCommand
from kerf.cli.exits import DONE
from kerf.cli.main import program

SHELLS = ("bash", "zsh", "fish")
_FILES, _NO_FILES = 0, 4
"""Directives of cobra, which kubectl is made with: the shell may propose files, or not."""


@click.command(
    cls=ExampleCommand,
    examples=(
        ("For this bash", "source <(kerf completion bash)"),
        ("For every zsh of yours", "kerf completion zsh > ~/.zfunc/_kerf"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """The script by which a shell completes `kerf`: for bash and zsh, `source <(kerf completion bash)`.

    For fish: `kerf completion fish | source`. `kubectl kerf` is completed by kubectl's own script.
    """
    known = get_completion_class(shell)
    if known is None:
        raise click.UsageError(f"{shell}: this version of click does not complete it")
    echo(known(program, {}, "kerf", "_KERF_COMPLETE").source())
    return DONE


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
