"""Which catalogue a run uses: what `--catalog` says, else what the NodeClasses of the pools imply.

Prices of two currencies are never compared, so pools of two clouds in one input are refused here, before any plan.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from kerf.catalog import alibaba, aws, kwok
from kerf.errors import InputError
from kerf.model.market import Market
from kerf.model.nodepool import NodePool

AWS, ALIBABA, KWOK = "aws", "alibaba", "kwok"
PROVIDER_OF_GROUP = {
    "karpenter.k8s.aws": AWS,
    "karpenter.alibabacloud.com": ALIBABA,
    "karpenter.k8s.alibabacloud": ALIBABA,
    "karpenter.kwok.sh": KWOK,
}
"""API groups of the NodeClasses that Karpenter's providers define."""
_AUTO_MODE = "eks.amazonaws.com"
"""Of EKS, which buys the instances of AWS by itself."""


def provider_of(pools: Sequence[NodePool]) -> str:
    """`aws`, `alibaba` or `kwok`, by the NodeClasses of the pools; `aws` where none says.

    Raises InputError when the pools belong to two of them.
    """
    named: dict[str, NodePool] = {}
    for pool in sorted(pools, key=lambda pool: pool.name):
        provider = PROVIDER_OF_GROUP.get(pool.node_class.group)
        if provider is not None:
            named.setdefault(provider, pool)
    if len(named) > 1:
        (one, first), (other, second), *_ = sorted(named.items())
        raise InputError(
            f"NodePool {first.name} ({first.node_class.group}) is of {one} and NodePool {second.name} "
            f"({second.node_class.group}) of {other}: expected one provider, because a plan has one currency "
            "(hint: plan them apart, or name one catalogue for all with --catalog)"
        )
    return next(iter(named), AWS)


def is_known(pool: NodePool) -> bool:
    """Whether the pool's NodeClass is of a provider whose types and prices are packaged."""
    return pool.node_class.group in PROVIDER_OF_GROUP or pool.node_class.group == _AUTO_MODE


def load_market(spec: str | None, default_provider: str, region: str | None = None) -> Market:
    """What can be bought, by the text of `--catalog`: `aws[:REGION]`, `alibaba[:REGION]`, `kwok` or the path of a file.

    Without it the catalogue of `default_provider`. `region` is that of `--region`. Raises InputError for an unknown
    region and a file that cannot be read or decoded.
    """
    name, _, named_region = (spec if spec is not None else default_provider).partition(":")
    if name not in (AWS, ALIBABA, KWOK):
        return _from_file(spec or default_provider, region)
    if named_region and region and named_region != region:
        raise InputError(f"--catalog {spec} and --region {region}: expected one region, got two")
    wanted = named_region or region
    if name == KWOK:
        if wanted:
            raise InputError(f"region {wanted!r}: the kwok catalogue has no regions")
        return kwok.generic()
    if name == AWS:
        return aws.load(wanted or aws.DEFAULT_REGION)
    return alibaba.load(wanted or alibaba.DEFAULT_REGION)


def _from_file(path: str, region: str | None) -> Market:
    if region:
        raise InputError(f"--region {region}: a catalogue file has no regions, its offerings name their zones")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(
            f"--catalog {path}: expected aws[:REGION], alibaba[:REGION], kwok or a file that can be read: {reason}"
        ) from error
    return kwok.decode(text, path)


@cache
def known_types(provider: str) -> frozenset[str]:
    """Names of every type that the provider's catalogue knows, in any region, sold or not."""
    if provider == AWS:
        return frozenset(spec.name for spec in aws.specs())
    if provider == ALIBABA:
        return frozenset(spec.name for spec in alibaba.specs())
    return frozenset(kind.name for kind in kwok.generic().types) if provider == KWOK else frozenset()


@cache
def known_values(provider: str) -> Mapping[str, frozenset[str]]:
    """By label the values that types of the provider's catalogue have, in any region, sold or not.

    Of AWS alone: what a type is there says a packaged file whatever the region. Cost: all types, once.
    """
    found: dict[str, set[str]] = {}
    for spec in aws.specs() if provider == AWS else ():
        for key, held in aws.instance_type(spec).requirements.items():
            found.setdefault(key, set()).update(() if held.complement else held.values)
    return {key: frozenset(values) for key, values in found.items()}


def why_not_sold(provider: str, region: str, name: str) -> str | None:
    """Why a type that is known is not in the market of a region; None when it is there, or is not known at all."""
    if provider == AWS:
        return aws.why_not_sold(region, name)
    return alibaba.why_not_sold(region, name) if provider == ALIBABA else None
