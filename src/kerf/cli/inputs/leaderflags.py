"""The flags that say where the leader is. Nothing that asks it is imported here."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from kerf.cli.proposals import a_file
from kerf.kube.accounts import ACCOUNT

_METRICS_PORT = 8080


@dataclass(frozen=True, slots=True)
class LeaderFlags:
    """What the flags of `leader_options` say."""

    namespace: str = "kerf-system"
    port: int = _METRICS_PORT
    account: str = ACCOUNT
    url: str = ""
    token_file: str = ""

    @classmethod
    def of(cls, flags: dict[str, Any]) -> "LeaderFlags":
        """Takes its own flags out of `flags`."""
        return cls(**{field.name: flags.pop(f"leader_{field.name}") for field in fields(cls)})


def leader_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags that say where the leader is; they arrive as `LeaderFlags`."""
    flags = (
        click.option(
            "--leader-namespace", metavar="NAME", default="kerf-system", show_default=True, help="Where Kerf runs."
        ),
        click.option(
            "--leader-port",
            type=click.IntRange(1, 65535),
            default=_METRICS_PORT,
            show_default=True,
            help="Port on which Kerf's pods serve /metrics.",
        ),
        click.option(
            "--leader-account",
            metavar="NAME",
            default=ACCOUNT,
            show_default=True,
            help="Service account whose token the leader accepts.",
        ),
        click.option(
            "--leader-url", metavar="URL", default="", help="Ask the leader at this URL, not through the API server."
        ),
        click.option(
            "--leader-token-file",
            metavar="FILE",
            default="",
            shell_complete=a_file,
            help="A token for --leader-url, with the audience kerf.dev.",
        ),
    )
    for flag in reversed(flags):
        command = flag(command)
    return command
