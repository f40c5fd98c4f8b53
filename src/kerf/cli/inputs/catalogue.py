"""What `--catalog` says, for every command that reads it: a packaged catalogue, a file, or what AWS sells just now."""

import asyncio
import os
from functools import cache

from kerf.catalog import load_market
from kerf.catalog.aws import UnknownRegion
from kerf.catalog.select import AWS
from kerf.cli.clock import SystemClock
from kerf.cli.echo import echo
from kerf.cli.exits import ClusterUnreachable
from kerf.errors import CloudError, InputError
from kerf.model.market import Market

LIVE = f"{AWS}:live"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def read_market(spec: str | None, default_provider: str, region: str | None = None) -> Market:
    """See `load_market`; also `aws:live[:REGION]`, which asks AWS by the credentials of the environment.

    Raises InputError, and ClusterUnreachable where AWS does not answer.
    """
    if not is_live(spec):
        try:
            return load_market(spec, default_provider, region)
        except UnknownRegion as error:
            raise InputError(f"{error} (hint: --catalog {LIVE}:{error.region} asks AWS)") from error
    named = (spec or "").removeprefix(LIVE).removeprefix(":")
    if named and region and named != region:
        raise InputError(f"--catalog {spec} and --region {region}: expected one region, got two")
    wanted = named or region or next((os.environ[name] for name in _REGIONS if os.environ.get(name)), "")
    if not wanted:
        raise InputError(f"--catalog {LIVE}: expected a region: {LIVE}:REGION, --region, or AWS_REGION")
    return _asked(wanted)


def is_live(spec: str | None) -> bool:
    """Whether the catalogue is what a cloud says."""
    return spec is not None and (spec == LIVE or spec.startswith(f"{LIVE}:"))


@cache
def _asked(region: str) -> Market:
    """Asked once: a command that looks again and again keeps the prices that it began with."""
    from kerf.clouds.aws.clients import BotoApi
    from kerf.clouds.aws.livemarket import live_market

    api = BotoApi(region)
    try:
        market = asyncio.run(live_market(api, SystemClock(), region))
        for note in market.notes:
            echo(f"note: {note}", err=True)
        return market
    except CloudError as error:
        raise ClusterUnreachable(f"--catalog {LIVE}:{region}: {error}") from error
    finally:
        api.close()
