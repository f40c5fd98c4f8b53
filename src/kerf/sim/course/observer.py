"""Watches a simulation: keeps count of what is paid, used and waiting, and writes down what a person wants to know.

Sums over time are taken of levels that hold between two events, so every event first closes the time before it. What
is written down are facts of the API and the cloud, with Kerf's own events and reasons beside them.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from kerf.cloudprovider import Instance
from kerf.clouds.fake import ENDED, INTERRUPTED, LAUNCHED, REPLY_LOST, THROTTLED, CloudEvent, FakeCloud
from kerf.engine.explain.launches import why_launched
from kerf.model.constraints import NODE_POOL
from kerf.model.instancetypes import price_text
from kerf.model.market import Market
from kerf.model.nodes import Node
from kerf.model.plan import Launch, Plan
from kerf.model.pods import RUNNING, Pod
from kerf.model.promises import read
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import Violation
from kerf.ports import Clock
from kerf.sharing.hami.records import parse_allocation
from kerf.sim.course.books import Books, allocated
from kerf.sim.course.report import Row, RowCount, Sample, StillPending, Totals, Waits
from kerf.sim.kubernetes.api import ADDED, DELETED, InMemoryApi
from kerf.sim.objects import Json, annotations_of, condition_of, key_of, labels_of, name_of, uid_of

_SPOKEN_ELSEWHERE = frozenset({"Nominated", "DisruptionBlocked", "Unconsolidatable"})
"""Reasons of Kerf's events that repeat for as long as a state lasts; they would drown the timeline."""
_NOT_PLACED = "FailedScheduling"
_DEADLINE = "DeadlineExceeded"
_MOST_SAMPLES = 40_000
"""Beyond so many every second one is let go where rows are not kept; a chart has a thousand points across."""


class MachineKind(NamedTuple):
    """What instances are counted by; an empty word stands for all."""

    node_pool: str
    instance_type: str
    capacity_type: str

    def selections(self) -> list["MachineKind"]:
        """Every selection that it belongs to."""
        return [MachineKind(*words) for words in product(*(("", word) if word else ("",) for word in self))]


class Machine(NamedTuple):
    """An instance that exists."""

    kind: MachineKind
    gpus: float


class Said(NamedTuple):
    """An event that Kerf has posted; `regards` is `Kind/namespace/name` or `Kind/name`."""

    reason: str
    regards: str
    message: str


class PlanNotes:
    """`kerf.ports.PlanFeed`: remembers why each set of pods was bought for."""

    def __init__(self) -> None:
        self._why: dict[tuple[str, frozenset[str]], str] = {}
        self.refused: list[tuple[Violation, ...]] = []
        """The breaches of each decision that was not carried out as it was made; none where Kerf is right."""

    def launching(self, launches: Sequence[Launch]) -> None:
        """See PlanFeed."""
        for launch in launches:
            self._why[launch.node_pool, frozenset(placed.pod for placed in launch.pods)] = why_launched(launch)

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """See PlanFeed. Rows are written when claims appear, and what they say is known by then."""

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """See PlanFeed."""
        self.refused.append(tuple(breaches))

    def why(self, pool: str, pods: Iterable[str]) -> str:
        """Why a pool bought a node for these pods; empty when no plan said so. Asked once of each claim with pods."""
        key = pool, frozenset(pods)
        return self._why.pop(key, "") if key[1] else self._why.get(key, "")


