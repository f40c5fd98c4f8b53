"""Pods that HAMi refuses, or accepts and would still not give what they ask for: Kerf's judgement, with the fix.

HAMi itself lets the latter pass without a word, and they run without limits or wait for ever. Buying a node for them
would be money for nothing.
"""

from dataclasses import dataclass

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.plan import Stage
from kerf.model.pods import HAMI_SCHEDULER, Container
from kerf.model.quantities import MIB
from kerf.sharing.family import Refused
from kerf.sharing.hami.admission import asked
from kerf.sharing.hami.config import HamiConfig


@dataclass(frozen=True, slots=True)
class WebhookRefuses(Cause):
    """HAMi's webhook refuses the pod, with this message."""

    message: Quoted


@dataclass(frozen=True, slots=True)
class WeightsUnreadable(Cause):
    """HAMi's scheduler answers with this error whatever the node."""

    error: Quoted


@dataclass(frozen=True, slots=True)
class RequestDropped(Cause):
    """The container's GPU memory is no number of 31 bits, so HAMi drops its whole request.

    `amount` is counted in `unit_mib`. `meant` is the number that states it if it was meant as bytes; None where that
    does not fit either.
    """

    container: Name
    resource: Name
    amount: int
    unit_mib: int
    meant: int | None


@dataclass(frozen=True, slots=True)
class CountOverflows(Cause):
    """The container asks for more cards than 31 bits count, of which HAMi keeps the low 32 bits: another number.

    kubelet counts all of them, so it admits the pod on no node.
    """

    container: Name
    resource: Name
    amount: int


@dataclass(frozen=True, slots=True)
class ForeignScheduler(Cause):
    """The pod asks for GPUs of HAMi, and another scheduler will place it, which knows nothing of slices."""

    scheduler: Name


@dataclass(frozen=True, slots=True)
class NoGpuAsked(Cause):
    """No container of the pod asks for `count`, so HAMi's webhook leaves it to another scheduler.

    That one counts `resource`, of which HAMi alone gives, and only to pods of its own.
    """

    resource: Name
    count: Name
    scheduler: Name


def no_gpu_asked(resource: str, scheduler: str, config: HamiConfig) -> Refused:
    """The refusal of a pod that asks for parts of a GPU without one, where HAMi adds none."""
    return Refused(Stage.SCHEDULER, NoGpuAsked(Name(resource), Name(config.count), Name(scheduler)))


def dropped_request(container: Container, config: HamiConfig, *, is_init: bool) -> Refused:
    """The refusal of a container's GPU memory; the change takes the number as bytes, as `4Gi` means everywhere else."""
    name, amount = config.memory, asked(container, config)[config.memory]
    meant = max(1, -(-amount // (MIB * config.memory_factor)))
    is_bytes = amount >= 0 and meant * config.memory_factor < 2**31
    cause = RequestDropped(Name(container.name), Name(name), amount, config.memory_factor, meant if is_bytes else None)
    if not is_bytes:
        return Refused(Stage.INVALID, cause)
    resources = {"limits": {name: meant}, "requests": {name: meant}}
    part = "initContainers" if is_init else "containers"
    return Refused(Stage.INVALID, cause, {"spec": {part: [{"name": container.name, "resources": resources}]}})


def overflowing_count(container: Container, config: HamiConfig) -> Refused:
    """The refusal of a container's number of cards."""
    amount = asked(container, config)[config.count]
    return Refused(Stage.INVALID, CountOverflows(Name(container.name), Name(config.count), amount))


def foreign_scheduler(scheduler: str) -> Refused:
    """The refusal of a pod that names this scheduler; the change names HAMi's."""
    return Refused(Stage.SCHEDULER, ForeignScheduler(Name(scheduler)), {"spec": {"schedulerName": HAMI_SCHEDULER}})
