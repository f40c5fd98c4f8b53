"""`kerf run`: the flags, variables and file by which the controllers in a cluster are told what to do.

A mistake here starts as a typing error and ends as a cluster that nobody scales, so nothing is guessed: what is unknown
or does not fit is refused before anything is asked of the cluster, by the name under which it was given.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import yaml

from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.run.options import RunOptions
from kerf.config import DURATION, seconds_of, settings_of, settings_table
from kerf.errors import ConfigError, brief

CLOUDS = ("aws", "kwok")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_JITTER = 1.2
_NOTHING = ("", "~", "null")
_KINDS = {yaml.ScalarNode: "text", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}
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
    _option("--kubeconfig", metavar="FILE", help="As kubectl's; without it the pod's own service account."),
    _option("--context", metavar="NAME", help="Context of the kubeconfig."),
    _option("--cloud", type=click.Choice(CLOUDS), default="kwok", show_default=True, help="Who launches nodes."),
    _option("--catalog", metavar="CATALOG", help="aws[:REGION], alibaba[:REGION], kwok, or a file."),
    _option("--region", metavar="REGION", help="Region of the catalogue; with --cloud aws that of the cluster."),
    _option("--cluster-name", default="", metavar="NAME", help="Name of the EKS cluster, for --cloud aws."),
    _option("--aws-endpoint", default="", metavar="URL", help="Ask this URL instead of AWS, for --cloud aws."),
    _option(
        "--interruption-queue",
        default="",
        metavar="NAME",
        help="SQS queue of interruptions, for --cloud aws; empty: only status checks tell of them.",
    ),
    _option(
        "--namespace",
        metavar="NAME",
        default="kerf-system",
        show_default=True,
        help="Where Kerf runs and keeps its Lease.",
    ),
    _option("--dry-run", is_flag=True, help="Plan, explain and publish; act never."),
    _option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="One replica acts."),
    _duration("--leader-elect-lease-duration", "lease_s", "15s", "A lead that is not renewed ends after so long."),
    _duration("--leader-elect-renew-deadline", "renew_s", "10s", "A leader that cannot renew stops after so long."),
    _duration("--leader-elect-retry-period", "retry_s", "2s", "Renew, or try to lead, every so often."),
    _option("--managed-selector", default="", metavar="SELECTOR", help="Only NodePools with these labels."),
    _address("--metrics-address", "127.0.0.1:8080", "/metrics"),
    _option("--metrics-auth", is_flag=True, help="Serve /metrics only to tokens that may get it."),
    _address("--health-address", "127.0.0.1:8081", "/healthz and /readyz"),
    _duration("--unready-after", "unready_s", "15s", "Not ready once the API server is gone for so long."),
    _option("--log-format", type=_FORMS, default="text", show_default=True, help="Of the lines on standard error."),
    _option("--log-level", type=_LEVELS, default="info", show_default=True, help="The least that is logged."),
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
    known = {option.key: option for option in context.command.params if isinstance(option, _Option)}
    given: dict[str, str] = {}
    for place, key, value in _settings_in(path):
        if key not in known:
            near = get_close_matches(key, known, 1)
            raise ConfigError(f"{place}: unknown key {key}" + (f"; is {near[0]} meant?" if near else ""))
        if str(known[key].name) in given:
            raise ConfigError(f"{place}: expected each key once, got {key} again")
        given[str(known[key].name)] = value
    context.default_map = given


def _settings_in(path: str) -> Iterator[tuple[str, str, str]]:
    """(place, key, value) in order of the file. Every value is text, because `follow: off` does not mean false."""
    named = f"--config {path}"
    try:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"{named}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ConfigError(f"{named}{line}: expected YAML with one key a setting: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{named}: expected YAML with one key a setting, got {type(error).__name__}") from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{named}: expected one key a setting, such as `batch-idle: 2s`, got {_KINDS[type(root)]}")
    for key, value in root.value:
        place = f"{named}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{place}: expected the name of a setting, got {_KINDS[type(key)]}")
        if not isinstance(value, yaml.ScalarNode) or (value.style is None and value.value in _NOTHING):
            got = "nothing" if isinstance(value, yaml.ScalarNode) else _KINDS[type(value)]
            raise ConfigError(f"{place}: {key.value}: expected a text, a number or true/false, got {got}")
        yield place, key.value, value.value


@click.command(context_settings={"show_default": True})
@click.option(
    "--config", metavar="FILE", is_eager=True, expose_value=False, callback=_read_config, envvar="KERF_CONFIG",
    help="YAML with flags as keys, e.g. `batch-idle: 2s`.",
)  # fmt: skip
@_with_options
def run(**flags: Any) -> int:
    """The controllers, in the cluster of the kubeconfig or of the pod that this is.

    Every flag is also an environment variable (`--batch-idle` is KERF_BATCH_IDLE) and a key of the file that --config
    names; a flag wins over a variable, a variable over the file.
    """
    names = [setting.field for setting in settings_table()]
    settings = settings_of({name: str(flags.pop(name)) for name in names})
    if flags["cloud"] == "aws":
        # EKS gives its pods the region of the cluster.
        flags["region"] = next(filter(None, (flags["region"], *map(os.environ.get, _REGIONS))), None)
    options = RunOptions(is_dry_run=flags.pop("dry_run"), elects=flags.pop("leader_elect"), **flags)
    _check(options)
    from kerf.cli.run.replica import main
    from kerf.telemetry import configure

    configure("json" if options.log_format == "json" else "text", options.log_level)
    return asyncio.run(main(options, settings))


def _check_cloud(options: RunOptions) -> None:
    """Refuse what belongs to another cloud, and what AWS cannot do without. Raises ConfigError."""
    given = {
        "--cluster-name": options.cluster_name,
        "--aws-endpoint": options.aws_endpoint,
        "--interruption-queue": options.interruption_queue,
    }
    if options.cloud != "aws":
        unused = next((flag for flag, value in given.items() if value), "")
        if unused:
            raise ConfigError(f"{unused}: expected --cloud aws, got --cloud {options.cloud}")
        return
    _check_endpoint(options.aws_endpoint)
    if not options.cluster_name:
        raise ConfigError("--cloud aws: expected --cluster-name (KERF_CLUSTER_NAME, key cluster-name), got nothing")
    if not options.region:
        raise ConfigError("--cloud aws: expected --region (KERF_REGION, key region) or AWS_REGION, got neither")
    if options.catalog:
        raise ConfigError("--catalog: expected nothing with --cloud aws, which sells what AWS says")
    if options.managed_selector:
        why = "two autoscalers of one EC2NodeClass delete each other's launch templates"
        raise ConfigError(f"--managed-selector: expected nothing with --cloud aws: {why}")


def _check_endpoint(endpoint: str) -> None:
    """Refuse what is no URL. Raises ConfigError."""
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if endpoint and not is_url:
        named = "--aws-endpoint (KERF_AWS_ENDPOINT, key aws-endpoint)"
        hint = "begin with http:// or https://, or leave it empty for AWS itself"
        expected = f"{named}: expected a URL such as http://localhost:4566, got {brief(endpoint)}"
        raise ConfigError(f"{expected} (hint: {hint})")


def _check(options: RunOptions) -> None:
    """Refuse what no flag shows alone. Raises InputError."""
    parse_selector(options.managed_selector, "--managed-selector (KERF_MANAGED_SELECTOR, key managed-selector)")
    _check_cloud(options)
    # The Lease counts whole seconds, and who has lost it must know before another can hold it.
    lease_s, renew_s, retry_s = options.lease_s, options.renew_s, options.retry_s
    if lease_s % 1 or not (lease_s > renew_s > _JITTER * retry_s >= _JITTER):
        names = [f"--leader-elect-{name}" for name in ("lease-duration", "renew-deadline", "retry-period")]
        expected = f"{names[0]} in whole seconds, longer than {names[1]}, which is longer than {_JITTER:g} times"
        got = f"{lease_s:g}s, {renew_s:g}s and {retry_s:g}s"
        raise ConfigError(f"expected {expected} {names[2]}, which is 1s at least; got {got}")
