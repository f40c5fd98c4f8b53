"""What `kerf snapshot` does: it writes all that a decision rests on as one file that people can read, edit and send.

A dump leaves the house: it goes to colleagues and into bug reports. So it holds what Kerf reads and nothing else, and
what is left out is a rule in one place (`manifests.clusterdump`) and not a habit of each writer.

Twenty thousand pods are 150 MB on the wire. Each page is cut before it is kept, and each object is written before the
next one is looked at, so the whole never exists as one text or one tree.
"""

import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import msgspec
import yaml

from kerf import __version__
from kerf.catalog import provider_of
from kerf.catalog.select import ALIBABA, AWS, KWOK
from kerf.cli.echo import echo
from kerf.cli.exits import DONE
from kerf.cli.inputs.catalogue import is_live, read_market
from kerf.cli.inputs.foreign import mounted_maps, note_foreign
from kerf.cli.inputs.input import Source, given_instant, plugin_namespaces
from kerf.cli.inputs.leader import NoLeader, RefusedReport, ask_leader
from kerf.cli.inputs.leaderflags import LeaderFlags
from kerf.cli.inputs.live import read_cluster
from kerf.cli.inputs.replay import END, digest_of
from kerf.cli.progress import progress
from kerf.engine.study.usage.history import SHARD_NAME
from kerf.errors import DecodeError
from kerf.kube.resources import Resource
from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.clusterdump.decode import cluster_dump_object, exact_text
from kerf.manifests.clusterdump.encode import MOST_BYTES, dumped
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.dispatch import FIRST, kind_of, read
from kerf.manifests.live import decode_list
from kerf.manifests.read import Documents, not_empty, read_documents
from kerf.manifests.schema import Report, path_text
from kerf.model.dump import DUMP, CatalogueSource, ClusterDump
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.snapshot import ConfigMap
from kerf.model.times import instant_s
from kerf.sharing.registry import CONFIG_MAPS, configures
from kerf.sharing.unheeded import sets_nodes

Object = dict[str, Any]
PROVIDERS = (AWS, ALIBABA, KWOK)
_MOST_CATALOGUE = 1024 * 1024
"""Characters of a catalogue file; a larger one is given again with --catalog."""


def show(output: str, is_full: bool, flags: dict[str, Any]) -> int:
    """Read all there is and write it; the exit code."""
    leader = LeaderFlags.of(flags)
    source = Source.of(flags)
    cut = Cutter(is_full)
    with progress("reading manifests" if source.files else "reading the cluster"):
        documents, namespace, missing = _documents(source, cut)
        now_s = given_instant(source.now)
        taken_s = time.time() if now_s is None and not source.files else now_s
        taken_s = None if taken_s is None else instant_s(exact_text(taken_s))
        decoded = decode(documents if source.files else _deciding(documents), taken_s, skips_broken=not source.files)
    # A dump of a dump is still of the cluster that was dumped.
    header = decoded.dump or ClusterDump(
        place=source.place, namespace=namespace, plugin_namespaces=plugin_namespaces(), missing=missing
    )
    at_s = decoded.newest_s if taken_s is None else taken_s
    header = replace(header, taken_at_s=at_s, version=__version__, is_full=is_full)
    header = _with_catalogue(_with_leader(header, source, leader), source, decoded.node_pools)
    note_foreign(decoded, header.plugin_namespaces)
    objects = objects_of(documents, decoded, header.plugin_namespaces, cut)
    write_dump(sys.stdout, output, header, objects)
    cut.tell()
    return DONE


