"""From flags and files to a snapshot and a market: what every command needs first.

Without -f that is a cluster. With it, the same input must give the same bytes on any day, so the present is the newest
instant that the input states, unless `--now` says otherwise.
"""

import difflib
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from kerf.catalog import provider_of, why_not_sold
from kerf.cli.collector import collector_off
from kerf.cli.echo import echo
from kerf.cli.inputs.catalogue import read_market
from kerf.cli.inputs.deadlines import given_up, overdue_text
from kerf.cli.inputs.foreign import PLUGIN_NAMESPACES_VARIABLE, note_foreign, plugin_deployments
from kerf.cli.inputs.gaps import gaps, is_assumed, with_claims
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.progress import Meter, progress
from kerf.cli.render import counted
from kerf.cli.warnings import grouped
from kerf.config import settings_of
from kerf.engine.disruption.outdated import by_age, by_pool
from kerf.engine.disruption.quiet import remaining_s
from kerf.engine.leaving import with_leaving
from kerf.engine.study.usage.history import SHARD_NAME
from kerf.engine.study.usage.samples import SampleFault, joined
from kerf.engine.world import World
from kerf.errors import DecodeError, InputError
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.read import Documents, not_empty, read_documents
from kerf.manifests.workloads.expansion import expand, with_replicas
from kerf.model.constraints import Requirements
from kerf.model.dump import DUMP, ClusterDump
from kerf.model.groups import group_of
from kerf.model.large import Large
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE, DRIFTED, INITIALIZED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, ConfigMap, Upserted
from kerf.model.times import instant_s, instant_text
from kerf.model.usage import NO_USAGE, Usage
from kerf.state import ClusterState, observed_memory

_READ, _LISTED, _DECODED, _EXPANDED = 0.3, 0.7, 0.8, 0.85
"""How much of reading is done once the files are read, a cluster has answered, all is decoded, and pods are there."""
_AT_LEAST_S, _BYTES_A_S, _A_POD_S, _CLUSTER_S = 0.3, 4_000_000, 0.00002, 2.0
"""What reading takes, about: only guesses of how far it is rest on it."""


@dataclass(frozen=True)
class Source:
    """What the flags of `options.input_options` say, and `--replay`, which only `kerf plan` has."""

    files: tuple[str, ...] = ()
    recursive: bool = False
    catalog: str | None = None
    region: str | None = None
    now: str | None = None
    replicas: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    replay: str | None = None

    @classmethod
    def of(cls, flags: dict[str, Any]) -> "Source":
        """Takes its own flags out of `flags`."""
        return cls(**{field.name: flags.pop(field.name) for field in fields(cls) if field.name in flags})

    @property
    def place(self) -> str:
        """What an object is in: `input` or `cluster`."""
        return "input" if self.files else "cluster"

    @property
    def is_live(self) -> bool:
        """Whether a cluster is asked."""
        return not self.files and not self.replay


@dataclass(frozen=True, repr=False)
class ReadInput(Large):
    """Everything that was read: the decoded objects, all pods, the cluster at one moment, and what can be bought.

    `place` is what it was read from, `input` or `cluster`; an object without a namespace is looked for in `namespace`
    first. `usage` is what pods and nodes that exist use now, where `read_input` was asked for it; `measured_s` is until
    when a sample can be believed. `missing` says what the input seems to lack, and what follows.
    """

    decoded: Decoded
    pods: tuple[Pod, ...]
    snapshot: ClusterSnapshot
    market: Market
    place: str = "input"
    namespace: str = "default"
    usage: Usage = NO_USAGE
    measured_s: float = 0
    missing: tuple[str, ...] = ()

    @cached_property
    def world(self) -> World:
        """What decisions are made from; what is for sale is worked out once."""
        return World(self.snapshot, self.market)

    @cached_property
    def pods_by_key(self) -> dict[str, Pod]:
        """Pods by `namespace/name`."""
        return {pod.key: pod for pod in self.pods}


