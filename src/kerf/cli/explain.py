"""`kerf explain`: why pending, why kept, why removed, and the smallest change that would help.

It makes the plan that `kerf plan` makes and looks the answer up in it, so that the two cannot differ.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from kerf.cli.exits import DONE, LOOK, ObjectNotFound
from kerf.cli.explain_nodes import explain_node
from kerf.cli.explain_pods import PodAnswers, explain_pods, explain_workload
from kerf.cli.explain_pools import explain_pool
from kerf.cli.explain_windows import explain_window
from kerf.cli.explanation import Explanation
from kerf.cli.inputs import Source, World, input_options, is_meant, output_option, pod_options, progress, read_world
from kerf.cli.plan import decide
from kerf.cli.plan_json import API_VERSION
from kerf.cli.render import emit
from kerf.cli.selectors import parse_selector
from kerf.engine.provisioning import Options
from kerf.model.snapshot import ClusterNode

KINDS = {
    "pod": ("Pod", "pods", "po"),
    "deployment": ("Deployment", "deployments", "deploy"),
    "statefulset": ("StatefulSet", "statefulsets", "sts"),
    "replicaset": ("ReplicaSet", "replicasets", "rs"),
    "job": ("Job", "jobs"),
    "cronjob": ("CronJob", "cronjobs", "cj"),
    "node": ("Node", "nodes", "no"),
    "nodeclaim": ("NodeClaim", "nodeclaims"),
    "nodepool": ("NodePool", "nodepools"),
    "cwin": ("CapacityWindow", "capacitywindow", "capacitywindows"),
}
"""What can be explained: its kind, and the other names that kubectl knows it by."""
_ALIASES = {alias.lower(): kind for kind, names in KINDS.items() for alias in (kind, *names)}


@dataclass(frozen=True)
class Wanted:
    """An object that was asked for; `namespace` None: any."""

    kind: str
    name: str
    namespace: str | None = None


@click.command()
@click.argument("objects", nargs=-1, metavar="[KIND/NAME]...", shell_complete=lambda *asked: _kinds_like(asked[2]))
@input_options
@pod_options
@output_option
def explain(objects: tuple[str, ...], **flags: Any) -> int:
    """Why a pod waits, why a node stays or goes, and the smallest change that would help.

    KIND is pod, deployment, statefulset, replicaset, job, cronjob, node, nodeclaim, nodepool or cwin (a
    CapacityWindow); with -l instead, all pods with those labels. Exit code 0; 3 when one of the pods has no place; 1
    when there is no such object.
    """
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    wanted = _wanted(objects, namespace)
    if not wanted and flags["selector"] is None:
        raise click.UsageError("give KIND/NAME, or -l SELECTOR")
    asked = parse_selector(flags["selector"] or "")
    world = read_world(Source.of(flags))
    with progress("planning"):
        answers = PodAnswers(world, decide(world, Options(with_bound=False)))
        found = [_explained(one, answers) for one in wanted]
    if flags["selector"] is not None:
        found.extend(_selected([pod.key for pod in world.pods if is_meant(pod, namespace, asked)], answers))
    data = {"apiVersion": API_VERSION, "kind": "ExplanationList", "items": [one.data for one in found]}
    emit(flags["output"], lambda: data, lambda: _lines(found))
    return LOOK if any(one.needs_look for one in found) else DONE


def _kinds_like(typed: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(typed)]


def _wanted(objects: tuple[str, ...], namespace: str | None) -> list[Wanted]:
    """`pod/web`, `pod/default/web`, or kubectl's `pod web db`."""
    if objects and "/" not in objects[0] and len(objects) > 1:
        objects = tuple(f"{objects[0]}/{name}" for name in objects[1:])
    return [_parsed(text, namespace) for text in objects]


def _parsed(text: str, namespace: str | None) -> Wanted:
    kind_text, *rest = text.split("/")
    kind = _ALIASES.get(kind_text.lower())
    if kind is None:
        raise click.UsageError(f"{text}: expected one of {', '.join(KINDS)}, then /NAME; got {kind_text!r}")
    if not all(rest) or len(rest) not in (1, 2):
        raise click.UsageError(f"{text}: expected {kind}/NAME or {kind}/NAMESPACE/NAME")
    return Wanted(kind, rest[-1], rest[0] if len(rest) == 2 else namespace)


def _explained(wanted: Wanted, answers: PodAnswers) -> Explanation:
    world = answers.world
    if wanted.kind == "pod":
        return explain_pods((_key(wanted, world.pods_by_key, world),), answers)[0]
    if wanted.kind == "nodepool":
        pools = {pool.name: pool for pool in world.snapshot.node_pools}
        return explain_pool(pools[_key(wanted, pools, world)], world, answers.plan)
    if wanted.kind == "cwin":
        windows = {window.name: window for window in world.snapshot.windows}
        return explain_window(windows[_key(wanted, windows, world)], answers)
    if wanted.kind in ("node", "nodeclaim"):
        nodes = _nodes(wanted.kind, world)
        return explain_node(KINDS[wanted.kind][0], nodes[_key(wanted, nodes, world)], answers)
    same_kind = (w for w in world.decoded.workloads if w.kind.lower() == wanted.kind)
    workloads = {f"{workload.namespace}/{workload.name}": workload for workload in same_kind}
    return explain_workload(workloads[_key(wanted, workloads, world)], answers)


def _nodes(kind: str, world: World) -> dict[str, ClusterNode]:
    """Nodes with their claims, by the name of the node or of the claim."""
    pairs = ((held.node if kind == "node" else held.claim, held) for held in world.snapshot.nodes)
    return {named.name: held for named, held in pairs if named is not None}


def _selected(keys: list[str], answers: PodAnswers) -> list[Explanation]:
    if not keys:
        raise ObjectNotFound(f"no pod of the {answers.world.place} has these labels")
    return list(explain_pods(keys, answers))


def _key(wanted: Wanted, known: Iterable[str], world: World) -> str:
    """The key of the object that is meant. Raises ObjectNotFound with the nearest names."""
    keys = sorted(known)
    if wanted.namespace is None:
        found = [key for key in keys if key.rpartition("/")[2] == wanted.name]
        found = [key for key in found if key.startswith(f"{world.namespace}/")] or found
    else:
        exact = (f"{wanted.namespace}/{wanted.name}", wanted.name)
        found = [key for key in keys if key in exact]
    if len(found) == 1:
        return found[0]
    if found:
        raise ObjectNotFound(
            f"{wanted.kind}/{wanted.name} is in several namespaces ({', '.join(found)}): say which, -n"
        )
    raise ObjectNotFound(f"{wanted.kind}/{wanted.name} not found{_nearest(wanted, keys, world.place)}")


def _nearest(wanted: Wanted, keys: list[str], place: str) -> str:
    if not keys:
        return f"; the {place} has no {wanted.kind}"
    full = wanted.name if wanted.namespace is None else f"{wanted.namespace}/{wanted.name}"
    by_name = {key.rpartition("/")[2]: key for key in reversed(keys)}
    close = difflib.get_close_matches(full, keys, 3) or [
        by_name[name] for name in difflib.get_close_matches(wanted.name, list(by_name), 3)
    ]
    return f"; nearest known: {', '.join(close or keys[:3])}"


def _lines(found: list[Explanation]) -> Iterator[str]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield from one.lines
