"""What HAMi's webhook makes of a pod, and what its scheduler then reads from it.

`kerf plan` works on manifests that no API server has seen, so the webhook's defaults and refusals are applied here.
They look odd (a percentage of 100 makes a pod exclusive, a gpumem of 0 does not) and decide what fits. Rules of HAMi
v2.10.0 as its webhook showed them (tests/data/hami). This module says what HAMi does; `hami.py` judges it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kerf.model.causes import Quoted
from kerf.model.gpu import SliceRequest
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Container, ContainerDemand
from kerf.model.quantities import NOTHING, Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.hami.config import HamiConfig

IGNORE_LABEL = ("hami.io/webhook", "ignore")
PRIORITY_VARIABLE = "CUDA_TASK_PRIORITY"
_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Denied:
    """The webhook refuses the pod, with this HTTP status and its own text."""

    code: int
    message: Quoted


@dataclass(frozen=True, slots=True)
class Admitted:
    """The pod as the webhook leaves it.

    `init` and `apps` have the limits that HAMi's scheduler will read. `changes` are the limits it wrote, as (container,
    resource, value); `environment` the variables it set, as (container, name, value).
    """

    init: tuple[Container, ...]
    apps: tuple[Container, ...]
    scheduler_name: str
    changes: tuple[tuple[str, str, int], ...] = ()
    environment: tuple[tuple[str, str, str], ...] = ()

    @property
    def containers(self) -> tuple[Container, ...]:
        """All of them, init containers first."""
        return (*self.init, *self.apps)


def admit(
    init: Sequence[Container],
    apps: Sequence[Container],
    scheduler_name: str,
    config: HamiConfig,
    *,
    has_node: bool = False,
) -> Admitted | Denied:
    """What the webhook does to a pod with these containers; the quota is a matter of `quota_refusal`."""
    if scheduler_name not in (DEFAULT_SCHEDULER, HAMI_SCHEDULER, ""):
        return Admitted(tuple(init), tuple(apps), scheduler_name)
    everything = (*init, *apps)
    wrong = next((c for c in everything if not 0 <= c.limits.get(config.memory_percent, 0) <= 100), None)
    if wrong is not None:
        return Denied(500, Quoted(_wrong_percent(wrong, config)))
    changes = tuple((c.name, *change) for c in everything for change in _additions(c.limits, config).items())
    environment = tuple(
        (c.name, PRIORITY_VARIABLE, str(c.limits[config.priority])) for c in everything if config.priority in c.limits
    )
    after = tuple(_mutated(c, config) for c in init), tuple(_mutated(c, config) for c in apps)
    if not any(config.count in c.limits for group in after for c in group):
        return Admitted(*after, scheduler_name, changes, environment)
    privileged = next((c.name for c in everything if c.is_privileged), None)
    if privileged is not None:
        return Denied(403, Quoted(f"container {privileged} is privileged"))
    if has_node:
        return Denied(403, Quoted("pod has node assigned"))
    return Admitted(*after, HAMI_SCHEDULER, changes, environment)


def _wrong_percent(container: Container, config: HamiConfig) -> str:
    name, percent = config.memory_percent, container.limits[config.memory_percent]
    return f"invalid {name} value {percent} in container {container.name}: must be an integer between 0 and 100"


def _additions(limits: Resources, config: HamiConfig) -> dict[str, int]:
    """The limits that the webhook adds to a container."""
    added: dict[str, int] = {}
    asks_part = any(name in limits for name in (config.memory, config.memory_percent, config.cores))
    if config.count not in limits:
        if not asks_part or config.default_gpus == 0:
            return {}
        added[config.count] = config.default_gpus
    percent = limits.get(config.memory_percent)
    is_whole = config.memory not in limits if percent is None else percent == 100
    if config.cores not in limits and is_whole:
        added[config.cores] = 100
    return added


def _mutated(container: Container, config: HamiConfig) -> Container:
    added = _additions(container.limits, config)
    if not added:
        return container
    limits, requests = container.limits.replaced(added), container.requests.replaced(added)
    return Container(
        container.name, requests, limits, container.is_sidecar, container.is_privileged, container.host_ports
    )


def asked(container: Container, config: HamiConfig) -> Resources:
    """What HAMi's scheduler reads of a container: its limit of each resource, else its request."""
    names = (config.count, config.memory, config.memory_percent, config.cores)
    if not container.requests and not container.limits:
        return NOTHING
    found = ((name, container.limits.get(name, container.requests.get(name))) for name in names)
    return Resources((name, amount) for name, amount in found if amount is not None)


