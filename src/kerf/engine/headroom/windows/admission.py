"""Held pods -> those that may be planned now, within the quotas of their windows; and after planning, which gates open.

What a pod takes of a card is known for certain only where it has its place. A quota must be kept before anything is
bought, though, so a pod is judged by the largest share that it would take of any card that can be had, and
charged with what it really takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.engine.decision import Refusal
from kerf.engine.headroom.windows.phases import Turn, Windows, charged, exhausted, is_held
from kerf.engine.place.devices import demand_of, emptied, place_on_devices
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.target import Target
from kerf.engine.place.trial import Trial
from kerf.engine.supply.offered import Supply
from kerf.model.causes import Cause
from kerf.model.gpu import DeviceState, Slice
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Admission, Misfit
from kerf.model.pods import Pod, PodDemand, label_keys_of, samples
from kerf.model.windows import OPEN, PER_NAMESPACE, WHOLE_CARD, WINDOW_GATE, WINDOW_LABEL, CapacityWindow

GATES = (WINDOW_GATE, OPPORTUNISTIC)
"""The gates that are ours to open."""
Place = tuple[tuple[Slice, ...], Sequence[DeviceState]]
"""The slices that a pod gets, and the cards of the node where it gets them."""


@dataclass
class Judged:
    """What became of the pods of a snapshot: those to plan for, those that are held, and by whom each was let in.

    `opportunistic` are those for which nothing is bought, `notes` what is granted less room than it asks
    for, or none. `of_each_mark` has a pod of each mark (`Pod.mark`) that those to plan for have.
    """

    pods: list[Pod] = field(default_factory=list)
    held: list[Refusal] = field(default_factory=list)
    passed: dict[str, tuple[CapacityWindow, Turn]] = field(default_factory=dict)
    opportunistic: list[Pod] = field(default_factory=list)
    notes: list[Cause] = field(default_factory=list)
    of_each_mark: list[Pod] = field(default_factory=list)


def judged(pods: list[Pod], of_each_mark: list[Pod], windows: Windows, shares: "Shares", now_s: float) -> Judged:
    """Held pods are asked in the order of the queue; of pods that are not held only the order changes.

    `of_each_mark` are `samples` of them, or of more pods.

    A window's quota binds its pods also where they came without its gate: a user may create one so.
    """
    found, waiting = Judged(), []
    if not windows.windows:
        # Most have neither gate nor label, and often none of them has.
        is_marked = WINDOW_LABEL in label_keys_of(of_each_mark) or any(p.spec.scheduling_gates for p in of_each_mark)
        held = [pod for pod in pods if is_held(pod)] if is_marked else []
        found.pods = [pod for pod in pods if not is_held(pod)] if held else pods
        pods = held
    for pod in pods:
        if is_held(pod) or windows.charges(pod):
            waiting.append(windows.opened(pod))
        else:
            found.pods.append(windows.ranked(pod))
    left = _Quotas(now_s)
    for pod in sorted(waiting, key=queue_order):
        verdict = windows.verdict(pod)
        if isinstance(verdict, Refusal):
            found.held.append(verdict)
            continue
        window, refusal = left.first(pod, verdict, windows, shares)
        if window is None:
            assert refusal is not None
            found.held.append(refusal)
            continue
        found.passed[pod.key] = (window, windows.turns[window.name])
        found.pods.append(pod)
    found.of_each_mark = samples(found.pods) if windows.windows else list(of_each_mark)
    return found


class _Quotas:
    """What is left of each quota while pods are let in."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s
        self._used: dict[str, dict[str, int]] = {}

    def first(
        self, pod: Pod, among: Sequence[CapacityWindow], windows: Windows, shares: "Shares"
    ) -> tuple[CapacityWindow | None, Refusal | None]:
        """The first window whose quota allows the pod, which is charged; or why none does."""
        refusal = None
        for window in among:
            turn = windows.turns[window.name]
            if window.quota is None or turn.phase != OPEN or turn.closes_s is None:
                return window, None
            used = self._used.setdefault(window.name, dict(charged(window)))
            # What was reserved for it by an opener that died is its own.
            own = sum(held.amount for held in window.status.reservations if pod.uid and held.uid == pod.uid)
            wanted = shares.most(pod) * reserved_s(pod, turn, self._now_s)
            namespaces = (pod.namespace,) if window.quota.per == PER_NAMESPACE else tuple(used)
            left = window.quota.card_seconds - sum(used.get(name, 0) for name in namespaces) + own
            if wanted <= left:
                used[pod.namespace] = used.get(pod.namespace, 0) + wanted - own
                return window, None
            refusal = refusal or exhausted(pod, window, wanted, max(0, left))
        return None, refusal


