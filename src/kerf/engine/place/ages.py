"""Who goes first of equal pods: the oldest, whichever of them a node was bought for.

A claim names the pods it was bought for. In a steady stream nodes open in another order than they were bought in, and
pods that came later find room before those that were there first. A scheduler does not put that right: it backs off
from pods that it has tried in vain, so the oldest are tried last. Equal pods may change places, since each place fits
each of them; that buys nothing and gives nothing back.
"""

from collections.abc import Hashable, Iterable, Sequence

from kerf.engine.place.shapes import NOTHING_READ, Kinds, Readings, queue_order
from kerf.model.groups import group_of
from kerf.model.pods import Pod
from kerf.model.windows import ADMITTED, WINDOW_LABEL


class Peers:
    """Says by a key which pods may change places; one object's keys are comparable.

    They are equal for every placement, of one namespace (so one quota counts them), of one priority, and let in by the
    same window. `read` says which of their labels selectors read: by these they differ to other pods.
    """

    def __init__(self, read: Readings = NOTHING_READ) -> None:
        self._kinds = Kinds(read)

    def of(self, pod: Pod) -> Hashable | None:
        """The key of a pod; None for one of a group, which has its places as a whole, and for one that only takes what
        is idle."""
        if pod.is_opportunistic or group_of(pod) is not None:
            return None
        window = pod.labels.get(WINDOW_LABEL, ""), pod.annotations.get(ADMITTED, "")
        return self._kinds.of(pod), pod.namespace, pod.queue_priority, window


def is_of_ages(pods: Iterable[Pod], one_age_s: float) -> bool:
    """Whether the oldest of them is older than the youngest by more than `one_age_s`; False without pods."""
    created = [pod.created_s for pod in pods]
    return bool(created) and max(created) - min(created) > one_age_s


def elders(
    planned: Sequence[Pod], others: Iterable[Pod], one_age_s: float, read: Readings = NOTHING_READ
) -> dict[str, str]:
    """Which of the `others` go in the place of which of the `planned`: by the key of each that gives way, its elder's.

    `planned` have their places on the node that opens now; all wait. Of one kind the oldest get the places, where one
    left out is older by more than `one_age_s`: pods that came so close together are of one age. Cost: linear in the
    pods, and n log n in those that are equal.
    """
    peers, here = Peers(read), {pod.key for pod in planned}
    places: dict[Hashable | None, list[Pod]] = {}
    for pod in planned:
        places.setdefault(peers.of(pod), []).append(pod)
    places.pop(None, None)
    left: dict[Hashable | None, list[Pod]] = {key: [] for key in places}
    youngest_s = max((pod.created_s for pods in places.values() for pod in pods), default=0.0)
    for pod in others:
        # Most are younger than all of these, and their kind is not asked for.
        if pod.created_s <= youngest_s and pod.key not in here and (key := peers.of(pod)) in left:
            left[key].append(pod)
    found: dict[str, str] = {}
    for key, pods in places.items():
        youngest_s = max(pod.created_s for pod in pods)
        if any(pod.created_s < youngest_s - one_age_s for pod in left[key]):
            found.update(_exchanged(pods, left[key]))
    return found


def _exchanged(planned: Sequence[Pod], others: Sequence[Pod]) -> dict[str, str]:
    there = {pod.key for pod in planned}
    oldest = [pod.key for pod in sorted((*planned, *others), key=queue_order)[: len(planned)]]
    stays = there.intersection(oldest)
    leaving = [pod.key for pod in sorted(planned, key=queue_order) if pod.key not in stays]
    return dict(zip(leaving, (key for key in oldest if key not in stays), strict=True))
