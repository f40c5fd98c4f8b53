"""How many of the pods that wait one decision is made for: `engine.portion`, from what the state knows."""

from collections.abc import Sequence

from kerf.config import Settings
from kerf.engine.portion import Portion, portion
from kerf.model.pods import Pod
from kerf.state import ClusterState


class Portions:
    """The same bound for each controller that decides: one that planned for all would keep the others waiting."""

    def __init__(self, state: ClusterState, settings: Settings) -> None:
        self._state, self._most = state, settings.most_shapes

    def of(self, waiting: Sequence[Pod], tried: frozenset[str] = frozenset()) -> Portion:
        """The pods to decide for; those with `tried` uids come after the others."""
        quotas = frozenset(quota.namespace for quota in self._state.quotas())
        return portion(waiting, self._most, self.is_promised, tried, quotas)

    def is_promised(self, pod: Pod) -> bool:
        """Whether a node was bought for it that is to come or is there."""
        return any(not claim.is_deleting for claim in self._state.claims_for(pod.key))