def reserved_s(pod: Pod, turn: Turn, now_s: float) -> int:
    """For how long a quota is reserved for a pod that comes now: as long as it may run, at most until the end."""
    left_s = max(0, int((turn.closes_s or now_s) - now_s))
    deadline = pod.spec.active_deadline_s
    return left_s if deadline is None else min(left_s, deadline)


class Shares:
    """What pods take of cards, in ten-thousandths of one: the largest of their shares of memory, cores and slots."""

    def __init__(self, trial: Trial, supply: Supply) -> None:
        self._trial, self._supply = trial, supply
        self._most: dict[tuple[int, tuple[tuple[str, str], ...]], int] = {}

    def most(self, pod: Pod) -> int:
        """The largest share that the pod takes on any card that it fits, of those there are and those for sale."""
        key = (id(pod.spec), tuple(sorted(pod.annotations.items())))
        if key not in self._most:
            shape = Shape((pod,))
            self._most[key] = max((self._on(shape, *idle) for idle in self._layouts()), default=0)
        return self._most[key]

    def _layouts(self) -> list[tuple[Target, tuple[DeviceState, ...]]]:
        found: dict[object, tuple[Target, tuple[DeviceState, ...]]] = {}
        for spot in self._trial.spots:
            if spot.room.devices:
                idle = tuple(map(emptied, spot.room.devices))
                shapes = tuple((card.memory_mib, card.cores, card.slots) for card in idle)
                found.setdefault((spot.target.family.name, shapes), (spot.target, idle))
        for offered in (*self._supply.available, *self._supply.unavailable):
            if offered.room.devices:
                found.setdefault(offered.layout, (offered.target, offered.room.devices))
        return list(found.values())

    @staticmethod
    def _on(shape: Shape, target: Target, devices: tuple[DeviceState, ...]) -> int:
        demand = demand_of(shape, target.family)
        if not isinstance(demand, PodDemand) or demand.is_empty:
            return 0
        taken = place_on_devices(target, devices, shape)
        return 0 if isinstance(taken, Misfit) else share(taken.slices, devices)


def share(slices: Iterable[Slice], devices: Sequence[DeviceState]) -> int:
    """What slices take of their cards, summed, in ten-thousandths of a card."""
    cards = {device.index: device for device in devices}
    taken: dict[int, list[Slice]] = {}
    for part in slices:
        taken.setdefault(part.device, []).append(part)
    total = 0
    for index, parts in taken.items():
        card = cards.get(index)
        if card is None:
            total += WHOLE_CARD
            continue
        memory, cores = sum(p.memory_mib for p in parts), sum(p.cores for p in parts)
        shares = ((memory, card.memory_mib), (cores, card.cores), (len(parts), card.slots))
        total += min(WHOLE_CARD, max((used * WHOLE_CARD // all_ for used, all_ in shares if all_ > 0), default=0))
    return total


def admissions(
    waiting: Judged, places: Mapping[str, Place], pending: Mapping[str, Pod], now_s: float
) -> tuple[Admission, ...]:
    """The gates to open: of pods that were let through, or are opportunistic, and have a place.

    `pending` are the pods as they are, by key.
    """
    found = []
    for pod in sorted((*waiting.pods, *waiting.opportunistic), key=queue_order):
        gates = tuple(gate for gate in GATES if gate in pending[pod.key].spec.scheduling_gates) if pod.uid else ()
        if pod.key not in places or not (gates or (pod.uid and pod.key in waiting.passed)):
            continue
        if pod.key not in waiting.passed:
            found.append(Admission(pod.key, gates))
            continue
        window, turn = waiting.passed[pod.key]
        is_open = turn.phase == OPEN
        until_s = now_s + reserved_s(pod, turn, now_s) if window.quota is not None and is_open else None
        opened_s = turn.opens_s if is_open else None
        found.append(Admission(pod.key, gates, window.name, opened_s, share(*places[pod.key]), until_s))
    return tuple(found)
