"""Looks at what pods use, keeps the last days of it for each workload, and writes that to the API now and then.

Nothing is decided here: usage is for advice. So nothing here may disturb a decision either: without a metrics server
one line says so and the look is repeated, and a checkpoint that cannot be read is logged and begun again.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.study.usage.history import (
    History,
    WorkloadName,
    entries_of,
    entry_key,
    entry_text,
    history_of,
    pruned,
    shard_of,
    workload_of,
)
from kerf.engine.study.usage.samples import SampleFault, joined
from kerf.errors import ApiError
from kerf.model.snapshot import Event, Synced, Watched
from kerf.model.usage import NO_USAGE, PodUsage, Usage
from kerf.ports import UsageSource
from kerf.state import ClusterState
from kerf.telemetry import USAGE_SAMPLES, USAGE_WORKLOADS, logger

MOST_SHARD_BYTES = 900 * 1024
"""Of the entries of one ConfigMap, which the API server takes up to a mebibyte of."""
_AT_ONCE = 200
"""Workloads between two breaths of the loop: each takes a fifth of a millisecond."""


@dataclass
class UsageBook:
    """What was seen last, of pods and nodes that exist; empty until then, and while no source reports any."""

    usage: Usage = NO_USAGE


@dataclass
class _Memory:
    """What was learned during one lead: `written` counts the bytes of each entry, `broken` are those to be removed."""

    histories: dict[WorkloadName, History] = field(default_factory=dict)
    changed: set[WorkloadName] = field(default_factory=set)
    written: dict[WorkloadName, int] = field(default_factory=dict)
    broken: dict[str, set[str]] = field(default_factory=dict)
    seen_s: dict[str, float] = field(default_factory=dict)


class UsageHistory:
    """One loop for the whole cluster. With `writes` False it only looks, for a dry run."""

    name = "usage"

    def __init__(
        self, state: ClusterState, ports: Ports, book: UsageBook, settings: Settings, *, writes: bool = True
    ) -> None:
        self._state, self._ports, self._book, self._settings, self._writes = state, ports, book, settings, writes
        self._memory: _Memory | None = None
        self._write_at_s = 0.0
        self._reported = ""

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Once, when all is known: from there on the clock alone counts."""
        is_on = self._ports.usage is not None and self._settings.usage_poll_s > 0
        return ("usage",) if is_on and isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """Look, remember, and write what has changed when it is time."""
        source = self._ports.usage
        if source is None:
            return DONE
        again = Result(self._settings.usage_poll_s)
        now_s = self._ports.clock.now_s()
        await self._look(source, now_s)
        if not self._writes:
            return again
        if self._memory is None:
            self._memory = await _recalled(source)
            self._write_at_s = now_s + self._settings.usage_checkpoint_s
        await self._remember(self._memory)
        if now_s >= self._write_at_s:
            await self._checkpoint(source, self._memory, now_s)
            self._write_at_s = now_s + self._settings.usage_checkpoint_s
        USAGE_WORKLOADS.set(len(self._memory.histories))
        return again

    async def _look(self, source: UsageSource, now_s: float) -> None:
        try:
            usage, doubts = await source.read()
        except ApiError as error:
            self._tell(f"without usage: {error}")
            self._book.usage = NO_USAGE
            return
        pods = {key: pod for key in usage.pods if (pod := self._state.pod(key)) is not None}
        named = {*usage.nodes, *(pod.node_name for pod in pods.values())}
        nodes = {name: node for name in named if (node := self._state.node(name)) is not None}
        found = joined(usage, pods, nodes, now_s)
        self._book.usage = found.usage
        wrong = {fault: number for fault, number in found.left_out.items() if fault != SampleFault.GONE}
        stale = wrong.pop(SampleFault.STALE, 0)
        false = len(doubts) + sum(wrong.values())
        for outcome, number in (("used", len(found.usage.pods)), ("stale", stale), ("false", false)):
            USAGE_SAMPLES.labels(outcome).inc(number)
        more = f" and {len(doubts) - 1} more" if len(doubts) > 1 else ""
        faults = [f"{doubts[0]}{more}"] if doubts else [f"{number} samples {fault}" for fault, number in wrong.items()]
        faults += [f"{stale} samples {SampleFault.STALE}"] if stale and not doubts else []
        self._tell(f"usage left out: {'; '.join(faults)}" if faults else "")

    def _tell(self, problem: str) -> None:
        """Say it once, until it is another."""
        if problem and problem != self._reported:
            logger(self.name).warning(problem)
        self._reported = problem

    async def _remember(self, memory: _Memory) -> None:
        """Add the samples that are new, by workload."""
        cron_jobs = {cron_job.key for cron_job in self._state.cron_jobs()}
        new: dict[WorkloadName, list[PodUsage]] = {}
        for key, sample in self._book.usage.pods.items():
            pod = self._state.pod(key)
            workload = None if pod is None else workload_of(pod, cron_jobs)
            if workload is not None and sample.at_s > memory.seen_s.get(key, 0):
                new.setdefault(workload, []).append(sample)
        memory.seen_s = {key: sample.at_s for key, sample in self._book.usage.pods.items()}
        for number, (workload, samples) in enumerate(sorted(new.items())):
            held = memory.histories.get(workload, History())
            memory.histories[workload] = held.merged(history_of(samples))
            memory.changed.add(workload)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)

    async def _checkpoint(self, source: UsageSource, memory: _Memory, now_s: float) -> None:
        """Write the workloads that have changed and remove those that are gone, a ConfigMap at a time."""
        kept = pruned({name: held.trimmed(now_s) for name, held in memory.histories.items()}, now_s)
        gone = memory.written.keys() - kept.keys()
        memory.histories = kept
        by_shard: dict[str, set[WorkloadName]] = {shard: set() for shard in memory.broken}
        for name in (memory.changed & kept.keys()) | gone:
            by_shard.setdefault(shard_of(name), set()).add(name)
        for shard, names in sorted(by_shard.items()):
            texts = {name: entry_text(name, kept[name]) if name in kept else None for name in sorted(names)}
            _make_room(shard, memory, texts)
            broken = memory.broken.get(shard, set())
            changes = {**dict.fromkeys(sorted(broken)), **{entry_key(name): text for name, text in texts.items()}}
            await source.write(shard, changes)
            # Only now: what could not be written is written the next time.
            memory.broken.pop(shard, None)
            memory.changed -= names
            for name, text in texts.items():
                memory.written.pop(name, None)
                if text is not None:
                    memory.written[name] = len(text)


