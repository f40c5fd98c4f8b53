"""Workloads and pods chosen by label: where they are, what they ask and use, and why nothing is bought for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import (
    ENDED,
    ENDING,
    NEW_NODE,
    NO_PLACE,
    NOMINATED,
    ON_NODE,
    RUNNING,
    PodAnswers,
    explain_pods,
)
from kerf.cli.explain.runs import explain_runs
from kerf.cli.explain.standing import standing_of
from kerf.cli.heldjobs import deadline_text
from kerf.cli.inputs.wanted import pods_of
from kerf.cli.plan.json import Json
from kerf.cli.plan.text import unplaced_lines
from kerf.cli.render import counted, some
from kerf.manifests.decoded import Workload
from kerf.model.pods import Pod

_MOST_PLACES = 10
"""Nodes that get a line each; of more than that equal ones share one."""


def explain_workload(workload: Workload, answers: PodAnswers) -> Explanation:
    """Its pods: how many run, go somewhere, or have no place; and how those stand that run."""
    pods = pods_of(workload, answers.read)
    found = by_verdict(pods, answers)
    facts, said = standing_of(pods, answers.read)
    data: Json = {
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "replicas": workload.replicas,
        "suspended": workload.suspended,
        "pods": [one.data for one in explain_pods([pod.key for pod in pods], answers)],
        **facts,
    }
    title = f"{workload.kind} {workload.namespace}/{workload.name}"
    lines = [f"{title}: {counted(len(pods), 'pod')}", *summary(found, answers), *said]
    if workload.cron_job is not None:
        facts, said = explain_runs(workload.cron_job, answers.read.snapshot)
        data, lines = {**data, **facts}, [*lines, *said]
    deadline = deadline_text(workload, answers.read)
    if deadline:
        data, lines = {**data, "deadline": deadline}, [*lines, f"  {deadline}"]
    if workload.suspended:
        lines.append(f"  it is {workload.suspended}")
    if not pods:
        lines.append(f"  it has none now; --replicas {workload.key}=1 plans as if it had one")
    return Explanation(data, tuple(lines), bool(found.get(NO_PLACE)))


def explain_selection(selector: str, pods: Sequence[Pod], answers: PodAnswers) -> Explanation:
    """Pods of any owners that are chosen by label, together."""
    found = by_verdict(pods, answers)
    facts, said = standing_of(pods, answers.read)
    owners = {(pod.owner.kind, pod.namespace, pod.owner.name) for pod in pods if pod.owner is not None}
    made = f", made by {_kinds(owners)}" if owners else ""
    data: Json = {
        "kind": "Selection",
        "selector": selector,
        "count": len(pods),
        "owners": [{"kind": kind, "namespace": space, "name": name} for kind, space, name in sorted(owners)],
        **facts,
    }
    lines = [f"pods with {selector}: {len(pods)}{made}", *summary(found, answers), *said]
    return Explanation(data, tuple(lines), bool(found.get(NO_PLACE)))


def _kinds(owners: Iterable[tuple[str, str, str]]) -> str:
    kinds = [kind for kind, _, _ in owners]
    return ", ".join(counted(kinds.count(kind), kind) for kind in sorted(set(kinds)))


def by_verdict(pods: Iterable[Pod], answers: PodAnswers) -> dict[str, list[Pod]]:
    """The pods by what was decided of them, one of the words of `pods`."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(answers.verdict(pod), []).append(pod)
    return found


def summary(found: dict[str, list[Pod]], answers: PodAnswers) -> Iterator[str]:
    """Where the pods are or go, and why others have no place; equal ones share a line."""
    for verdict, doing in ((RUNNING, "on node "), (ENDED, ""), (ENDING, "")):
        on = _by(found.get(verdict, ()), lambda pod: pod.node_name)
        yield from _named({f"{doing}{node}" if doing else verdict: keys for node, keys in on.items()}, "on")
    yield from _new_nodes(found.get(NEW_NODE, ()), answers)
    nominated = _by(found.get(NOMINATED, ()), lambda pod: pod.nominated_to)
    yield from _named({f"nominated to node {node} by the scheduler": keys for node, keys in nominated.items()}, "on")
    going = _by(found.get(ON_NODE, ()), lambda pod: answers.placements[pod.key].node)
    yield from _named({f"to go on {node}, which is there or on its way": keys for node, keys in going.items()}, "on")
    yield from unplaced_lines([answers.unplaced[pod.key] for pod in found.get(NO_PLACE, ())])


def _named(places: dict[str, list[str]], word: str) -> Iterator[str]:
    """A line for each place, and one for all beyond the first."""
    shown = dict(list(places.items())[:_MOST_PLACES])
    yield from (f"  {some(keys)}  {place}" for place, keys in shown.items())
    others = [keys for place, keys in places.items() if place not in shown]
    if others:
        pods = counted(sum(map(len, others)), "pod")
        yield f"  and {pods} {word} {counted(len(others), 'node')} more"


def _new_nodes(pods: Iterable[Pod], answers: PodAnswers) -> Iterator[str]:
    """Equal nodes together, where there are many."""
    by_launch = _by(pods, lambda pod: answers.launches[pod.key].name)
    launches = {name: answers.launches[keys[0]] for name, keys in by_launch.items()}
    groups: dict[tuple[str, str], list[str]] = {}
    for name, launch in launches.items():
        key = name if len(by_launch) <= _MOST_PLACES else ""
        groups.setdefault((key, f"{launch.offering}, {launch.why}"), []).append(name)
    for (_, text), names in groups.items():
        keys = [key for name in names for key in by_launch[name]]
        nodes = f"new node {names[0]}" if len(names) == 1 else f"{len(names)} new nodes, each"
        yield f"  {some(keys)}  {nodes}: {text}"


def _by(pods: Iterable[Pod], name_of: Callable[[Pod], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for pod in pods:
        groups.setdefault(name_of(pod), []).append(pod.key)
    return groups
