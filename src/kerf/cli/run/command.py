"""`kerf run`: the flags, variables and file that say what the controllers in a cluster do.

A mistake here starts as a typing error and ends as a cluster that is not scaled, so nothing is guessed: what is unknown
or does not fit is refused before anything is asked of the cluster, by the name under which it was given.

Only its flags are here. What checks and runs is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.config import DURATION, seconds_of, settings_table
from kerf.errors import ConfigError

CLOUDS = ("aws", "kwok")
if TYPE_CHECKING:
    _FloatType = click.ParamType[float]
    _TextType = click.ParamType[str]
else:
    _FloatType = _TextType = click.ParamType


class _Option(click.Option):
    """A flag that is a variable and a key as well, and is called by all three names where it is wrong."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.key = self.opts[0].removeprefix("--")
        self.envvar = self.envvar or f"KERF_{self.key.upper().replace('-', '_')}"

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """`--log-level (KERF_LOG_LEVEL, key log-level)`."""
        return f"--{self.key} ({self.envvar}, key {self.key})"


class _Duration(_FloatType):
    """Seconds, from a text such as `1m30s`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, which are not nothing. Raises click.BadParameter."""
        seconds = value if isinstance(value, float) else seconds_of(str(value))
        if not seconds:
            self.fail(f"expected {DURATION}, got {value!r}", param, ctx)
        return seconds


class _Address(_TextType):
    """`HOST:PORT`, `:PORT` for all addresses, or nothing."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is. Raises click.BadParameter."""
        port = str(value).rpartition(":")[2]
        if value and not (":" in value and port.isascii() and port.isdigit() and int(port) < 65536):
            self.fail(f"expected HOST:PORT such as 127.0.0.1:8080, :8080, or nothing, got {value!r}", param, ctx)
        return str(value)


def _option(flag: str, *more: str, **given: Any) -> Callable[..., Any]:
    return click.option(flag, *more, cls=_Option, **given)


def _duration(flag: str, name: str, default: str, meaning: str) -> Callable[..., Any]:
    return _option(flag, name, type=_Duration(), metavar="DURATION", default=default, show_default=True, help=meaning)


def _address(flag: str, default: str, served: str) -> Callable[..., Any]:
    meaning = f"Serve {served} there; empty: nowhere."
    return _option(flag, type=_Address(), metavar="HOST:PORT", default=default, show_default=True, help=meaning)


_FORMS = click.Choice(("text", "json"))
_LEVELS = click.Choice(("debug", "info", "warning", "error"))
_OPTIONS = (
    _option("--kubeconfig", metavar="FILE", help="The kubeconfig. Default: the pod's service account."),
    _option("--context", metavar="NAME", help="Context of the kubeconfig."),
    _option("--cloud", type=click.Choice(CLOUDS), help="The cloud that launches nodes. It has no default."),
    _option(
        "--acted-out-on-real-cluster",
        is_flag=True,
        help="Let --cloud kwok act out machines in a cluster whose nodes are machines of a real cloud.",
    ),
    _option("--catalog", metavar="CATALOG", help="Source of prices: aws[:REGION], alibaba[:REGION], kwok, or a file."),
    _option(
        "--region", metavar="REGION", help="Region whose prices count; with --cloud aws the region of the cluster."
    ),
    _option("--cluster-name", default="", metavar="NAME", help="Name of the EKS cluster, for --cloud aws."),
    _option("--aws-endpoint", default="", metavar="URL", help="Ask this URL instead of AWS, for --cloud aws."),
    _option(
        "--interruption-queue",
        default="",
        metavar="NAME",
        help="SQS queue of interruptions, for --cloud aws. Without it Kerf sees only failed status checks.",
    ),
    _option(
        "--namespace",
        metavar="NAME",
        default="kerf-system",
        show_default=True,
        help="Where Kerf runs and keeps its Lease.",
    ),
    _option("--dry-run", is_flag=True, help="Plan and report, but never act."),
    _option(
        "--leader-elect/--no-leader-elect",
        default=True,
        show_default=True,
        help="Elect a leader; only the leader acts.",
    ),
    _duration("--leader-elect-lease-duration", "lease_s", "15s", "A lead that is not renewed ends after this time."),
    _duration("--leader-elect-renew-deadline", "renew_s", "10s", "A leader that cannot renew stops after this time."),
    _duration("--leader-elect-retry-period", "retry_s", "2s", "How often to renew the lead, or to try to lead."),
    _option("--managed-selector", default="", metavar="SELECTOR", help="Act only on NodePools with these labels."),
    _address("--metrics-address", "127.0.0.1:8080", "/metrics"),
    _option("--metrics-auth", is_flag=True, help="Serve /metrics only to tokens with that right."),
    _address("--health-address", "127.0.0.1:8081", "/healthz and /readyz"),
    _duration("--unready-after", "unready_s", "15s", "Not ready when the API server has been away for this time."),
    _option("--log-format", type=_FORMS, default="text", show_default=True, help="Format of log lines."),
    _option("--log-level", type=_LEVELS, default="info", show_default=True, help="Lowest level to log."),
)


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    for setting in reversed(settings_table()):
        flag = _option(
            setting.flag, setting.field, metavar=setting.form, default=setting.default, show_default=True,
            help=setting.meaning,
        )  # fmt: skip
        command = flag(command)
    return command


def _read_config(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    """The keys of the file become defaults: a flag and a variable win over them."""
    if path is None:
        return
    from kerf.cli.run.configfile import settings_in

    known = {option.key: option for option in context.command.params if isinstance(option, _Option)}
    given: dict[str, str] = {}
    for place, key, value in settings_in(path):
        if key not in known:
            near = get_close_matches(key, known, 1)
            raise ConfigError(f"{place}: unknown key {key}" + (f"; is {near[0]} meant?" if near else ""))
        if str(known[key].name) in given:
            raise ConfigError(f"{place}: expected each key once, got {key} again")
        given[str(known[key].name)] = value
    context.default_map = given


@click.command(
    context_settings={"show_default": True},
    cls=ExampleCommand,
    examples=(
        ("Plan, explain and publish, and change nothing", "kerf run --dry-run --cloud kwok"),
        ("With settings from a file", "kerf run --config kerf.yaml --cloud kwok"),
    ),
)
@click.option(
    "--config", metavar="FILE", is_eager=True, expose_value=False, callback=_read_config, envvar="KERF_CONFIG",
    help="YAML with flags as keys, e.g. `batch-idle: 2s`.",
)  # fmt: skip
@_with_options
def run(**flags: Any) -> int:
    """Run the controllers in the cluster of the kubeconfig, or in the cluster of this pod.

    Every flag is also an environment variable (`--batch-idle` is KERF_BATCH_IDLE) and a key of the file that --config
    names. A flag overrides a variable, and a variable overrides the file.
    """
    from kerf.cli.run.starting import start

    return start(flags)
