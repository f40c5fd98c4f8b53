"""Pods that HAMi accepts and that would still not get what they ask for: Kerf's judgement, in words, with the mend.

HAMi itself lets them pass without a word, and they run without limits or wait for ever. Buying a node for them would
be money for nothing.
"""

from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Container
from kerf.model.quantities import MEMORY, MIB, quantity_text
from kerf.sharing.family import Refused
from kerf.sharing.hami_admission import IGNORE_LABEL, asked
from kerf.sharing.hami_config import HamiConfig


def dropped_request(container: Container, config: HamiConfig, *, is_init: bool) -> Refused:
    """The container's GPU memory is no number of 31 bits, so that HAMi drops its whole request.

    The patch takes the number as bytes, which is what `4Gi` means everywhere else. Its list of containers has one entry
    by name, to be merged by that name.
    """
    name, amount = config.memory, asked(container, config)[config.memory]
    written = quantity_text(MEMORY, amount)
    equals = f" = {amount}" if written != str(amount) else ""
    unit = "MiB" if config.memory_factor == 1 else f"{config.memory_factor} MiB"
    reason = (
        f"container {container.name}: HAMi reads {name} as a plain number of {unit}; {written}{equals} does not fit in "
        f"31 bits, so HAMi drops the whole request and the pod would run without any limit on its GPU memory"
    )
    meant = max(1, -(-amount // (MIB * config.memory_factor)))
    if amount < 0 or meant * config.memory_factor >= 2**31:
        return Refused("invalid", reason)
    patch = (
        f"spec:\n  {'initContainers' if is_init else 'containers'}:\n  - name: {container.name}\n    resources:\n"
        f"      limits: {{{name}: {meant}}}\n      requests: {{{name}: {meant}}}\n"
    )
    return Refused("invalid", reason, f"write {name}: {meant}", patch)


def foreign_scheduler(scheduler: str) -> Refused:
    """The pod asks for GPUs of a HAMi node, and another scheduler will place it, which knows nothing of slices."""
    what, label = "asks for GPUs of HAMi, but its schedulerName is", "=".join(IGNORE_LABEL)
    patch = f"spec:\n  schedulerName: {HAMI_SCHEDULER}\n"
    if scheduler not in (DEFAULT_SCHEDULER, ""):
        reason = f"{what} {scheduler}, and HAMi's webhook leaves such a pod alone"
        return Refused("scheduler", reason, f"set schedulerName: {HAMI_SCHEDULER}, or leave it out", patch)
    reason = (
        f"{what} {DEFAULT_SCHEDULER}, not {HAMI_SCHEDULER}: HAMi's webhook did not take it over (it was not running, "
        f"or the pod or its namespace has the label {label})"
    )
    hint = f"create the pod again while HAMi's webhook runs, without {label}, or set schedulerName: {HAMI_SCHEDULER}"
    return Refused("scheduler", reason, hint, patch)