class Cutter:
    """Cuts objects to what a dump keeps, and counts those that had to be cut for their size."""

    def __init__(self, is_full: bool) -> None:
        self._is_full = is_full
        # By name, because a page and the writer both look at an object.
        self._cut: dict[str, None] = {}

    def page(self, resource: Resource, page: bytes) -> bytes:
        """A page of a live list with each of its objects cut; the items say what they are."""
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        found = decode_list(page)
        kept = (self.object({**head, **msgspec.json.decode(item, type=Object)}) for item in found.items)
        return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [each for each in kept if each]})

    def object(self, raw: Object) -> Object | None:
        """See `manifests.clusterdump.encode.dumped`."""
        kept, was_cut = dumped(raw, is_full=self._is_full)
        if was_cut:
            metadata = raw.get("metadata") or {}
            named = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
            self._cut[f"{raw['kind']} {named}"[:120]] = None
        return kept

    def tell(self) -> None:
        """Say on stderr what was cut."""
        if self._cut:
            more = f" and {len(self._cut) - 1} more" if len(self._cut) > 1 else ""
            size = f"larger than {MOST_BYTES // 1024} KiB, cut to what Kerf reads"
            echo(f"note: {next(iter(self._cut))}{more}: {size}", err=True)


def _documents(source: Source, cut: Cutter) -> tuple[Documents, str, tuple[str, ...]]:
    """What was read, the namespace that is meant where none is said, and what is missing."""
    if source.files:
        given = read_documents(source.files, sys.stdin, recursive=source.recursive)
        return not_empty(given, source.files), "default", ()
    read = read_cluster(
        source.kubeconfig,
        source.context,
        with_usage=True,
        with_history=True,
        cut=cut.page,
        plugin_namespaces=plugin_namespaces(),
    )
    missing = (f"usage: {read.usage_problem}",) if read.usage_problem else ()
    for line in missing:
        echo(f"note: without {line}", err=True)
    return read.documents, read.namespace, missing


def _with_leader(header: ClusterDump, source: Source, flags: LeaderFlags) -> ClusterDump:
    """The header with what only the leader knows; without it, it says what is missing and why."""
    if source.files and not flags.url:
        return header
    try:
        answer = ask_leader(source.kubeconfig, source.context, flags)
    except NoLeader as error:
        line = f"the leader's stock-outs, back-offs and decisions: {error}"
        echo(f"note: without {line}", err=True)
        return replace(header, missing=(*header.missing, line))
    if answer.refused is not None:
        echo(f"note: {refused_text(answer.refused)}", err=True)
    return replace(
        header,
        strategy=answer.strategy,
        follow=answer.follow,
        preference_policy=answer.preference_policy,
        min_values_policy=answer.min_values_policy,
        plugin_namespaces=answer.plugin_namespaces or header.plugin_namespaces,
        catalogue=CatalogueSource(answer.catalog, answer.region),
        withheld=answer.withheld,
        decisions=answer.decisions,
    )


def refused_text(refused: RefusedReport) -> str:
    """What a reader of a bug report wants to know first: which rule a decision broke, where, and when."""
    breaches = [f"{each.rule}: {each.object}: expected {each.expected}, got {each.got}" for each in refused.breaches]
    first = f" ({breaches[0]})" if breaches else ""
    many = "a decision" if refused.count == 1 else f"{refused.count} decisions"
    return f"the leader left out a part of {many} that broke a rule, the last at {refused.at}{first}"


def _with_catalogue(header: ClusterDump, source: Source, pools: tuple[NodePool, ...]) -> ClusterDump:
    """The header with where the prices come from; a file is taken into it. Raises InputError as `kerf plan` does."""
    catalogue = header.catalogue
    if catalogue.name.partition(":")[0] not in ("", *PROVIDERS):
        # A file in the leader's pod: one of that name here is another, whose text the leader must not choose.
        line = f"the leader's catalogue, a file in its pod: {catalogue.name[:80]} (hint: --catalog FILE)"
        echo(f"note: without {line}", err=True)
        header, catalogue = replace(header, missing=(*header.missing, line)), CatalogueSource()
    spec, region = source.catalog or catalogue.name or None, source.region or catalogue.region or None
    market = read_market(spec, provider_of(pools) if spec is None else "", region)
    return replace(header, catalogue=_catalogue(spec, region, market))


