"""Pods that no node would help: invalid, gated, not their scheduler's, in a circle. Nothing is planned for them."""

from collections.abc import Iterable, Iterator, Sequence

from kerf.engine.decision import Refusal
from kerf.engine.place import weights
from kerf.engine.place.circles import in_circles
from kerf.engine.place.devices import demand_of, rightful_family
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger
from kerf.model.causes import AsksTooMuch, Gated, InvalidPod, Name, NotPlannedFor
from kerf.model.constraints import Requirements
from kerf.model.groups import KUEUE_GATES
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodSpec
from kerf.model.topology import AFFINITY, NeverMet
from kerf.sharing.family import Family, Refused
from kerf.sharing.unsupported import UnsupportedSharing, counted_by, unsupported_by

_NODE_SELECTION = ("nodeSelector", "nodeAffinity", "nodeSelector and nodeAffinity")


def refused_early(
    shapes: Sequence[Shape], families: tuple[Family, ...]
) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """What is refused whatever nodes there are, and the shapes that are left."""
    known = _Unsupported(counted_by(families))
    refusals: list[Refusal] = []
    left: list[Shape] = []
    for shape in shapes:
        found = _refusal(shape, families, known)
        if found is None:
            left.append(shape)
        else:
            refusals.append(found)
    return tuple(refusals), tuple(left)


def never_first(
    shapes: Sequence[Shape], ledger: TopologyLedger, pending: Iterable[Pod]
) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """Pods that seek each other in a circle, and the shapes that are left; `pending` are all that wait."""

    def others() -> Iterator[Pod]:
        planned = {pod.key for shape in shapes for pod in shape.pods}
        yield from (pod for pod in pending if pod.key not in planned)

    found = in_circles(shapes, ledger, others())
    refusals = (Refusal(shapes[number].pods, Stage.AFFINITY, cause) for number, cause in found.items())
    return tuple(refusals), tuple(shape for number, shape in enumerate(shapes) if number not in found)


class _Unsupported:
    """What pods ask for that no family gives; without annotations their spec says it, for every decision."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known, self._question = known, ("unsupported", known)

    def of(self, pod: Pod) -> UnsupportedSharing | None:
        """See `unsupported_by`."""
        if pod.annotations:
            return unsupported_by(pod, self._known)
        answers = pod.spec.answers
        if self._question not in answers:
            answers[self._question] = unsupported_by(pod, self._known)
        found: UnsupportedSharing | None = answers[self._question]
        return found


def _never_met(shape: Shape) -> Refusal | None:
    """Where it asks for what nothing can be: it would be bought for in vain."""
    spec, labels = shape.spec, shape.pod.labels
    # Where one alternative can be met, those that cannot are left out of them.
    nodes = spec.own_alternatives[0]
    if nodes.is_never:
        return Refusal(shape.pods, Stage.REQUIREMENTS, _unmeetable(_NODE_SELECTION[_selecting(spec)], nodes))
    pods = (term.selected(labels) for term in spec.pod_affinity.required)
    never = next((selector for selector in pods if selector.is_never), None)
    return None if never is None else Refusal(shape.pods, Stage.AFFINITY, _unmeetable(AFFINITY, never))


def _selecting(spec: PodSpec) -> int:
    """Which of them: the node selector alone, the node affinity alone, or only both together."""
    if spec.node_selector.is_never:
        return 0
    return 1 if all(term.is_never for term in spec.affinity) else 2


def _unmeetable(constraint: str, asked: Requirements) -> NeverMet:
    return NeverMet(Name(constraint), tuple(map(Name, asked.contradiction)))


def _refusal(shape: Shape, families: tuple[Family, ...], known: _Unsupported) -> Refusal | None:
    if shape.pod.invalid is not None:
        return Refusal(shape.pods, Stage.INVALID, InvalidPod(shape.pod.invalid))
    if weights.weight_of(shape.spec) > weights.MOST:
        entries, relations = weights.entries_of(shape.spec), weights.relations_of(shape.spec)
        return Refusal(shape.pods, Stage.REQUIREMENTS, AsksTooMuch(entries, relations, weights.MOST_ENTRIES))
    never = _never_met(shape)
    if never is not None:
        return never
    gates = shape.spec.scheduling_gates
    if gates:
        by_kueue = any(gate in KUEUE_GATES for gate in gates)
        return Refusal(shape.pods, Stage.HELD, Gated(tuple(map(Name, gates)), by_kueue))
    if shape.spec.not_planned:
        return Refusal(shape.pods, Stage.DEVICES, NotPlannedFor(tuple(map(Name, shape.spec.not_planned))))
    unsupported = known.of(shape.pod)
    if unsupported is not None:
        return Refusal(shape.pods, Stage.DEVICES, unsupported)
    rightful = rightful_family(shape, families)
    demand = None if rightful is None else demand_of(shape, rightful)
    if not isinstance(demand, Refused):
        return None
    return Refusal(shape.pods, demand.stage, demand.cause, change=demand.change)
