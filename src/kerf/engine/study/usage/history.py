"""What workloads have used over the last days: a sketch for each container and resource, by the workload's name.

Pods come and go, and the requests that advice is about stand in the template of whatever controls them. So samples are
kept under the top controller as far as it can be known from a pod alone: a ReplicaSet's Deployment and a Job's CronJob.
A pod without a controller runs once and has no history.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kerf.engine.study.usage.sketch import DAY_S, DAYS, Sketch
from kerf.model.owners import top_owner
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY
from kerf.model.times import instant_s, instant_text
from kerf.model.usage import SHARD_FORM, PodUsage

RESOURCES = (CPU, MEMORY)
"""What is kept: cpu in milli, memory in bytes."""
MOST_WORKLOADS = 50_000
"""Those that were seen last are kept: Jobs that never come again must not fill the memory."""


@dataclass(frozen=True, slots=True, order=True)
class WorkloadName:
    """`data`, `Job`, `dagster-run`."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class History:
    """Of one workload: sketches by container and resource, and when its first and last sample were taken."""

    sketches: Mapping[tuple[str, str], Sketch] = field(default_factory=dict, hash=False)
    first_s: int = 0
    last_s: int = 0

    def merged(self, other: "History") -> "History":
        """The samples of both. Associative and commutative; the empty one changes nothing."""
        sketches = dict(self.sketches)
        for key, sketch in other.sketches.items():
            sketches[key] = sketches.get(key, Sketch()).merged(sketch)
        first_s = min((one.first_s for one in (self, other) if one.sketches), default=0)
        return History(dict(sorted(sketches.items())), first_s, max(self.last_s, other.last_s))

    def trimmed(self, now_s: float) -> "History":
        """Without the days that are too old to be kept."""
        oldest = int(now_s) // DAY_S - DAYS
        kept = {key: sketch for key, held in self.sketches.items() if (sketch := held.since(oldest)).data}
        return History(kept, max(self.first_s, oldest * DAY_S), self.last_s) if kept else History()


def workload_of(pod: Pod, cron_jobs: Collection[str]) -> WorkloadName | None:
    """What controls the pod in the end; None without one. `cron_jobs` are known ones, as `namespace/name`."""
    owner = top_owner(pod, cron_jobs)
    return WorkloadName(pod.namespace, owner.kind, owner.name) if owner is not None else None


def history_of(samples: Iterable[PodUsage]) -> History:
    """The history that these samples are. One pod's sample of one instant counts once, however often it comes."""
    once = {(sample.namespace, sample.name, sample.at_s): sample for sample in samples}
    values: dict[tuple[str, str, int], list[int]] = {}
    for sample in once.values():
        day = int(sample.at_s) // DAY_S
        for container in sample.containers:
            values.setdefault((container.name, CPU, day), []).append(container.cpu_millis)
            values.setdefault((container.name, MEMORY, day), []).append(container.memory_bytes)
    sketches: dict[tuple[str, str], Sketch] = {}
    for (container_name, resource, day), found in sorted(values.items()):
        key = (container_name, resource)
        sketches[key] = sketches.get(key, Sketch()).merged(Sketch.of(day, found))
    times = [int(sample.at_s) for sample in once.values()]
    return History(sketches, min(times), max(times)) if sketches else History()


def pruned(histories: Mapping[WorkloadName, History], now_s: float) -> dict[WorkloadName, History]:
    """Those that were seen within `DAYS` days, at most `MOST_WORKLOADS` of them, the last seen first."""
    alive = {name: held for name, held in histories.items() if held.last_s > now_s - DAYS * DAY_S}
    if len(alive) > MOST_WORKLOADS:
        last = sorted(alive, key=lambda name: (-alive[name].last_s, name))[:MOST_WORKLOADS]
        alive = {name: alive[name] for name in sorted(last)}
    return alive


# Checkpoints: one entry a workload, in ConfigMaps that are found by a hash of its name.

SHARDS = 32
SHARD_NAME = "kerf-usage-"


def shard_of(name: WorkloadName) -> str:
    """The name of the ConfigMap that holds the workload's checkpoint: the same for ever."""
    return f"{SHARD_NAME}{int(_digest(name)[:8], 16) % SHARDS:02d}"


def entry_key(name: WorkloadName) -> str:
    """The key in it; names may be longer than a key."""
    return _digest(name)[:32]


def entry_text(name: WorkloadName, history: History) -> str:
    """The checkpoint of one workload as JSON."""
    sketches: dict[str, dict[str, str]] = {}
    for (container, resource), sketch in sorted(history.sketches.items()):
        sketches.setdefault(container, {})[resource] = b64encode(sketch.data).decode()
    return json.dumps(
        {
            "namespace": name.namespace,
            "kind": name.kind,
            "name": name.name,
            "first": instant_text(history.first_s),
            "last": instant_text(history.last_s),
            "containers": sketches,
        },
        separators=(",", ":"),
    )


def entry_of(text: str) -> tuple[WorkloadName, History]:
    """What `entry_text` has written. Raises ValueError for anything else, with what was expected."""
    try:
        raw = json.loads(text)
        name = WorkloadName(*(_text(raw[key]) for key in ("namespace", "kind", "name")))
        sketches = {
            (container, resource): Sketch.checked(b64decode(_text(data), validate=True))
            for container, held in sorted(raw["containers"].items())
            for resource, data in sorted(held.items())
        }
        first_s, last_s = (int(instant_s(_text(raw[key]))) for key in ("first", "last"))
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(
            f"expected a checkpoint of usage, form {SHARD_FORM}, got {type(error).__name__}: {error}"
        ) from error
    return name, History(sketches, first_s, last_s)


def entries_of(data: Mapping[str, str]) -> tuple[dict[WorkloadName, History], dict[str, str]]:
    """The checkpoints of a ConfigMap, and why an entry is none, by its key."""
    found: dict[WorkloadName, History] = {}
    broken: dict[str, str] = {}
    for key, text in sorted(data.items()):
        try:
            name, history = entry_of(text)
        except ValueError as error:
            broken[key] = str(error)
        else:
            found[name] = found[name].merged(history) if name in found else history
    return found, broken


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text but {type(value).__name__}")
    return value


def _digest(name: WorkloadName) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()