def read_input(source: Source, *, with_usage: bool = False, with_history: bool = False) -> ReadInput:
    """Read, decode, expand, and join; with `with_usage` also what pods and nodes use, and what is remembered of it.

    Prints warnings on stderr, and why there is no usage where it was asked for. Raises InputError and
    ClusterUnreachable.
    """
    doing, about_s = "reading manifests", _about_s(source.files)
    if source.is_live:
        doing, about_s = "reading the cluster", _CLUSTER_S
    with collector_off(), progress(doing, about_s) as meter:
        now_s = given_instant(source.now)
        documents, namespace, usage_problem = _documents(
            source, meter, with_usage=with_usage, with_history=with_history
        )
        if now_s is None and source.is_live:
            now_s = time.time()
        decoded = decode(documents, now_s, skips_broken=not source.files, tell=meter.part(_READ, _DECODED))
        for setting in source.replicas:
            decoded = with_replicas(decoded, setting)
        _print_warnings(decoded)
        dump = decoded.dump if source.replay else None
        if source.replay and dump is None:
            raise InputError(
                f"--replay {source.replay}: expected the {DUMP} of kerf snapshot whole, got one with errors"
            )
        # What a cluster has is all there is; files may lack something, and so does their dump.
        place = source.place if dump is None else dump.place
        is_whole = dump is not None and place != "input"
        missing = [] if is_whole else gaps(decoded, place)
        decoded = decoded if is_whole else with_claims(decoded)
        namespaces = plugin_namespaces() if dump is None else dump.plugin_namespaces
        note_foreign(decoded, namespaces)
        at_s = now_s if now_s is not None else decoded.newest_s or 0
        if source.now is not None:
            _note_the_future(decoded, source.now, at_s)
        market = _market(source, decoded.node_pools, dump, at_s)
        meter.guess(_EXPANDED, _A_POD_S * len(decoded.pods))
        pods = expand(decoded)
        meter.guess(1.0, _A_POD_S * len(pods))
        snapshot = _snapshot(decoded, pods, at_s, namespaces)
        snapshot = replace(snapshot, may_lack_kinds=place == "input")
    observed = observed_memory(snapshot.node_pools, snapshot.nodes)
    market = replace(market, observed_memory_mib=observed)
    measured_s = at_s if now_s is not None else max(at_s, _last_measured_s(decoded))
    usage = _usage(decoded, measured_s, usage_problem) if with_usage else NO_USAGE
    named = namespace if dump is None else dump.namespace
    return ReadInput(decoded, pods, snapshot, market, place, named, usage, measured_s, tuple(missing))


def input_of_catalogue(source: Source) -> ReadInput:
    """What can be bought, and nothing else. Raises InputError."""
    return ReadInput(Decoded(), (), ClusterSnapshot(0), _market(source, (), None, 0), source.place)


def _documents(source: Source, meter: Meter, *, with_usage: bool, with_history: bool) -> tuple[Documents, str, str]:
    """What was read, the namespace that is meant where none is said, and why there is no usage."""
    if source.replay:
        from kerf.cli.inputs.replay import read_dump

        return read_dump(source.replay), "default", ""
    if source.files:
        meter.guess(_READ, _READ * _about_s(source.files))
        tell = meter.part(0.0, _READ)
        read = read_documents(source.files, sys.stdin, recursive=source.recursive, tell=tell)
        return not_empty(read, source.files), "default", ""
    from kerf.cli.inputs.live import read_cluster

    meter.guess(_LISTED, _CLUSTER_S)
    tell = meter.part(0.0, _LISTED)
    found = read_cluster(
        source.kubeconfig,
        source.context,
        with_usage=with_usage,
        with_history=with_history,
        tell=tell,
        plugin_namespaces=plugin_namespaces(),
    )
    return found.documents, found.namespace, found.usage_problem


def _about_s(paths: Sequence[str]) -> float:
    """About how long the files take, by their bytes; a directory counts as the files in it."""
    files = (os.path.join(path, name) for path in paths if os.path.isdir(path) for name in os.listdir(path))
    size = sum(os.path.getsize(each) for each in (*paths, *files) if os.path.isfile(each))
    return _AT_LEAST_S + size / _BYTES_A_S


