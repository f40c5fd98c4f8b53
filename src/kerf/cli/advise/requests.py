"""`kerf advise requests`: what a workload should ask for, from what it used. A patch is printed and never applied."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.naming import Wanted
from kerf.cli.inputs.prometheus import Prometheus
from kerf.cli.inputs.wanted import key_of, pods_of, workload_of
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import apart, counted, emit, table
from kerf.engine.study.usage.history import SHARD_NAME, History, WorkloadName, entries_of, history_of
from kerf.engine.study.usage.overload import HIGH_PERCENT, node_loads
from kerf.engine.study.usage.requests import (
    CPU_MARGIN_PERCENT,
    CPU_PERCENTILE,
    PEAK_MARGIN_PERCENT,
    Recommendation,
    advised_requests,
    gpu_memory_of,
    requests_patch,
)
from kerf.engine.study.usage.samples import believed
from kerf.engine.study.usage.sketch import DAY_S
from kerf.errors import InputError
from kerf.model.pods import Container
from kerf.model.quantities import CPU, MEMORY, MIB, quantity_text
from kerf.model.times import instant_text
from kerf.model.usage import PodUsage
from kerf.sharing.hami.config import CHART_DEFAULTS, HamiConfig
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import families_of

_RULE = (
    f"cpu: p{CPU_PERCENTILE} plus {CPU_MARGIN_PERCENT} %; memory: peak plus {PEAK_MARGIN_PERCENT} %"
    " (a container that exceeds its memory is killed)"
)
_IMMUTABLE = ("Pod", "Job")
"""What they ask for cannot be changed: the patch is for the manifest that makes the next one."""


@dataclass(frozen=True)
class _Asked:
    """The workload, its containers as it would make them now, and what is known of their use.

    `pods` are those of today with samples; `crowded` has how many percent of its cpu are used on nodes of theirs that
    have none left.
    """

    name: WorkloadName
    containers: tuple[Container, ...]
    history: History
    pods: int
    crowded: Mapping[str, int]
    config: HamiConfig


@dataclass(frozen=True)
class _Advice:
    """What is advised for one workload, and from what."""

    asked: _Asked
    history: History
    rows: tuple[Recommendation, ...]
    patch: Json

    @property
    def is_known(self) -> bool:
        return any(row.advised is not None for row in self.rows)


def show(wanted: Sequence[Wanted], flags: dict[str, Any]) -> int:
    """Print the advice for workloads, or the patch of one alone; the exit code. Raises ObjectNotFound."""
    is_patch, output = flags.pop("is_patch"), flags.pop("output")
    prometheus = {key: flags.pop(key) for key in ("prometheus", "token_file", "days")}
    read = read_input(Source.of(flags), with_usage=True, with_history=True)
    found = [_advice(read, one, prometheus) for one in wanted]
    if is_patch:
        _print_patch(found[0])
    else:
        items = [_object(each) for each in found]
        several = {"apiVersion": API_VERSION, "kind": "RequestsAdviceList", "items": items}
        emit(output, lambda: several if len(items) > 1 else items[0], lambda: apart(map(_lines, found)))
    return DONE if all(each.is_known for each in found) else LOOK


def _advice(read: ReadInput, wanted: Wanted, prometheus: Mapping[str, Any]) -> _Advice:
    asked = _found(read, wanted)
    gpu_memory = gpu_memory_of(asked.containers, asked.config)
    history = asked.history
    if prometheus["prometheus"]:
        now_s = read.snapshot.taken_at_s
        server = Prometheus.of(prometheus["prometheus"], prometheus["days"], now_s, prometheus["token_file"])
        history = history.merged(server.history(asked.name, gpu_memory, asked.config.memory_factor))
    rows = advised_requests(history, asked.containers, gpu_memory)
    return _Advice(asked, history, rows, requests_patch(asked.name.kind, rows, asked.containers, asked.config))


def _print_patch(advice: _Advice) -> None:
    if not advice.is_known:
        echo(_unknown(advice.asked), err=True)
        return
    for line in _doubts(advice.asked, advice.history):
        echo(f"note: {line}", err=True)
    echo(_yaml(advice.patch), nl=False)


def _found(read: ReadInput, wanted: Wanted) -> _Asked:
    """The workload that is meant. Raises ObjectNotFound."""
    if wanted.kind == "pod":
        pod = read.pods_by_key[key_of(wanted, read.pods_by_key, read)]
        name, containers, pods = WorkloadName(pod.namespace, "Pod", pod.name), pod.spec.lasting, [pod]
    else:
        workload = workload_of(wanted, read)
        name = WorkloadName(workload.namespace, workload.kind, workload.name)
        containers, pods = workload.template.spec.lasting, pods_of(workload, read)
    nodes = {node.name: node for node in read.decoded.nodes}
    samples = believed(read.decoded.pod_samples, {pod.key: pod for pod in pods}, nodes, read.measured_s)
    seen = {f"{each.namespace}/{each.name}" for each in samples}
    pods = [pod for pod in pods if pod.key in seen]
    loads, on = node_loads(read.snapshot, read.usage), {pod.node_name for pod in pods}
    used = {node: load.used_percent(CPU) for node, load in sorted(loads.items()) if node in on}
    full = {node: percent for node, percent in used.items() if percent >= HIGH_PERCENT}
    return _Asked(name, containers, _evidence(read, name, samples), len(pods), full, _hami(read))


def _hami(read: ReadInput) -> HamiConfig:
    """How HAMi is configured; what cannot be read counts as its chart's defaults, as for a plan."""
    try:
        return next(family.config for family in families_of(read.snapshot) if isinstance(family, Hami))
    except InputError:
        return CHART_DEFAULTS


