"""Preferences that no place can meet, known before any is tried.

A spread over a label that no node has, and no type to be bought, counts no node. Affinity over such a label, or to pods
of which there are none, is met nowhere. Asked of every type, each costs what a purchase of one pod does.
"""

from collections.abc import Callable, Iterable
from functools import cached_property

from kerf.model.constraints import ALIASES, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE, ZONE_ID
from kerf.model.pods import Pod
from kerf.model.preferences import Preference, PrefersEven, PrefersNear
from kerf.model.topology import PodAffinityTerm

_ALWAYS = (HOSTNAME, ZONE, ZONE_ID, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL)
"""Labels that a node to be bought may have whatever its type states."""


class Wishable:
    """Says which preferences can be met at all.

    `keys` gives the labels that nodes there are or to be bought have or may get, `pods` all pods that others may mean.
    Both are asked once, when the first preference is judged. Cost then: linear in what they give.
    """

    def __init__(self, keys: Callable[[], Iterable[str]], pods: Callable[[], Iterable[Pod]]) -> None:
        self._look, self._pods = keys, pods

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(ALIASES.get(key, key) for key in (*_ALWAYS, *self._look()))

    @cached_property
    def _labels(self) -> frozenset[tuple[str, str]]:
        return frozenset(pair for pod in self._pods() for pair in pod.labels.items())

    def __call__(self, preference: Preference) -> bool:
        """Whether some place may meet it; False only where none does. Cost: the values that its selector names."""
        match preference:
            case PrefersEven(constraint):
                return self._is_known(constraint.key)
            case PrefersNear(term=term):
                return self._is_known(term.key) and self._means_some(term)
        return True

    def _is_known(self, key: str) -> bool:
        return ALIASES.get(key, key) in self._keys

    def _means_some(self, term: PodAffinityTerm) -> bool:
        """Whether each label that the selector names has one of its values on some pod."""
        named = (each for each in term.selector.values() if each.values and not each.complement)
        return all(any((each.key, value) in self._labels for value in each.values) for each in named)
