"""`kerf advise per-node N`: what each of N jobs may ask so that one node holds them all."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK, ClusterUnreachable
from kerf.cli.inputs.input import ReadInput, Source, input_of_catalogue, read_input
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import counted, emit, table
from kerf.engine.study.sizing.assortment import ANY_POOL, any_pool, offered_if_named
from kerf.engine.study.sizing.density import Breakdown, Division, by_density
from kerf.engine.supply.offered import OfferedType
from kerf.errors import InputError
from kerf.kube.client import NoCluster
from kerf.model.instancetypes import price_number, price_text
from kerf.model.quantities import Resources, quantity_text

_MOST_ROWS = 10


def show(jobs: int, flags: dict[str, Any]) -> int:
    """Print what each of so many jobs may ask; the exit code. Raises InputError."""
    instance_type, nodepool = flags["instance_type"], flags["nodepool"]
    read = _read(Source.of(flags), instance_type)
    found = by_density(_offered_types(read, instance_type, nodepool), jobs)
    data = {
        "apiVersion": API_VERSION,
        "kind": "JobsPerNode",
        "jobs": jobs,
        "items": [_object(division, read.market.currency) for division in found],
    }
    emit(flags["output"], lambda: data, lambda: _lines(found, read.market.currency))
    return DONE if any(division.is_possible for division in found) else LOOK


def _read(source: Source, instance_type: str | None) -> ReadInput:
    try:
        return read_input(source)
    except ClusterUnreachable as error:
        if instance_type is None or not isinstance(error.__cause__, NoCluster):
            raise
    echo("note: no cluster is configured and no file given: DaemonSets and NodePools are not known", err=True)
    return input_of_catalogue(source)


def _offered_types(read: ReadInput, instance_type: str | None, nodepool: str | None) -> Sequence[OfferedType]:
    snapshot, market = read.snapshot, read.market
    pools = [pool for pool in snapshot.node_pools if nodepool in (None, pool.name)]
    if nodepool is not None and not pools:
        known = ", ".join(pool.name for pool in snapshot.node_pools) or "none"
        raise InputError(f"--nodepool {nodepool}: expected one of the NodePools there ({known}), got {nodepool!r}")
    if instance_type is None:
        if not pools:
            raise InputError(f"the {read.place} has no NodePool: give --instance-type TYPE")
        names = {pool.name for pool in pools}
        return [c for c in read.world.supply.available if c.pool.name in names]
    kind = market.find(instance_type)
    if kind is None:
        close = difflib.get_close_matches(instance_type.lower(), [each.name for each in market.types], 3)
        nearest = f"; nearest known: {', '.join(close)}" if close else ""
        raise InputError(f"--instance-type {instance_type}: not sold in {market.region or 'the catalogue'}{nearest}")
    found = [c for c in read.world.supply.available if c.pool in pools and c.kind.name == instance_type]
    if found:
        return found
    if pools:
        echo(f"note: no NodePool of the {read.place} allows {instance_type}; as if one did", err=True)
    return offered_if_named(kind, pools, read.world) or offered_if_named(kind, [any_pool()], read.world)


def _object(division: Division, currency: str) -> Json:
    offered = division.offered
    return {
        "nodePool": offered.pool.name,
        "instanceType": offered.kind.name,
        "currency": currency,
        "perHour": price_number(offered.price_micro),
        "requests": _texts(division.each),
        "fit": division.fit,
        "podsLeft": division.pods_left,
        "resources": [_breakdown_object(share) for share in division.shares],
        "gpus": [{"memoryMiB": each.memory_mib, "slots": each.slots} for each in offered.room.devices],
        "naive": {"requests": _texts(division.naive), "fit": division.naive_fit},
    }


def _breakdown_object(share: Breakdown) -> Json:
    amounts = {
        "machine": share.machine,
        "reserved": share.reserved,
        "daemonSets": share.daemons,
        "left": share.left,
        "each": share.each,
        "naive": share.naive,
    }
    texts = {name: quantity_text(share.resource, amount) for name, amount in amounts.items()}
    return {"resource": share.resource, **texts, "naiveFit": share.naive_fit}


def _texts(requests: Resources) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in requests.items()}


def _lines(found: Sequence[Division], currency: str) -> Iterator[str]:
    if not found:
        yield "no NodePool offers an instance type"
        return
    first, *others = found
    yield from _detail(first, currency)
    if others:
        yield ""
        headers = ("NODEPOOL", "TYPE", f"{currency}/H", "EACH MAY ASK", "HOLDS", "MACHINE/N FITS")
        yield from table(headers, map(_row, found[:_MOST_ROWS]))
        if len(found) > _MOST_ROWS:
            yield f"and {counted(len(found) - _MOST_ROWS, 'more expensive type')}"


def _row(division: Division) -> tuple[str, ...]:
    offered = division.offered
    return (
        offered.pool.name,
        offered.kind.name,
        price_text(offered.price_micro),
        _asked(division.each),
        str(division.fit) if division.is_possible else f"{division.fit}, not {division.jobs}",
        str(division.naive_fit),
    )


def _asked(requests: Resources) -> str:
    return ", ".join(f"{name} {text}" for name, text in _texts(requests).items())


def _detail(division: Division, currency: str) -> Iterator[str]:
    offered, jobs = division.offered, division.jobs
    a_job = price_text(-(-offered.price_micro // jobs))
    name = offered.kind.name if offered.pool.name == ANY_POOL else offered.target.name
    yield f"{name}: {price_text(offered.price_micro)} {currency}/h, {a_job} a job"
    headers = (
        "RESOURCE",
        "MACHINE",
        "KUBELET",
        "DAEMONSETS",
        "LEFT",
        f"LEFT/{jobs}",
        f"MACHINE/{jobs}",
        "FIT",
    )
    yield from table(headers, map(_breakdown_row, division.shares), indent="  ")
    yield ""
    if division.is_possible:
        yield f"advice: {counted(jobs, 'job')} a node: each may ask {_asked(division.each)}"
    else:
        yield f"no advice: a node of this type holds {division.fit}, not {jobs}"
    yield from (f"  {line}" for line in _whys(division))
    if division.is_possible:
        yield f"  resources: {{requests: {{{_yaml(division.each)}}}{_limits(division)}}}"


def _breakdown_row(share: Breakdown) -> tuple[str, ...]:
    amounts = (share.machine, share.reserved, share.daemons, share.left, share.each, share.naive)
    return (share.resource, *(quantity_text(share.resource, amount) for amount in amounts), str(share.naive_fit))


def _whys(division: Division) -> Iterator[str]:
    jobs = division.jobs
    for share in division.shares:
        if share.naive_fit < jobs:
            machine, naive, left, daemons, reserved = (
                quantity_text(share.resource, amount)
                for amount in (share.machine, share.naive, share.left, share.daemons, share.reserved)
            )
            yield (
                f"{share.resource} {naive} ({machine} / {jobs}) gives {share.naive_fit}, not {jobs}: kubelet keeps "
                f"{reserved} and DaemonSets ask {daemons}, so {left} are left"
            )
    if division.pods_left < jobs:
        yield f"the node takes {counted(division.pods_left, 'pod')} beside its DaemonSets"
    yield from _card_whys(division)


def _card_whys(division: Division) -> Iterator[str]:
    devices, jobs = division.offered.room.devices, division.jobs
    if not devices:
        return
    cards = f"{counted(len(devices), 'GPU')} of {min(d.memory_mib for d in devices)} MiB"
    if not division.cards:
        title = division.offered.target.family.title
        yield f"its {cards} cannot be divided among {jobs} by {title}: only cpu and memory are"
    elif len(devices) < jobs and division.offered.target.family.resources:
        slices, total = -(-jobs // len(devices)), sum(d.memory_mib for d in devices)
        yield (
            f"{counted(slices, 'slice')} a GPU: memory is a card's ({cards}), not the node's, "
            f"which {total} MiB / {jobs} = {total // jobs} MiB forgets"
        )


def _yaml(requests: Resources) -> str:
    return ", ".join(f"{name}: {text}" for name, text in _texts(requests).items() if "/" not in name)


def _limits(division: Division) -> str:
    inner = ", ".join(f"{name}: {text}" for name, text in _texts(division.cards).items())
    return f", limits: {{{inner}}}" if inner else ""
