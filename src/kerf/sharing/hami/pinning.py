"""Kerf's own pins: a pod bound to planned cards by HAMi's `use-gpuuuid`.

A pin is marked `kerf.dev/pinned` with the second it was set, so it is never taken for the user's wish: planning
ignores it, and it is taken away when it does not help.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kerf.model.pods import Pod
from kerf.sharing.hami.options import PINNED, USE_UUID
from kerf.sharing.hami.records import BIND_PHASE

_NO_CARD = "kerf-card-on-its-way"


def pin(card_ids: Sequence[str], now_s: float) -> Mapping[str, str | None]:
    """Annotations that bind a pod to these cards."""
    return {USE_UUID: ",".join(card_ids), PINNED: str(int(now_s))}


def hold(now_s: float) -> Mapping[str, str | None]:
    """Annotations that keep a pod from every card until its own is there: HAMi refuses all others, by a card's id."""
    return pin((_NO_CARD,), now_s)


def is_held(pod: Pod) -> bool:
    """Whether the pod waits for a card that has not registered yet."""
    return is_pinned(pod) and pod.annotations.get(USE_UUID) == _NO_CARD


def pinned_cards(pod: Pod) -> frozenset[str]:
    """The ids of the cards that our pin names; empty while it is held, and without one."""
    named = pod.annotations.get(USE_UUID, "") if is_pinned(pod) and not is_held(pod) else ""
    return frozenset(named.split(",")) if named else frozenset()


def unpinned() -> Mapping[str, str | None]:
    """Annotations that take a pin away."""
    return {USE_UUID: None, PINNED: None}


def without_pin(pod: Pod) -> Pod:
    """The pod as its user made it: two that are held since different seconds are equal."""
    if not is_pinned(pod):
        return pod
    own = {key: text for key, text in pod.annotations.items() if key not in (USE_UUID, PINNED)}
    return replace(pod, annotations=own)


def is_pinned(pod: Pod) -> bool:
    """Whether the pod carries our pin."""
    return PINNED in pod.annotations


def is_free(pod: Pod) -> bool:
    """Whether the pod is bound to no cards, neither we nor its user."""
    return USE_UUID not in pod.annotations and PINNED not in pod.annotations


def is_past(pod: Pod) -> bool:
    """Whether our pin on the pod has done its work: the pod is bound, and HAMi's device plugin has its cards.

    HAMi's scheduler alone reads a pin, once. What a bound pod holds stands in HAMi's own annotations; a container that
    starts again on its node is given the same devices by kubelet.
    """
    return is_pinned(pod) and bool(pod.node_name) and pod.annotations.get(BIND_PHASE) == "success"


def pinned_since(pod: Pod) -> float:
    """When the pin was set; 0 when the mark is broken, so it counts as long past."""
    text = pod.annotations.get(PINNED, "")
    return float(text) if text.isdecimal() else 0.0
