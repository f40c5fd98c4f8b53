"""How `kerf run` starts: what no flag shows alone is refused, then a replica runs."""

import asyncio
import os
from typing import Any
from urllib.parse import urlsplit

from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.run.options import NO_CLOUD, RunOptions
from kerf.config import settings_of, settings_table
from kerf.errors import ConfigError, brief

_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_JITTER = 1.2


def start(flags: dict[str, Any]) -> int:
    """Run the controllers until they end; the exit code. Raises InputError, and ClusterUnreachable."""
    names = [setting.field for setting in settings_table()]
    settings = settings_of({name: str(flags.pop(name)) for name in names})
    if not flags["cloud"]:
        raise ConfigError(f"--cloud (KERF_CLOUD, key cloud): {NO_CLOUD}")
    if flags["cloud"] == "aws":
        # EKS gives its pods the region of the cluster.
        flags["region"] = next(filter(None, (flags["region"], *map(os.environ.get, _REGIONS))), None)
    options = RunOptions(is_dry_run=flags.pop("dry_run"), elects=flags.pop("leader_elect"), **flags)
    _check(options)
    # After the checks, so a mistake is reported at once.
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
    if options.acted_out_on_real_cluster:
        raise ConfigError("--acted-out-on-real-cluster: expected --cloud kwok, got --cloud aws")
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
