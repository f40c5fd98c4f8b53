"""A plan made again from a dump: the same instant, settings and market, so the same bytes without the cluster."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kerf import __version__
from kerf.catalog import provider_of
from kerf.catalog.kwok import decode as decode_catalogue
from kerf.catalog.select import AWS
from kerf.cli.echo import echo
from kerf.cli.inputs.catalogue import LIVE, is_live, read_market
from kerf.cli.render import counted
from kerf.errors import DecodeErrors, InputError, cut
from kerf.manifests.read import Documents, read_documents
from kerf.model.dump import DUMP, ClusterDump
from kerf.model.market import Market
from kerf.model.nodepool import NodePool

END = "..."
"""The last line of a dump in YAML; JSON that was cut is no JSON."""
_TAIL = 64
"""Bytes at the end in which it is looked for."""
_MOST_QUOTED = 200
"""Characters of what a dump says of itself that are shown: a stranger may have written it."""


def read_dump(path: str) -> Documents:
    """The documents of one dump.

    Raises DecodeErrors for a file that cannot be read whole: what is left of one is another cluster. Raises InputError
    for one without a header, which states no instant.
    """
    documents = read_documents((path,), sys.stdin)
    if documents.errors:
        raise DecodeErrors(documents.errors)
    if not any(document.may_be(DUMP) for document in documents):
        raise InputError(f"--replay {path}: expected a dump of kerf snapshot, got no {DUMP} (hint: give it with -f)")
    if path != "-" and not _is_whole(Path(path)):
        echo(f"warning: {path} does not end with {END}, as a dump in YAML does: a part of it may be missing", err=True)
    return documents


def _is_whole(path: Path) -> bool:
    """Whether it is JSON, or has the mark of its end."""
    with path.open("rb") as file:
        if file.read(1) == b"{":
            return True
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read().rstrip().endswith(END.encode())


def replayed_market(
    dump: ClusterDump, pools: Sequence[NodePool], at_s: float, catalog: str | None, region: str | None
) -> Market:
    """What could be bought when the dump was taken, less what is refused at `at_s`.

    `catalog` and `region`, where they are given, go before those of the dump.

    Says on stderr where this program's prices are not those of the dump, and what is missing in it. Raises InputError.
    """
    known = dump.catalogue
    if known.text and catalog is None:
        market = decode_catalogue(known.text, known.name)
    elif catalog is None and is_live(known.name):
        lacking = f"it was taken with {cut(known.name, _MOST_QUOTED)}, whose prices it does not have"
        raise InputError(f"--replay: {lacking} (hint: --catalog {AWS}, or --catalog {LIVE} for those of now)")
    else:
        named = catalog or known.name or None
        market = read_market(named, "" if named else provider_of(pools), region or known.region or None)
    if known.digest and catalog is None and region is None and known.digest != digest_of(market):
        taken = cut(", ".join(known.notes) or f"kerf {dump.version}", _MOST_QUOTED)
        echo(f"warning: the prices are not those of the dump ({taken}): the plan may differ", err=True)
    if dump.version != __version__:
        echo(
            f"note: the dump is of kerf {cut(dump.version, _MOST_QUOTED) or '?'} and this is kerf {__version__}",
            err=True,
        )
    for line in dump.missing:
        echo(f"note: the dump was taken without {cut(line, _MOST_QUOTED)}", err=True)
    held = dump.withheld.at(at_s)
    if held.sold_out or held.back_offs:
        memory = f"{counted(len(held.sold_out), 'sold-out offering')} and {counted(len(held.back_offs), 'back-off')}"
        echo(f"note: replayed with the leader's {memory}", err=True)
    return replace(
        market,
        sold_out=held.sold_out,
        back_offs=held.back_offs,
        probed=held.probed,
        price_pauses=held.price_pauses,
        move_pauses=held.move_pauses,
        price_histories=held.price_histories,
    )


def digest_of(market: Market) -> str:
    """Equal for markets in which the same is sold at the same prices; one line of text a type is hashed."""
    digest = hashlib.sha256(f"{market.provider} {market.region} {market.currency}\n".encode())
    for kind in market.types:
        sizes = ",".join(f"{name}={kind.allocatable[name]}" for name in sorted(kind.allocatable))
        cards = ",".join(f"{card.model.name}/{card.memory_mib}" for card in kind.devices)
        digest.update(f"{kind.name} {sizes} {cards}\n".encode())
        for each in kind.offerings:
            line = f" {each.zone} {each.capacity_type} {each.price_micro} {each.is_available}\n"
            digest.update(line.encode())
    return f"sha256:{digest.hexdigest()}"
