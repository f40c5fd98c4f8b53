"""The program `kerf` and `kubectl kerf`: which command is in which module, and what every error exits with.

Most of the time of a short command is import time. Commands are therefore loaded when they are called, this module
imports nothing but click, and a command's module nothing but its flags: help and completion answer at once.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem

from kerf import __version__
from kerf.cli import exits
from kerf.cli.collector import collect_seldom
from kerf.cli.echo import echo
from kerf.cli.habits import instead, rewritten
from kerf.errors import InputError, KerfError

COMMANDS = {
    "plan": "Say what Kerf would do now, in the cluster or with manifests. Changes nothing.",
    "verify": "Put a printed plan to plain rules: each card, node, limit, quota, budget and group.",
    "snapshot": "Write all objects that a plan depends on to one file: to plan elsewhere, to edit, to send.",
    "explain": "Say why a pod waits, why a node stays or goes, and the smallest change that helps.",
    "simulate": "Run the controllers in virtual time: timeline, cost, waiting, waste.",
    "sweep": "Run one scenario with many policies, traces, seeds and prices, and compare them.",
    "lint": "Find mistakes in manifests or in the cluster, with places, codes and fixes.",
    "migrate": "Convert retired kinds (Provisioner, AWSNodeTemplate, v1beta1) to today's, with a report.",
    "gpus": "List each physical GPU, how much of it is used, and by which pods.",
    "nodes": "List each node, its price and its stage.",
    "top": "Show how full nodes and cards are and what they cost, and refresh.",
    "shadow": "Compare the nodes of today with those that Kerf would buy for the same pods.",
    "advise": "Say what pods and pools should ask for, with evidence. Applies nothing.",
    "doctor": "Check that the cluster has what Kerf needs, and say what to do.",
    "run": "Run the controllers in a cluster.",
    "manifests": "Print what to apply to a cluster: CRDs, roles, Deployment.",
    "aws": "Print what Kerf needs in an AWS account: policies, roles, the queue of interruptions.",
    "version": "Print the version of this program.",
    "manpage": "Print the manual page, for man.",
    "completion": "Print or install the script that completes kerf in bash, zsh or fish.",
}
"""Commands with their one-line help, in the order of the help text."""
HIDDEN = {"hami-extender": "HAMi's scheduler extender and webhook, for clusters in which HAMi does not run."}
"""Commands for trying and testing, which the help text does not list."""
_MODULES = {
    "plan": "plan.command",
    "explain": "explain.command",
    "verify": "verify.command",
    "lint": "lint.command",
    "advise": "advise.command",
    "doctor": "doctor.command",
    "run": "run.command",
    "hami-extender": "hami_extender",
}
"""The modules of commands, where they are not called as the command."""


class Program(click.Group):
    """Loads a command when it is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What kubectl's users type becomes what Kerf has."""
        return super().parse_args(ctx, rewritten(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command that only kubectl has is answered with what to type instead."""
        if args and (text := instead(args[0])):
            raise click.UsageError(text, ctx)
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = get_close_matches(args[0], COMMANDS, 1)
            meant = f"; is {near[0]!r} meant?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None when there is none."""
        summary = COMMANDS.get(cmd_name) or HIDDEN.get(cmd_name)
        if summary is None:
            return None
        module = importlib.import_module(f"kerf.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        command.short_help = summary
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and flags that begin like this, without loading the commands."""
        named = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="kerf %(version)s")
def program() -> None:
    """A node autoscaler for Kubernetes that understands GPU slices.

    Data goes to standard output, everything else to standard error. Exit codes: 0 done; 1 failed; 2 wrong usage or
    input; 3 done, but look (unplaced pods, a missed expectation, findings); 4 no cluster; 130 interrupted.
    """


def run(arguments: Sequence[str], name: str = "kerf") -> int:
    """Run one command; its exit code. Never raises for what a user can cause."""
    try:
        result = program.main(list(arguments), prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        return exits.USAGE
    except click.ClickException as error:
        return _exit(
            error.format_message(), error.exit_code, error.ctx if isinstance(error, click.UsageError) else None
        )
    except InputError as error:
        return _exit(str(error), exits.USAGE)
    except exits.ClusterUnreachable as error:
        return _exit(str(error), exits.UNREACHABLE)
    except KerfError as error:
        return _exit(str(error), exits.FAILED)
    except (KeyboardInterrupt, click.Abort):
        return exits.INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has gone; the interpreter must not try to flush into the closed pipe at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.FAILED
    except OSError as error:
        return _exit(f"{error.filename or 'output'}: {error.strerror}", exits.FAILED)
    return result if isinstance(result, int) else exits.DONE


def _exit(message: str, code: int, context: click.Context | None = None) -> int:
    for line in message.splitlines():
        echo(f"error: {line}", err=True)
    if context is not None:
        echo(f"hint: {context.command_path} --help", err=True)
    return code


def entry() -> None:
    """The console script."""
    collect_seldom()
    called = os.path.basename(sys.argv[0])
    sys.exit(run(sys.argv[1:], "kubectl kerf" if called.startswith("kubectl-") else "kerf"))