def _evidence(read: ReadInput, workload: WorkloadName, samples: Sequence[PodUsage]) -> History:
    """What checkpoints and the samples of today's pods tell."""
    kept = History()
    for config_map in read.decoded.config_maps:
        if config_map.name.startswith(SHARD_NAME):
            found, broken = entries_of(config_map.data)
            kept = kept.merged(found.get(workload, History()))
            for key, why in broken.items():
                place = f"ConfigMap {config_map.namespace}/{config_map.name}: data.{key}"
                echo(f"warning: left out: {place}: {why}", err=True)
    # What is remembered already counts once.
    return kept.merged(history_of(each for each in samples if each.at_s > kept.last_s))


def _yaml(patch: Json) -> str:
    written: str = yaml.safe_dump(patch, sort_keys=False, default_flow_style=False)
    return written


def _title(asked: _Asked) -> str:
    return f"{asked.name.kind} {asked.name.namespace}/{asked.name.name}"


def _unknown(asked: _Asked) -> str:
    return f"{_title(asked)}: no advice, because nothing is known of what its containers used"


def _lines(advice: _Advice) -> Iterator[str]:
    asked, history, rows, patch = advice.asked, advice.history, advice.rows, advice.patch
    if not advice.is_known:
        yield _unknown(asked)
        yield "hint: give samples (kubectl get podmetrics -A -o yaml) or --prometheus URL, or let kerf run collect them"
        return
    most = max(row.samples for row in rows)
    of_pods = f" of {counted(asked.pods, 'pod')}" if asked.pods else ""
    yield f"advice for {_title(asked)}: {counted(most, 'sample')}{of_pods} since {instant_text(history.first_s)}"
    yield from _doubts(asked, history)
    yield ""
    yield from table(
        ("CONTAINER", "RESOURCE", "SAMPLES", "P50", "P95", "PEAK", "REQUEST", "LIMIT", "ADVICE"),
        (_cells(row) for row in rows),
    )
    yield ""
    yield _RULE
    yield ""
    yield "# a patch, not applied:"
    yield from _yaml(patch).splitlines()
    yield f"# {_command(asked)}"


def _doubts(asked: _Asked, history: History) -> Iterator[str]:
    """Why the advice may ask for too little."""
    if history.last_s - history.first_s < DAY_S:
        yield "the samples cover less than a day: what comes once a day may not be in them"
    if asked.crowded:
        full = ", ".join(f"{name} {percent} %" for name, percent in asked.crowded.items())
        yield f"on nodes without idle cpu ({full} used) they may want more than they got: advice on cpu is a minimum,"
        yield f"and kerf explain {asked.name.kind.lower()}/{asked.name.name} says what would spread them"


def _command(asked: _Asked) -> str:
    if asked.name.kind in _IMMUTABLE:
        return "kubectl patch --local -f MANIFEST --type strategic --patch-file PATCH -o yaml"
    kind, name, namespace = asked.name.kind.lower(), shlex.quote(asked.name.name), asked.name.namespace
    return f"kubectl patch {kind} {name} -n {namespace} --type strategic --patch-file PATCH"


def _cells(row: Recommendation) -> tuple[str, ...]:
    used = ("-", "-", "-")
    if row.samples:
        used = (_text(row, row.p50), _text(row, row.p95), _text(row, row.peak))
    asked = tuple("-" if each is None else quantity_text(row.resource, each) for each in (row.request, row.limit))
    missing = "only zeros" if row.samples else "no samples"
    advised = missing if row.advised is None else quantity_text(row.resource, row.advised)
    return (row.container, row.resource, str(row.samples), *used, *asked, advised)


def _text(row: Recommendation, amount: int) -> str:
    """What was used, as people read it: memory in whole mebibytes, rounded up."""
    return f"{-(-amount // MIB)}Mi" if row.resource == MEMORY else quantity_text(row.resource, amount)


def _object(advice: _Advice) -> Json:
    asked, history, rows, patch = advice.asked, advice.history, advice.rows, advice.patch
    is_known = advice.is_known
    return {
        "apiVersion": API_VERSION,
        "kind": "RequestsAdvice",
        "label": "advice",
        "workload": {"kind": asked.name.kind, "namespace": asked.name.namespace, "name": asked.name.name},
        "since": instant_text(history.first_s) if is_known else None,
        "until": instant_text(history.last_s) if is_known else None,
        "pods": asked.pods,
        "crowdedNodes": [{"node": name, "cpuPercent": percent} for name, percent in asked.crowded.items()],
        "rule": _RULE,
        "rows": [_row_object(row) for row in rows],
        "patch": patch if is_known else None,
    }


def _row_object(row: Recommendation) -> Json:
    def text(amount: int | None) -> str | None:
        return None if amount is None else quantity_text(row.resource, amount)

    return {
        "container": row.container,
        "resource": row.resource,
        "samples": row.samples,
        "p50": text(row.p50) if row.samples else None,
        "p95": text(row.p95) if row.samples else None,
        "peak": text(row.peak) if row.samples else None,
        "request": text(row.request),
        "limit": text(row.limit),
        "advice": text(row.advised),
    }