def is_dropped(asks: Resources, config: HamiConfig) -> bool:
    """Whether HAMi drops the container's request, because its memory is no MiB number of 31 bits."""
    memory = asks.get(config.memory, 0)
    return _int32(asks.get(config.count, 0)) > 0 and not 0 <= memory * config.memory_factor <= _INT32


def overflows(asks: Resources, config: HamiConfig) -> bool:
    """Whether the container asks for more cards than HAMi can count."""
    return asks.get(config.count, 0) > _INT32


def resolve(asks: Resources, config: HamiConfig) -> SliceRequest | None:
    """What HAMi's scheduler makes of `asked`; None when it sees no request in it."""
    count = _int32(asks.get(config.count, 0))
    if count <= 0 or is_dropped(asks, config):
        return None
    memory = asks.get(config.memory, 0) * config.memory_factor
    percent = min(100, asks.get(config.memory_percent, 0))
    if memory == 0 and percent <= 0:
        memory = config.default_memory_mib
    cores = _int32(asks.get(config.cores, config.default_cores))
    return SliceRequest(count, memory, percent if percent > 0 else 100, cores)


def _int32(number: int) -> int:
    """The low 32 bits as a signed number, as Go's conversion has it."""
    return (number + 2**31) % 2**32 - 2**31


def requests_of(
    init: Sequence[Container], apps: Sequence[Container], config: HamiConfig
) -> tuple[ContainerDemand, ...]:
    """What HAMi's scheduler reads from the containers, init containers first."""
    initial = (ContainerDemand(c.name, _request(c, config), True, c.is_sidecar) for c in init)
    return (*initial, *(ContainerDemand(c.name, _request(c, config)) for c in apps))


@lru_cache(maxsize=4096)
def _request(container: Container, config: HamiConfig) -> SliceRequest | None:
    """Of equal containers it is asked again for each pod of a node, whenever anything changes there."""
    return resolve(asked(container, config), config)


def quota_refusal(admitted: Admitted, config: HamiConfig, quotas: Sequence[ResourceQuota]) -> Denied | None:
    """The webhook's refusal when the pod would exceed one of these quotas of its namespace; None when it would not.

    It counts all app containers or the biggest init container by the requests that its scheduler would read
    (`fitResourceQuota` asks `GenerateResourceRequests`, pkg/scheduler/webhook.go): a percentage is no memory at all,
    and a container whose request HAMi drops, such as one with a gpumem of 2147483648, counts as nothing. A pod for
    which all comes to nothing is admitted even into a namespace that has used up its quota.
    """
    if admitted.scheduler_name != HAMI_SCHEDULER:
        return None
    init, apps = ([_in_sum(c, config) for c in group] for group in (admitted.init, admitted.apps))
    needs = [max([sum(use[i] for use in apps), *(use[i] for use in init)]) for i in (0, 1)]
    if not any(needs):
        return None
    for need, resource in zip(needs, (config.memory, config.cores), strict=True):
        for quota in quotas:
            for key, limit in limits_of(quota, resource, config):
                if need + quota.used.get(key, 0) > limit:
                    return Denied(403, Quoted("exceeding resource quota"))
    return None


def limits_of(quota: ResourceQuota, resource: str, config: HamiConfig) -> Iterator[tuple[str, int]]:
    """The key and limit that a quota sets for a resource: none or one; memory in MiB."""
    key = f"limits.{resource}"
    if key in quota.hard:
        yield key, quota.hard[key] * (config.memory_factor if resource == config.memory else 1)


def _in_sum(container: Container, config: HamiConfig) -> tuple[int, int]:
    request = resolve(asked(container, config), config)
    return (0, 0) if request is None else (request.memory_mib * request.count, request.cores * request.count)
