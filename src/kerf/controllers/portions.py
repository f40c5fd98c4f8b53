"""How many of the pods that wait one decision is made for: `engine.portion`, from what the state knows."""

from collections.abc import Sequence

from kerf.config import Settings
from kerf.engine.place.shapes import Readings
from kerf.engine.portion import Portion, portion
from kerf.model.pods import Pod
from kerf.state import ClusterState


class Portions:
    """The same bound for each controller that decides: one that planned for all would keep the others waiting."""

    def __init__(self, state: ClusterState, settings: Settings) -> None:
        self._state, self._most = state, settings.most_shapes

    def of(self, waiting: Sequence[Pod], tried: frozenset[str] = frozenset()) -> Portion:
        """The pods to decide for; those with `tried` uids come after the others."""
        return portion(waiting, self._most, self.is_promised, tried, self._read)

    def _read(self) -> Readings:
        return Readings.of(self._state.snapshot(0.0))

    def is_promised(self, pod: Pod) -> bool:
        """Whether a node was bought for it that is to come or is there."""
        return any(not claim.is_deleting for claim in self._state.claims_for(pod.key))