def _make_room(shard: str, memory: _Memory, texts: dict[WorkloadName, str | None]) -> None:
    """Leave out of the ConfigMap who was seen longest ago, while it would be too large. They stay in memory."""
    sizes = {name: size for name, size in memory.written.items() if shard_of(name) == shard}
    for name, text in texts.items():
        sizes[name] = len(text or "")
    total = sum(sizes.values())
    oldest = sorted(sizes, key=lambda name: (memory.histories.get(name, History()).last_s, name))
    dropped = 0
    for name in oldest:
        if total <= MOST_SHARD_BYTES:
            break
        total -= sizes[name]
        texts[name] = None
        dropped += 1
    if dropped:
        logger("usage").warning("checkpoint is full: those seen longest ago are left out", shard=shard, number=dropped)


async def _recalled(source: UsageSource) -> _Memory:
    """What an earlier life has written. Raises ApiError: the runtime tries again."""
    memory = _Memory()
    shards: Mapping[str, Mapping[str, str]] = await source.checkpoints()
    for shard, data in shards.items():
        found, broken = entries_of(data)
        for name, history in found.items():
            memory.histories[name] = history
            memory.written[name] = len(data.get(entry_key(name), ""))
        if broken:
            memory.broken[shard] = set(broken)
            first = next(iter(broken.values()))
            logger("usage").warning("checkpoint started again", shard=shard, entries=len(broken), error=first)
        await asyncio.sleep(0)
    return memory
