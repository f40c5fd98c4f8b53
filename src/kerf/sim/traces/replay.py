"""A trace as it is to be replayed: which part of it, in how many copies, each later than the trace by chance.

A trace is often a sample of a cluster and too small to be one. Copies that are moved against each other within the
same span keep its hours and its bursts and add up to a cluster of any size. Copy 0 is the trace as it is.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

from kerf.errors import InputError
from kerf.model.large import Large
from kerf.sim.traces.formats import read_pods
from kerf.sim.traces.timedpods import HAMI, PodForm, TimedPod


@dataclass(frozen=True, slots=True)
class TraceSource:
    """What a scenario or the command line says of a trace.

    `skip_s` is where in the trace the replay begins, `span_s` how much of it is replayed (None: all that is left),
    and no pod runs longer than `longest_s`. A pod that comes again loses `restart_s` of what it has run (None: all).
    """

    path: str
    format: str | None = None
    copies: int = 1
    skip_s: int = 0
    span_s: int | None = None
    longest_s: int | None = None
    sharing: str = HAMI
    restart_s: int | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that comes `at_s` seconds into the replay and runs for `runs_s` once it has started (None: for ever)."""

    at_s: int
    name: str
    runs_s: int | None
    form: PodForm


@dataclass(frozen=True, repr=False)
class Replay(Large):
    """The pods of the part that is replayed, in the order in which they come, with times since its beginning.

    `notes` are sentences for the operator.
    """

    source: TraceSource
    pods: tuple[TimedPod, ...]
    span_s: int
    notes: tuple[str, ...] = ()

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """Every pod of every copy in the order in which they come, then of the copies. Cost: memory for the copies."""
        chance = random.Random(seed)
        offsets = [0, *(chance.randrange(max(1, self.span_s)) for _ in range(1, self.source.copies))]
        yield from heapq.merge(*map(self._copy, range(self.source.copies), offsets), key=lambda each: each.at_s)

    def _copy(self, number: int, offset_s: int) -> Iterator[Arrival]:
        """The trace moved by `offset_s`; what is moved over the end of the span comes at its beginning."""
        end_s = self.span_s - offset_s
        later = (pod for pod in self.pods if pod.came_s >= end_s)
        sooner = (pod for pod in self.pods if pod.came_s < end_s)
        suffix = f"-c{number}" if number else ""
        for pods, shift_s in ((later, -end_s), (sooner, offset_s)):
            for pod in pods:
                yield Arrival(pod.came_s + shift_s, pod.name + suffix, pod.runs_s, pod.form)


def read_replay(source: TraceSource) -> Replay:
    """The part of a file that is to be replayed. Raises InputError, also where no pod is in it."""
    counts: dict[str, int] = {}
    end_s = None if source.span_s is None else source.skip_s + source.span_s
    kept: list[TimedPod] = []
    outside = 0
    for pod in read_pods(source.path, source.format, source.sharing, counts):
        if pod.came_s < source.skip_s or (end_s is not None and pod.came_s >= end_s):
            outside += 1
            continue
        kept.append(pod._replace(came_s=pod.came_s - source.skip_s, runs_s=_at_most(pod.runs_s, source.longest_s)))
    if not kept:
        raise InputError(
            f"{source.path}: expected pods in the part that is replayed, got none, and {outside} outside it"
        )
    kept.sort(key=lambda pod: (pod.came_s, pod.name))
    span_s = source.span_s if source.span_s is not None else kept[-1].came_s + 1
    notes = [f"{count} row{'s' if count > 1 else ''} of the trace: {what}" for what, count in counts.items()]
    if outside:
        come = "pod comes" if outside == 1 else "pods come"
        notes.append(f"{outside} {come} before or after the part of the trace that is replayed")
    return Replay(source, tuple(kept), span_s, tuple(notes))


def _at_most(seconds: int | None, most: int | None) -> int | None:
    if most is None:
        return seconds
    return most if seconds is None else min(seconds, most)