def _last_measured_s(decoded: Decoded) -> float:
    """When what is there was measured last; 0 without a sample of it.

    Objects state when they changed, which may be long ago: how fresh a sample is, in a file, goes by the other samples.
    What the present is for all else never comes from measures.
    """
    pods, nodes = {pod.key for pod in decoded.pods}, {node.name for node in decoded.nodes}
    times = [each.at_s for key, each in decoded.usage.pods.items() if key in pods]
    times += [each.at_s for name, each in decoded.usage.nodes.items() if name in nodes]
    return max(times, default=0)


def _usage(decoded: Decoded, now_s: float, problem: str) -> Usage:
    """The usage of what exists, as fresh as advice needs it. Says what is left out on stderr."""
    if problem:
        echo(f"note: without usage: {problem}", err=True)
    pods, nodes = {pod.key: pod for pod in decoded.pods}, {node.name: node for node in decoded.nodes}
    found = joined(decoded.usage, pods, nodes, now_s)
    for fault, number in found.left_out.items():
        what = "which tell nothing of now" if fault == SampleFault.STALE else "left out"
        echo(f"note: usage: {counted(number, 'sample')} {fault}, {what}", err=True)
    return found.usage


def selected(read: ReadInput, namespace: str | None, selector: str | None) -> ReadInput:
    """The same with only those pods pending that are meant, and whole groups of them; running pods all stay.

    Pods of nodes that go wait already (`engine.leaving`), and are meant or not like the others.
    """
    if namespace is None and selector is None:
        return read
    asked, snapshot = parse_selector(selector or ""), with_leaving(read.snapshot)
    waiting = snapshot.pending
    meant = {pod.key for pod in waiting if is_meant(pod, namespace, asked)}
    groups = {group for pod in waiting if pod.key in meant and (group := group_of(pod)) is not None}
    pending = tuple(pod for pod in waiting if pod.key in meant or group_of(pod) in groups)
    return replace(read, snapshot=replace(snapshot, pending=pending))


def is_meant(pod: Pod, namespace: str | None, asked: Requirements) -> bool:
    """Whether the pod is of the namespace (None: any) and has the labels."""
    return (namespace is None or pod.namespace == namespace) and asked.unsatisfied_by(pod.labels) is None


def given_instant(text: str | None) -> float | None:
    """Seconds of `--now`; None without it. Raises InputError."""
    if text is None:
        return None
    try:
        return instant_s(text)
    except ValueError:
        raise InputError(f"--now {text}: expected an instant such as 2026-01-05T12:00:00Z") from None


def _print_warnings(decoded: Decoded) -> None:
    for warning in grouped(decoded.warnings):
        echo(f"warning: {warning}", err=True)
    # A scenario stands beside its manifests and is for `kerf simulate`.
    skipped = dict(decoded.skipped_kinds)
    if skipped:
        kinds = ", ".join(f"{kind} ({number})" for kind, number in sorted(skipped.items()))
        echo(f"note: kinds that Kerf does not read: {kinds}", err=True)


def plugin_namespaces() -> tuple[str, ...]:
    """Where GPU plugins have their ConfigMaps, as `kerf run` takes it from the environment. Raises ConfigError."""
    text = os.environ.get(PLUGIN_NAMESPACES_VARIABLE)
    return settings_of({"plugin_namespaces": text} if text else {}).plugin_namespaces


def _note_the_future(decoded: Decoded, now: str, at_s: float) -> None:
    """Say on stderr where something that was read is made only after the instant that is given as the present."""
    objects: Iterable[Node | NodeClaim | Pod] = (*decoded.nodes, *decoded.node_claims, *decoded.pods)
    made = [each.created_s for each in objects if each.created_s > at_s]
    if made:
        newest, verb = instant_text(max(made)), "is" if len(made) == 1 else "are"
        echo(
            f"note: --now {now}: {counted(len(made), 'object')} {verb} newer, up to {newest}; they count as new",
            err=True,
        )


