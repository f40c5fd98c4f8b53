"""What `kerf explain` does: it makes the plan that `kerf plan` makes, and looks each answer up in it.

So the two cannot differ.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kerf.cli.exits import DONE, LOOK, ObjectNotFound
from kerf.cli.explain.buffers import explain_buffer
from kerf.cli.explain.caveats import notes_beside
from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.nodeclasses import explain_node_classes
from kerf.cli.explain.nodes import explain_node
from kerf.cli.explain.pods import NEW_NODE, NO_PLACE, ON_NODE, PodAnswers, explain_pods
from kerf.cli.explain.pools import explain_pool
from kerf.cli.explain.requests import explain_request
from kerf.cli.explain.waiting import explain_waiting
from kerf.cli.explain.windows import explain_window
from kerf.cli.explain.workloads import explain_selection, explain_workload
from kerf.cli.inputs.input import ReadInput, Source, is_meant, read_input
from kerf.cli.inputs.naming import KINDS, WORKLOADS, Wanted
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.inputs.wanted import key_of, pods_of, workload_of
from kerf.cli.output.written import in_order
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.plan.planning import decided
from kerf.cli.progress import progress
from kerf.cli.render import emit
from kerf.engine.options import Options
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode

_MACHINES = ("node", "nodeclaim")


def show(wanted: Sequence[Wanted], namespace: str | None, flags: dict[str, Any]) -> int:
    """Explain what is wanted and the pods that the selector names, or without both all that wait; the exit code.

    Raises ObjectNotFound.
    """
    asked = parse_selector(flags["selector"] or "")
    is_of_all = not wanted and flags["selector"] is None
    with_usage = flags["selector"] is not None or any(one.kind in (*WORKLOADS, *_MACHINES) for one in wanted)
    read = read_input(Source.of(flags), with_usage=with_usage)
    policies = {"preferences": flags["preference_policy"], "min_values": flags["min_values_policy"]}
    options = Options(with_bound=False, **policies)
    with progress("planning", 0.5 + 0.0001 * len(read.snapshot.pending)):
        chosen = [pod for pod in read.pods if is_meant(pod, namespace, asked)] if flags["selector"] is not None else []
        meant = [pod for one in wanted for pod in _pods(one, read)] + chosen
        hinted = (
            {pod.key for pod in read.snapshot.pending if namespace in (None, pod.namespace)} if is_of_all else set()
        )
        answers = PodAnswers(read, *decided(read, options, {pod.key for pod in meant} | hinted))
        found = [_explained(one, answers) for one in wanted]
        waiting: list[Pod] = []
        if is_of_all:
            waiting = _waiting(read, namespace, answers)
            found = [explain_waiting(waiting, answers, namespace)]
        found = in_order(found, lambda one: one.data, flags["sort_by"])
    notes = notes_beside(meant, _named(wanted), answers)
    data: Json = {"apiVersion": API_VERSION, "kind": "ExplanationList"}
    data["items"] = [one.data for one in found]
    if is_of_all:
        data["items"] = [one.data for one in explain_pods([pod.key for pod in waiting], answers)]
        data["waiting"] = found[0].data
    if flags["selector"] is not None:
        if not chosen:
            raise ObjectNotFound(f"no pod of the {read.place} has these labels")
        data["items"] += [one.data for one in explain_pods([pod.key for pod in chosen], answers)]
        found.append(explain_selection(flags["selector"], chosen, answers))
        data["selection"] = found[-1].data
    data["notes"] = notes
    emit(flags["output"], lambda: data, lambda: _lines(found, notes))
    return LOOK if any(one.needs_look for one in found) else DONE


def _waiting(read: ReadInput, namespace: str | None, answers: PodAnswers) -> list[Pod]:
    """The pods that a plan is made for."""
    pending = [pod for pod in read.pods if pod.is_pending and namespace in (None, pod.namespace)]
    return [pod for pod in pending if answers.verdict(pod) in (NEW_NODE, ON_NODE, NO_PLACE)]


def _explained(wanted: Wanted, answers: PodAnswers) -> Explanation:
    read = answers.read
    if wanted.kind == "pod":
        return explain_pods((key_of(wanted, read.pods_by_key, read),), answers)[0]
    if wanted.kind == "nodepool":
        pools = {pool.name: pool for pool in read.snapshot.node_pools}
        return explain_pool(pools[key_of(wanted, pools, read)], read, answers.plan)
    if wanted.kind == "nodeclass":
        named = {each.name for each in read.snapshot.node_classes}
        return explain_node_classes(key_of(wanted, named, read), read)
    if wanted.kind == "cwin":
        windows = {window.name: window for window in read.snapshot.windows}
        return explain_window(windows[key_of(wanted, windows, read)], answers)
    if wanted.kind == "provisioningrequest":
        requests = {each.key: each for each in read.snapshot.provisioning_requests}
        return explain_request(requests[key_of(wanted, requests, read)], answers)
    if wanted.kind == "capacitybuffer":
        buffers = {each.key: each for each in read.snapshot.capacity_buffers}
        return explain_buffer(buffers[key_of(wanted, buffers, read)], answers)
    if wanted.kind in _MACHINES:
        nodes = _nodes(wanted.kind, read)
        return explain_node(KINDS[wanted.kind][0], nodes[key_of(wanted, nodes, read)], answers)
    return explain_workload(workload_of(wanted, read), answers)


def _nodes(kind: str, read: ReadInput) -> dict[str, ClusterNode]:
    """Nodes with their claims, by the name of the node or of the claim."""
    pairs = ((held.node if kind == "node" else held.claim, held) for held in read.snapshot.nodes)
    return {named.name: held for named, held in pairs if named is not None}


def _pods(wanted: Wanted, read: ReadInput) -> list[Pod]:
    """The pods that were asked for, themselves or by their workload."""
    if wanted.kind == "pod":
        return [read.pods_by_key[key_of(wanted, read.pods_by_key, read)]]
    return pods_of(workload_of(wanted, read), read) if wanted.kind in WORKLOADS else []


def _named(wanted: Sequence[Wanted]) -> list[str]:
    """The NodePools among these objects."""
    return [one.name for one in wanted if one.kind == "nodepool"]


def _lines(found: list[Explanation], notes: Sequence[str]) -> Iterator[str]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield from one.lines
    if notes:
        yield ""
        yield from (f"note: {note}" for note in notes)
