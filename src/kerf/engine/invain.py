"""A node that was bought for a pod has come, and cannot hold it: no second one is bought as long as that stands.

What the node has is not what was planned: it lacks a label, has a taint that its pool does not state, or has less room.
The next node would be no other. Once the node is up the pod bears a note of it (`engine.lastword`), which outlives the
node and says when one more is tried.
"""

from collections.abc import Iterable, Sequence

from kerf.engine.decision import Refusal
from kerf.engine.place.shapes import Shape, as_bought
from kerf.engine.place.trial import Trial
from kerf.model.causes import Name, Quoted
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.rejections import REJECTED, BoughtInVain, rejection_of


def bought_in_vain(left: Sequence[Shape], trial: Trial) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """The shapes of pods that have no place on the node that was bought for them, and could have none if nothing else
    were there; and the shapes that are left to buy for. Pods that are equal to one of them wait with it.

    A node whose room others have taken says nothing against another one. Cost: the promises of nodes that have come,
    and a look at each of these nodes for each pod that is left.
    """
    nodes = _bought_for(trial) if left else {}
    if not nodes:
        return (), tuple(left)
    refusals: list[Refusal] = []
    others: list[Shape] = []
    for shape in left:
        by_node: dict[int, tuple[Misfit, list[Pod]]] = {}
        rest: list[Pod] = []
        for pod in shape.pods:
            found = _misfit(shape, pod, nodes.get(pod.key, ()), trial)
            if found is None:
                rest.append(pod)
            else:
                by_node.setdefault(found[0], (found[1], []))[1].append(pod)
        if not by_node:
            others.append(shape)
            continue
        first = next(iter(by_node))
        by_node[first][1].extend(rest)
        refusals += (_refusal(misfit, pods, index, trial) for index, (misfit, pods) in by_node.items())
    return tuple(refusals), tuple(others)


def _bought_for(trial: Trial) -> dict[str, list[int]]:
    """By pod that still waits for one, the nodes that were bought for it and have registered."""
    found: dict[str, list[int]] = {}
    for index, spot in enumerate(trial.spots):
        node = spot.cluster_node
        if node.claim is not None and node.is_registered:
            for key in read(node.claim.annotations).pods:
                if not is_virtual(key):
                    found.setdefault(key, []).append(index)
    return found


def _misfit(shape: Shape, pod: Pod, nodes: Iterable[int], trial: Trial) -> tuple[int, Misfit] | None:
    """The first of the nodes, and why it could never hold the pod; None where one of them could, or there is none."""
    held = rejection_of(pod) if REJECTED in pod.annotations else None
    noted = held.nodes if held is not None else ()
    first = None
    for index in nodes:
        if trial.spots[index].cluster_node.name in noted:
            continue
        misfit = trial.never_fits(index, as_bought(shape, pod))
        if misfit is None:
            return None
        first = first or (index, misfit)
    return first


def _refusal(misfit: Misfit, pods: Sequence[Pod], index: int, trial: Trial) -> Refusal:
    name, first = trial.spots[index].cluster_node.name, pods[0]
    cause = BoughtInVain(Name(name), misfit.cause, Name(first.spec.scheduler_name), Quoted(first.unschedulable))
    return Refusal(tuple(pods), misfit.stage, cause, (misfit,))