def _catalogue(spec: str | None, region: str | None, market: Market) -> CatalogueSource:
    text = ""
    if is_live(spec):
        echo(f"note: the prices of {spec} are not in the dump: kerf plan --replay needs a --catalog", err=True)
    elif spec is not None and Path(spec).is_file():
        text = Path(spec).read_text(encoding="utf-8")
        if len(text) > _MOST_CATALOGUE:
            echo(f"note: {spec} is too large for a dump: give it with --catalog to kerf plan", err=True)
            text = ""
    return CatalogueSource(spec or "", region or "", text, digest_of(market), market.notes)


def _deciding(documents: Documents) -> Documents:
    """Those that the header, and which ConfigMaps are kept, depend on: all others are looked at when written."""
    kinds = ("NodePool", "ConfigMap", "DaemonSet", "Deployment")
    return Documents(tuple(each for each in documents if any(each.may_be(kind) for kind in kinds)))


def objects_of(documents: Documents, decoded: Decoded, namespaces: Collection[str], cut: Cutter) -> Iterator[Object]:
    """Every object that Kerf reads, cut, in the order of the input; one at a time. `namespaces` are those of plugins.

    Of the ConfigMaps of `decoded` those that say how GPUs are shared, by their form or because a program mounts them.

    What cannot be read is left out with a warning, as `kerf plan` leaves it out of a cluster.
    """
    read_maps = {(each.namespace, each.name) for each in decoded.config_maps if _is_read(each, namespaces)}
    read_maps |= {(namespace, name) for namespace, name in mounted_maps(decoded) if namespace in namespaces}
    for document in documents:
        raw = document.value()
        if not _is_readable(raw):
            continue
        if raw["kind"] == "ConfigMap":
            metadata = raw["metadata"]
            if (metadata.get("namespace") or "default", metadata["name"]) not in read_maps:
                continue
        kept = cut.object(raw)
        if kept is not None:
            yield kept


def _is_readable(raw: Any) -> bool:
    """Whether it is of a kind that a dump holds, and has its form; the files of -f have been checked whole."""
    try:
        kind = kind_of(raw)
        if raw["kind"] == DUMP or kind is None:
            return raw["kind"] in FIRST
        report = Report()
        read(kind, raw, report, AdmissionDefaults(), "")
        for problem in report.problems[:1]:
            metadata = raw.get("metadata")
            name = metadata.get("name", "?") if isinstance(metadata, dict) else "?"
            place = f"{raw['kind']} {name if isinstance(name, str) else '?'}"
            raise DecodeError(path_text(problem.path), problem.expected, problem.got, place=place)
    except DecodeError as error:
        echo(f"warning: left out: {error}", err=True)
        return False
    return True


def _is_read(held: ConfigMap, namespaces: Collection[str]) -> bool:
    """Whether a ConfigMap says what was used; or how GPUs are shared, by its name or content, where plugins are."""
    if held.name.startswith(SHARD_NAME):
        return True
    return held.namespace in namespaces and (held.name in CONFIG_MAPS or configures(held) or sets_nodes(held))


def write_dump(out: TextIO, output: str, header: ClusterDump, objects: Iterable[Object]) -> None:
    """One object a line as the items of a List, or one YAML document each."""
    encode = msgspec.json.encode
    if output == "yaml":
        for raw in (cluster_dump_object(header), *objects):
            # Read back from JSON, so equal lists are not written as one list and references to it.
            yaml.safe_dump(msgspec.json.decode(encode(raw)), out, sort_keys=False, allow_unicode=True, width=10_000,
                           explicit_start=True)  # fmt: skip
        # Without it a file that lacks half of its documents looks whole.
        out.write(END + "\n")
        return
    out.write('{"apiVersion":"v1","kind":"List","items":[\n')
    out.write(encode(cluster_dump_object(header)).decode())
    for raw in objects:
        out.write(",\n")
        out.write(encode(raw).decode())
    out.write("\n]}\n")
