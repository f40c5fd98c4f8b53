"""`kerf advise instance-types`: what pods would cost on each family of instance types."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kerf.cli.exits import DONE, LOOK, ObjectNotFound
from kerf.cli.inputs.input import ReadInput, Source, is_meant, read_input
from kerf.cli.inputs.naming import Wanted
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.inputs.wanted import pods_of, workload_of
from kerf.cli.output.written import in_order
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.progress import progress
from kerf.cli.render import counted, emit, table
from kerf.engine.study.sizing.families import FamilyCost, cost_today, costs_by_family
from kerf.model.instancetypes import price_number, price_text
from kerf.model.pods import Pod

_MOST_ROWS = 12


def show(asked: Sequence[Wanted], namespace: str | None, flags: dict[str, Any]) -> int:
    """Print the cost on each family; the exit code. Raises ObjectNotFound."""
    selector = None if flags["selector"] is None else parse_selector(flags["selector"])
    read = read_input(Source.of(flags))
    if asked:
        pods = [pod for one in asked for pod in pods_of(workload_of(one, read), read) if not pod.is_ended]
    elif selector is not None:
        pods = [pod for pod in read.pods if is_meant(pod, namespace, selector) and not pod.is_ended]
        if not pods:
            raise ObjectNotFound(f"no pod of the {read.place} has these labels")
    else:
        pods = [pod for pod in read.snapshot.pending if namespace in (None, pod.namespace)]
    with progress(f"comparing families for {counted(len(pods), 'pod')}", 1 + 0.001 * len(pods)):
        new = _as_new(pods)
        today = cost_today(new, read.world)
        found = in_order(costs_by_family(new, read.world), _object, flags["sort_by"])
    data = {
        "apiVersion": API_VERSION,
        "kind": "FamilyCosts",
        "pods": len(pods),
        "currency": read.market.currency,
        "today": None if today is None else _object(today),
        "items": [_object(each) for each in found],
    }
    emit(flags["output"], lambda: data, lambda: _lines(today, found, pods, read))
    return LOOK if pods and not any(each.left == 0 for each in found) else DONE


def _as_new(pods: Sequence[Pod]) -> list[Pod]:
    """What already runs is not tied to its node, and what a DaemonSet makes is on every node anyway."""
    return [replace(pod, node_name="", nominated_node="") for pod in pods if not pod.is_daemon]


def _object(cost: FamilyCost) -> Json:
    least, most = cost.pods_a_node
    return {
        "family": cost.family,
        "architectures": list(cost.architectures),
        "nodes": cost.nodes,
        "instanceTypes": [{"instanceType": name, "nodes": number} for name, number in cost.types.items()],
        "perHour": price_number(cost.price_micro),
        "perHourLowerBound": None if cost.bound_micro is None else price_number(cost.bound_micro),
        "podsPerNode": {"least": least, "most": most},
        "unplaced": cost.left,
        "allowed": cost.is_allowed,
    }


def _lines(
    today: FamilyCost | None, found: Sequence[FamilyCost], pods: Sequence[Pod], read: ReadInput
) -> Iterator[str]:
    if not pods:
        yield f"the {read.place} has no such pod: name a workload, or plan as if it had some (--replicas)"
        return
    if not found:
        yield f"no family holds any of the {counted(len(pods), 'pod')}"
        return
    money = f"{read.market.currency}/H"
    headers = ("FAMILY", "ARCH", "NODES", "TYPES", money, "AT LEAST", "PODS A NODE", "UNPLACED", "ALLOWED")
    first = [] if today is None else [today]
    yield from table(headers, map(_row, [*first, *found[:_MOST_ROWS]]))
    if len(found) > _MOST_ROWS:
        yield f"and {len(found) - _MOST_ROWS} more, which cost more or hold fewer"
    yield ""
    yield f"advice for {counted(len(pods), 'pod')}, as if they were new; ALLOWED: a NodePool has these types today"


def _row(cost: FamilyCost) -> tuple[str, ...]:
    least, most = cost.pods_a_node
    return (
        cost.family,
        ", ".join(cost.architectures),
        str(cost.nodes),
        ", ".join(f"{number} x {name}" for name, number in cost.types.items()) or "-",
        price_text(cost.price_micro),
        "-" if cost.bound_micro is None else price_text(cost.bound_micro),
        str(most) if least == most else f"{least} to {most}",
        str(cost.left),
        "yes" if cost.is_allowed else "no",
    )
