"""A CapacityWindow: whether it is open, what it keeps ready and where, what its pods use, and who waits for it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import PodAnswers
from kerf.cli.plan.calendar import quota_text, selector_text
from kerf.cli.plan.json import Json
from kerf.cli.render import counted, some
from kerf.engine.headroom.windows.phases import Turn, charged, is_held, missing_pools, turn_of
from kerf.engine.headroom.windows.warm import is_kept_by
from kerf.manifests.windows.encode import gpu_hours_text
from kerf.model.plan import Unplaced
from kerf.model.pods import Pod
from kerf.model.schedules import local_text
from kerf.model.times import duration_text, instant_text
from kerf.model.windows import OPEN, WARMING, CapacityWindow


@dataclass(frozen=True)
class _Window:
    """A window with all that is asked of it."""

    window: CapacityWindow
    answers: PodAnswers

    @cached_property
    def turn(self) -> Turn:
        return turn_of(self.window, self.answers.read.snapshot.taken_at_s)

    @cached_property
    def problem(self) -> str:
        pools = [pool.name for pool in self.answers.read.snapshot.node_pools]
        missing = ", ".join(missing_pools(self.window, pools))
        return self.window.invalid or (f"spec.nodePools: no such NodePool: {missing}" if missing else "")

    @cached_property
    def pods(self) -> list[Pod]:
        """Its own pods that have not ended, by key."""
        mine = (p for p in self.answers.read.pods if not p.is_ended and self.window.selects(p.namespace, p.labels))
        return sorted(mine, key=lambda pod: pod.key)

    @cached_property
    def held(self) -> dict[str, list[str]]:
        """Pods that wait for it, by why."""
        found: dict[str, list[str]] = {}
        for pod in self.pods:
            unplaced = self.answers.unplaced.get(pod.key)
            if unplaced is not None and is_held(pod):
                found.setdefault(unplaced.reason, []).append(pod.key)
        return found

    @cached_property
    def kept(self) -> Counter[str]:
        """Places that are kept, by the node that has them or will."""
        plan = self.answers.plan
        found = Counter(p.node for p in plan.placements if is_kept_by(self.window, p.pod.pod))
        for launch in plan.launches:
            number = sum(is_kept_by(self.window, placed.pod) for placed in launch.pods)
            if number:
                found[f"{launch.name} ({launch.offering}), to be bought"] += number
        return found

    @cached_property
    def unplaced(self) -> list[Unplaced]:
        """Places that nothing holds."""
        return [each for each in self.answers.plan.unplaced if is_kept_by(self.window, each.pod)]


def explain_window(window: CapacityWindow, answers: PodAnswers) -> Explanation:
    """Phase, lead time, warm capacity, quota and pods."""
    asked = _Window(window, answers)
    needs_look = bool(asked.problem or asked.unplaced)
    return Explanation(_data(asked), tuple(_lines(asked)), needs_look)


def _data(asked: _Window) -> Json:
    window, turn = asked.window, asked.turn
    instants = {"opensAt": turn.opens_s, "closesAt": turn.closes_s}
    return {
        "kind": "CapacityWindow",
        "name": window.name,
        "phase": turn.phase,
        **{name: None if seconds is None else instant_text(seconds) for name, seconds in instants.items()},
        "problem": asked.problem,
        "leadTime": duration_text(window.lead_s),
        "warm": {
            "asked": sum(warm.replicas for warm in window.warm),
            "kept": dict(sorted(asked.kept.items())),
            "unplaced": len(asked.unplaced),
        },
        "quota": None
        if window.quota is None
        else {
            "gpuHours": gpu_hours_text(window.quota.card_seconds),
            "per": window.quota.per,
            "used": {name: gpu_hours_text(used) for name, used in sorted(charged(window).items())},
        },
        "held": [{"reason": reason, "pods": pods} for reason, pods in sorted(asked.held.items())],
        "pods": len(asked.pods),
    }


def _lines(asked: _Window) -> Iterator[str]:
    window, turn = asked.window, asked.turn
    yield f"CapacityWindow {window.name} {_phase(asked)}"
    if asked.problem:
        yield f"  problem: {asked.problem}"
    lasting = duration_text(window.duration_s)
    yield f"  schedule: {window.schedule} {window.time_zone}, for {lasting}; pods with {selector_text(window)}"
    if window.warm:
        learned = "stated" if window.lead_time_s is not None else "learned" if window.status.lead_times_s else "a guess"
        asked_for = sum(warm.replicas for warm in window.warm)
        lead = duration_text(window.lead_s)
        yield f"  warm: {counted(asked_for, 'place')}, from {lead} before it opens ({learned})"
        if turn.phase in (WARMING, OPEN):
            yield from (f"    {number} on {node}" for node, number in sorted(asked.kept.items()))
            free = sum(asked.kept.values()) + len(asked.unplaced)
            if free < asked_for:
                yield f"    {asked_for - free} used by its pods"
            yield from (f"    {each.pod.partition('/')[2]} has no place: {each.reason}" for each in asked.unplaced[:3])
    if window.quota is not None:
        yield f"  quota: {quota_text(window)}"
        yield from (f"    {name}: {gpu_hours_text(used)} charged" for name, used in sorted(charged(window).items()))
    yield f"  pods: {counted(len(asked.pods), 'pod')} of its own"
    for reason, keys in sorted(asked.held.items()):
        yield f"    {some(keys)}: {reason}"


def _phase(asked: _Window) -> str:
    turn, zone = asked.turn, asked.window.time_zone
    if turn.opens_s is None or turn.closes_s is None:
        return "is closed and opens no more"
    left = duration_text(max(0, int((turn.closes_s if turn.phase == OPEN else turn.opens_s) - _now(asked))))
    if turn.phase == OPEN:
        return f"is open until {local_text(turn.closes_s, zone)}, {left} more"
    doing = "is getting ready and opens" if turn.phase == WARMING else "is closed and opens"
    return f"{doing} at {local_text(turn.opens_s, zone)}, in {left}"


def _now(asked: _Window) -> float:
    return asked.answers.read.snapshot.taken_at_s
