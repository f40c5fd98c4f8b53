"""What HAMi's scheduler extender answers: its filter, and what filter and bind write on a pod.

HAMi decides node and card in one step, before kube-scheduler's own scores count, and writes its decision on the pod
before the pod is bound. The rules are those of `sharing.hami`, which recorded verdicts of the real extender check; here
is only what surrounds them. Nothing in the filter talks to an API, so `server` can serve it to a real kube-scheduler.
In memory the lock that HAMi puts on a node between bind and the start of the pod is not taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerf.errors import DecodeError
from kerf.model.gpu import DeviceState
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Fit, Occupant
from kerf.sharing.hami.admission import requests_of
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.fit import Shortage
from kerf.sharing.hami.options import WeightsError, read_options
from kerf.sharing.hami.records import BIND_PHASE, BIND_TIME, NODE, allocation_annotations
from kerf.sim.objects import Json

UNREGISTERED = "node unregistered"
"""HAMi's word for a node that has no cards yet: the normal state of a fresh node."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The extender's answer. `node` is empty when none fits; `reasons` says of each refused node why.

    `annotations` are HAMi's record of its choice; empty for a pod that it lets pass, for which `node` is empty too and
    `passes` is true: kube-scheduler chooses. `error` fails the whole attempt, whatever the nodes.
    """

    node: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    passes: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """A node and the pods that hold cards of it, and what they hold."""

    node: Node
    family: Hami
    holders: Sequence[Pod]
    devices: tuple[DeviceState, ...] | None


class Occupancies:
    """What is known of nodes while neither they nor their pods have changed: every attempt asks of all of them."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._answers: dict[PodDemand, _Answers] = {}

    def answers(self, demand: PodDemand) -> "_Answers":
        """What was answered to pods that ask so much, by node name; each with the node as it was known then."""
        if demand not in self._answers:
            if len(self._answers) >= _MOST_DEMANDS:
                self._answers.clear()
            self._answers[demand] = {}
        return self._answers[demand]

    def of(self, family: Hami, node: Node, holders: Sequence[Pod]) -> _Known:
        """What is known of the node, with these pods on it."""
        known = self._known.get(node.name)
        if known is None or known.node is not node or known.family != family or _differ(known.holders, holders):
            known = self._known[node.name] = _Known(node, family, holders, occupied(family, node, holders))
        return known

    def forget(self, name: str) -> None:
        """The node is gone."""
        self._known.pop(name, None)
        for answers in self._answers.values():
            answers.pop(name, None)


_Answers = dict[str, tuple[_Known, Fit | Shortage]]
_MOST_DEMANDS = 256
"""So many kinds of demands are known; then all are let go."""


def _differ(some: Sequence[Pod], others: Sequence[Pod]) -> bool:
    if some is others:
        return False
    return len(some) != len(others) or any(one is not other for one, other in zip(some, others, strict=True))


def occupied(family: Hami, node: Node, holders: Sequence[Pod]) -> tuple[DeviceState, ...] | None:
    """The cards with what `holders` hold; None for a node that has no cards yet.

    HAMi skips a node whose register it cannot read, like one that has none. It knows only pods that carry its own
    record, so a pod without one holds nothing here.
    """
    try:
        devices = family.inventory(node)
    except DecodeError:
        return None
    return None if devices is None else family.occupied(devices, [Occupant(holder, None) for holder in holders])


def filter_nodes(
    family: Hami,
    pod: Pod,
    nodes: Sequence[Node],
    holders: Mapping[str, Sequence[Pod]],
    quotas: Sequence[ResourceQuota],
    now_s: float,
    known: Occupancies | None = None,
) -> Verdict:
    """HAMi's choice among `nodes`; where it would draw lots, the first in the order given.

    `holders` are the pods that hold cards of each node, also those that HAMi has booked and that are not bound yet. The
    pod is taken as it is: what is wrong with it was for the webhook to say. `known` is what earlier calls have found.
    """
    containers = requests_of(pod.spec.init_containers, pod.spec.containers, family.config)
    if all(container.request is None for container in containers):
        return Verdict(passes=True)
    try:
        options = read_options(pod.annotations, family.config, honours_pins=True)
    except WeightsError as error:
        text = f"calcScore failed {error} for pod {pod.name}"
        return Verdict(reasons={node.name: text for node in nodes}, error=text)
    demand = PodDemand(family.name, containers, options)
    known = known or Occupancies()
    answers = known.answers(demand)
    fits: dict[str, Fit] = {}
    reasons: dict[str, str] = {}
    for node in nodes:
        others = holders.get(node.name, ())
        if any(holder.key == pod.key for holder in others):
            others = [holder for holder in others if holder.key != pod.key]
        of_node = known.of(family, node, others)
        if of_node.devices is None:
            reasons[node.name] = UNREGISTERED
            continue
        before = answers.get(node.name) if not quotas else None
        if before is not None and before[0] is of_node:
            answer = before[1]
        else:
            answer = family.decide(of_node.devices, demand, pod, node, quotas)
            if not quotas:
                answers[node.name] = of_node, answer
        if isinstance(answer, Fit):
            fits[node.name] = answer
        else:
            reasons[node.name] = answer.reason
    if not fits:
        return Verdict(reasons=reasons)
    chosen = min(fits, key=lambda name: family.node_score_order(demand, fits[name].score))
    # Of a pod that asked alike the cards are the same, and only the name in its slices is another.
    return Verdict(chosen, allocation_annotations(fits[chosen], demand, chosen, now_s), reasons)


def record_patch(verdict: Verdict) -> Json:
    """What the filter writes on the pod it has placed."""
    return {"metadata": {"annotations": dict(verdict.annotations), "labels": {NODE: verdict.node}}}


def bind_patch(now_s: float) -> Json:
    """What bind writes on the pod before the binding itself; the device plugin turns it into `success`."""
    return {"metadata": {"annotations": {BIND_PHASE: "allocating", BIND_TIME: str(int(now_s))}}}