def _market(source: Source, pools: tuple[NodePool, ...], dump: ClusterDump | None, at_s: float) -> Market:
    if dump is not None:
        from kerf.cli.inputs.replay import replayed_market

        market = replayed_market(dump, pools, at_s, source.catalog, source.region)
    else:
        provider = provider_of(pools) if source.catalog is None else ""
        market = read_market(source.catalog, provider, source.region)
    not_sold = {}
    for pool in pools:
        for name in _unknown_types(pool, market):
            why = why_not_sold(market.provider, market.region, name)
            if why:
                not_sold[name] = why
            close = difflib.get_close_matches(name, [kind.name for kind in market.types], 1)
            meant = f"; is {close[0]} meant?" if close else ""
            problem = f"{name}: {why}" if why else f"unknown instance type {name}{meant}"
            echo(f"warning: NodePool {pool.name}: {problem}", err=True)
    return replace(market, not_sold=not_sold)


def _unknown_types(pool: NodePool, market: Market) -> list[str]:
    """Types that the pool names and the market does not sell, by name."""
    return [name for name in sorted(pool.named_types) if market.find(name) is None]


def _snapshot(decoded: Decoded, pods: tuple[Pod, ...], now_s: float, namespaces: Sequence[str]) -> ClusterSnapshot:
    pools = {pool.name: pool for pool in decoded.node_pools}
    labels = {node.provider_id: node.labels for node in decoded.nodes if node.provider_id}
    claims = (
        _matured(claim, labels.get(claim.provider_id, {}), pools.get(claim.node_pool), now_s)
        for claim in decoded.node_claims
    )
    state, left_out = ClusterState(assume_node_classes=True, plugin_namespaces=namespaces), list[str]()
    for group in (
        decoded.node_pools,
        decoded.overlays,
        decoded.node_classes,
        decoded.nodes,
        decoded.daemon_sets,
        plugin_deployments(decoded),
        decoded.cluster_policies,
        decoded.disruption_budgets,
        # Checkpoints are no configuration, and large.
        (held for held in decoded.config_maps if not held.name.startswith(SHARD_NAME)),
        decoded.quotas,
        decoded.windows,
        decoded.pod_groups,
        decoded.pod_templates,
        decoded.provisioning_requests,
        decoded.capacity_buffers,
        decoded.scalables,
        decoded.cron_jobs,
        decoded.namespaces,
        decoded.services,
        decoded.volume_claims,
        decoded.volumes,
        decoded.storage_classes,
        decoded.csi_nodes,
        decoded.volume_attachments,
        decoded.runtime_classes,
        claims,
        pods,
    ):
        for value in group:
            try:
                state.apply(Upserted(value))
            except DecodeError as error:
                # What others have written must not end the plan for everybody; who needs it has its reason.
                left_out.append(f"left out: {error}")
                if isinstance(value, ConfigMap):
                    state.take_as_it_is(value)
    for warning in grouped(left_out):
        echo(f"warning: {warning}", err=True)
    overdue = [over for claim in state.claims() if (over := given_up(claim, state, now_s)) is not None]
    for over in overdue:
        state.apply(Upserted(over))
    if overdue:
        echo(f"note: {overdue_text(overdue)}", err=True)
    return state.snapshot(now_s, state.pending())


def _matured(claim: NodeClaim, labels: Mapping[str, str], pool: NodePool | None, now_s: float) -> NodeClaim:
    """The claim as the controllers would have it at that time: consolidatable once its quiet time is over, and drifted
    where its pool says something else now, or once it is old where that counts as drift. `labels` are its node's."""
    if is_assumed(claim) or pool is None or not claim.is_true(INITIALIZED):
        return claim
    drift = by_pool(claim, labels, pool) or by_age(claim, pool, now_s)
    if drift is not None and not claim.is_true(DRIFTED):
        claim = claim.with_condition(Condition(DRIFTED, TRUE, drift, "", now_s))
    left_s = remaining_s(claim, pool, now_s)
    if left_s is None or left_s > 0:
        return claim
    return claim.with_condition(Condition(CONSOLIDATABLE, TRUE, CONSOLIDATABLE, "", now_s))