class Observer:
    """One for each run. The caller that gives it events calls `close` first, then `books.note`, then `on_event`.

    Unless it `keeps_rows` only their number is kept, and of `samples` no more than a chart has: a trace would have a
    million. Unless it `keeps_said`, what Kerf has posted is counted and not kept.
    """

    def __init__(
        self,
        api: InMemoryApi,
        clock: Clock,
        cloud: FakeCloud,
        books: Books,
        plans: PlanNotes,
        *,
        keeps_rows: bool = True,
        keeps_said: bool = True,
    ) -> None:
        self._api, self._clock, self._cloud, self._books, self._plans = api, clock, cloud, books, plans
        self._keeps_rows, self._keeps_said = keeps_rows, keeps_said
        self._row_counts: dict[str, RowCount] = {}
        self._start_s = self._closed_s = clock.now_s()
        self.rows: list[Row] = []
        self.samples: list[Sample] = []
        self.said: list[Said] = []
        self._counts: Counter[str] = Counter()
        self._machines: dict[str, Machine] = {}
        self._most: Counter[MachineKind] = Counter()
        self._per_hour_micro = self._reported_per_hour_micro = 0
        self._used: dict[str, int] = {}
        # Nodes on which something has happened at the present instant; what they are used for is counted at its end.
        self._touched: set[str] = set()
        self._used_seconds = 0.0
        self._pending: dict[str, tuple[str, str]] = {}
        # The last message that says of a pod that waits why it gets no node, by key.
        self._refused: dict[str, str] = {}
        self._running: dict[str, str] = {}
        self._born: dict[str, float] = {}
        self._bound: set[str] = set()
        self._waits = array("d")
        self._states: dict[str, str] = {}
        self._failed: set[str] = set()
        self._throttled_s = float("-inf")

    # What it learns.

    def close(self) -> None:
        """Account for the time since the last event, at the levels that held in it."""
        now_s = self._clock.now_s()
        if now_s > self._closed_s:
            for name in self._touched:
                self._count_used(name)
            self._touched.clear()
            used = sum(self._used.values())
            self._used_seconds += (now_s - self._closed_s) * used
            self._sample(used)
            self._closed_s = now_s

    def on_event(self, type_: str, obj: Json, value: Pod | Node | None) -> None:
        """An API event; `value` is what `books.note` gave."""
        if isinstance(value, Pod):
            self._pod(type_, value)
        elif isinstance(value, Node):
            self._node(type_, value)
        elif obj["kind"] == "Event" and type_ == ADDED:
            self._say(obj)
        elif obj["kind"] == "NodeClaim" and type_ == ADDED:
            pods = sorted(read(annotations_of(obj)).pods)
            why = self._plans.why(labels_of(obj).get(NODE_POOL, ""), pods)
            self.note("claim created", f"nodeclaim/{name_of(obj)}", why or f"for {', '.join(pods)}")
        elif obj["kind"] == "Job":
            self._job(type_, obj)

    def _job(self, type_: str, obj: Json) -> None:
        """That a Job has failed, once: its pods are deleted with it, and nothing else would say why."""
        failed, uid = condition_of(obj, "Failed"), uid_of(obj)
        if type_ == DELETED:
            self._failed.discard(uid)
        elif failed is not None and uid not in self._failed:
            self._failed.add(uid)
            _, namespace, name = key_of(obj)
            deadline_s = obj["spec"].get("activeDeadlineSeconds")
            why = f"its activeDeadlineSeconds of {deadline_s} are over" if failed["reason"] == _DEADLINE else ""
            self.note("job failed", f"job/{namespace}/{name}", why or failed["reason"])

    def on_cloud(self, event: CloudEvent) -> None:
        """A cloud event."""
        self.close()
        self._counts[event.what] += 1
        instance = event.instance
        if instance is not None:
            if event.what == LAUNCHED:
                self._launched(instance)
            elif event.what == ENDED:
                del self._machines[instance.provider_id]
            self._tell_cloud(event, instance)
        elif event.what == THROTTLED and self._throttled_s < self._clock.now_s():
            self._throttled_s = self._clock.now_s()
            self.note("throttled", "cloud", f"refused {event.detail}")
        self._per_hour_micro = self._cloud.price_per_hour_micro

    def note(self, what: str, regards: str, why: str = "") -> None:
        """Write a row of the timeline."""
        self.close()
        self._write(Row(self._clock.now_s() - self._start_s, what, regards, why))

    def _write(self, row: Row) -> None:
        known = self._row_counts.get(row.what)
        times, first_s, first = (
            (0, row.at_s, row.object) if known is None else (known.times, known.first_s, known.object)
        )
        self._row_counts[row.what] = RowCount(row.what, times + 1, first_s, row.at_s, first)
        if self._keeps_rows:
            self.rows.append(row)

    def counts(self) -> tuple[RowCount, ...]:
        """How often each thing happened, in the order in which it first did."""
        return tuple(self._row_counts.values())

    # Machines.

    def _launched(self, instance: Instance) -> None:
        claim = self._api.get("NodeClaim", "", instance.claim_name)
        pool = "" if claim is None else labels_of(claim).get(NODE_POOL, "")
        gpus = self._cloud.find(instance.offering.instance_type).gpu_eighths / 8
        kind = MachineKind(pool, instance.offering.instance_type, instance.offering.capacity_type)
        self._machines[instance.provider_id] = Machine(kind, gpus)
        counts = Counter(key for machine in self._machines.values() for key in machine.kind.selections())
        for key in kind.selections():
            self._most[key] = max(self._most[key], counts[key])

    def _tell_cloud(self, event: CloudEvent, instance: Instance) -> None:
        words = {
            INTERRUPTED: "interruption",
            REPLY_LOST: "reply lost",
            **({ENDED: "instance gone"} if event.detail else {}),
        }
        if event.what in words:
            self.note(words[event.what], f"nodeclaim/{event.claim_name}", f"{instance.offering}: {event.detail}")

    # Rows.

    def _say(self, event: Json) -> None:
        about = event["involvedObject"]
        key = "/".join(part for part in (about["kind"], about.get("namespace", ""), about["name"]) if part)
        if self._keeps_said:
            self.said.append(Said(event["reason"], key, event["message"]))
        self._counts[event["reason"]] += 1
        if event["reason"] == _NOT_PLACED:
            self._refused[key.partition("/")[2]] = event["message"]
        if event["reason"] not in _SPOKEN_ELSEWHERE:
            kind, _, name = key.partition("/")
            self.note(event["reason"], f"{kind.lower()}/{name}", event["message"])

    def _pod(self, type_: str, pod: Pod) -> None:
        self._touched.add(pod.node_name)
        if pod.is_daemon:
            return
        self._pending.pop(pod.uid, None)
        self._running.pop(pod.uid, None)
        if type_ != DELETED and pod.is_pending:
            self._pending[pod.uid] = pod.namespace, pod.key
        else:
            self._refused.pop(pod.key, None)
        if type_ != DELETED and pod.phase == RUNNING and pod.deleted_s is None:
            self._running[pod.uid] = pod.namespace
        born_s = self._born.setdefault(pod.uid, self._clock.now_s())
        if type_ != DELETED and pod.node_name and pod.uid not in self._bound:
            self._bound.add(pod.uid)
            self._waits.append(self._clock.now_s() - born_s)
            parts = self._parts(pod) if self._keeps_rows else ""
            self.note("bound", f"pod/{pod.key}", f"node {pod.node_name}{parts}")
        is_over = pod.node_name and (pod.is_ended or type_ == DELETED)
        if is_over and self._changed(pod.uid, "over"):
            self.note("ended" if pod.is_ended else "removed", f"pod/{pod.key}", f"node {pod.node_name}")
        if type_ == DELETED:
            self._born.pop(pod.uid, None)
            self._bound.discard(pod.uid)
            self._states.pop(pod.uid, None)

    def _parts(self, pod: Pod) -> str:
        indexes = {device.id: device.index for device in self._books.devices(pod.node_name)}
        shares = [share for segment in parse_allocation(pod.annotations) or () for share in segment]
        return "".join(
            f", GPU {indexes.get(s.device_id, s.device_id)}: {s.memory_mib} MiB, {s.cores} cores" for s in shares
        )

    def _node(self, type_: str, node: Node) -> None:
        self._touched.add(node.name)
        was_known = node.uid in self._states
        state = "node removed" if type_ == DELETED else "node ready" if node.is_ready else "node not ready"
        if self._changed(node.uid, state) and (was_known or node.is_ready):
            self.note(state, f"node/{node.name}", f"NodePool {pool}" if (pool := node.labels.get(NODE_POOL)) else "")
        if type_ == DELETED:
            self._states.pop(node.uid, None)

    def _changed(self, uid: str, state: str) -> bool:
        before, self._states[uid] = self._states.get(uid), state
        return before != state

    # Levels.

    def _count_used(self, name: str) -> None:
        node = self._books.node(name)
        if node is None or node.provider_id not in self._machines:
            self._used.pop(name, None)
        else:
            kind = self._cloud.find(self._machines[node.provider_id].kind.instance_type)
            self._used[name] = allocated(self._books.devices(name), kind)

    def _sample(self, used: int) -> None:
        at_s = self._closed_s - self._start_s
        paid = sum(machine.gpus for machine in self._machines.values())
        levels = (self._books.node_count, paid, used, len(self._pending), self._per_hour_micro)
        if not self.samples or self.samples[-1].levels != levels:
            self.samples.append(Sample(at_s, *levels))
            if not self._keeps_rows and len(self.samples) > _MOST_SAMPLES:
                # The last one is what the next is compared with.
                del self.samples[len(self.samples) % 2 :: 2]
        if self._per_hour_micro != self._reported_per_hour_micro:
            prices = f"{price_text(self._reported_per_hour_micro)} -> {price_text(self._per_hour_micro)}"
            self._reported_per_hour_micro = self._per_hour_micro
            self._write(Row(at_s, "cost", "cluster", f"{prices} {self._cloud.currency}/h"))

    def pending(self, namespace: str = "") -> int:
        """Pods that wait for a node; daemons do not count."""
        return sum(namespace in ("", held) for held, _ in self._pending.values())

    def running(self, namespace: str = "") -> int:
        """Pods that run and are not on their way out; daemons do not count."""
        return sum(namespace in ("", held) for held in self._running.values())

    def unplaced(self) -> tuple[StillPending, ...]:
        """Pods that wait for a node, by the last FailedScheduling for them; most pods first, then by the first pod."""
        by_why: dict[str, list[str]] = {}
        for _, key in self._pending.values():
            by_why.setdefault(self._refused.get(key, ""), []).append(key)
        found = (StillPending(len(pods), min(pods), why) for why, pods in by_why.items())
        return tuple(sorted(found, key=lambda each: (-each.pods, each.first)))

    def most(self, node_pool: str, instance_type: str, capacity_type: str) -> int:
        """The largest number of instances of that kind at one time; an empty word matches all."""
        return self._most[MachineKind(node_pool, instance_type, capacity_type)]

    def totals(self) -> Totals:
        """The sums up to now."""
        self.close()
        now_s, bills = self._clock.now_s(), self._cloud.bills
        return Totals(
            cost_micro=sum(bill.amount_micro(now_s) for bill in bills),
            node_hours=sum(bill.hours(now_s) for bill in bills),
            gpu_hours_paid=sum(bill.gpus * bill.hours(now_s) for bill in bills),
            gpu_hours_allocated=self._used_seconds / 3600 / 10_000,
            pods_placed=len(self._waits),
            pods_unplaced=len(self._pending),
            waits=Waits.of(self._waits),
            launches=self._counts[LAUNCHED],
            deletions=self._counts[ENDED],
            evictions=self._counts["Evicted"],
        )
