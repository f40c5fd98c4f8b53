"""Kerf's own pins: a pod bound to planned cards by HAMi's `use-gpuuuid`.

A pin is marked `kerf.dev/pinned` with the second it was set, so that it is never taken for the user's wish: planning
ignores it, and it is taken away when it does not help.
"""

from collections.abc import Mapping, Sequence

from kerf.model.pods import Pod
from kerf.sharing.hami_options import PINNED, USE_UUID


def pin(card_ids: Sequence[str], now_s: float) -> Mapping[str, str | None]:
    """Annotations that bind a pod to these cards."""
    return {USE_UUID: ",".join(card_ids), PINNED: str(int(now_s))}


def unpinned() -> Mapping[str, str | None]:
    """Annotations that take a pin away."""
    return {USE_UUID: None, PINNED: None}


def is_pinned(pod: Pod) -> bool:
    """Whether the pod carries a pin of ours."""
    return PINNED in pod.annotations


def pinned_since(pod: Pod) -> float:
    """When the pin was set; 0 when somebody broke the mark, so that it counts as long past."""
    text = pod.annotations.get(PINNED, "")
    return float(text) if text.isdecimal() else 0.0
