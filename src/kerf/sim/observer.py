"""Watches a simulation: keeps count of what is paid, used and waiting, and writes down what a person wants to know.

Sums over time are taken of levels that hold between two events, so every event first closes the time before it. What
is written down are facts of the API and the cloud, with Kerf's own events and reasons beside them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from kerf.clouds.fake import ENDED, INTERRUPTED, LAUNCHED, REPLY_LOST, THROTTLED, CloudEvent, FakeCloud
from kerf.cloudprovider import Instance
from kerf.model.constraints import NODE_POOL
from kerf.model.instancetypes import price_text
from kerf.model.nodes import Node
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.ports import Clock
from kerf.sharing.hami_records import parse_allocation
from kerf.sim.api import DELETED, InMemoryApi
from kerf.sim.books import Books, allocated
from kerf.sim.invariants import planned_pods
from kerf.sim.objects import Json, labels_of, name_of
from kerf.sim.report import Row, Sample, Totals, Waits

_SPOKEN_ELSEWHERE = frozenset({"Nominated", "DisruptionBlocked", "Unconsolidatable"})
"""Reasons of Kerf's events that repeat for as long as a state lasts; they would drown the timeline."""


class PlanNotes:
    """`kerf.ports.PlanFeed`: remembers why each set of pods was bought for."""

    def __init__(self) -> None:
        self._why: dict[frozenset[str], str] = {}

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """See PlanFeed."""
        del snapshot  # The plan says why; what it was made from is not told again.
        for launch in plan.launches:
            self._why[frozenset(placed.pod for placed in launch.pods)] = launch.why

    def why(self, pods: Iterable[str]) -> str:
        """Why a node was bought for these pods; empty when no plan said so."""
        return self._why.get(frozenset(pods), "")


class Observer:
    """One for each run; `books` are kept by whoever tells it of events."""

    def __init__(self, api: InMemoryApi, clock: Clock, cloud: FakeCloud, books: Books, plans: PlanNotes) -> None:
        self._api, self._clock, self._cloud, self._books, self._plans = api, clock, cloud, books, plans
        self._start_s = clock.now_s()
        self.rows: list[Row] = []
        self.samples: list[Sample] = [Sample(0, 0, 0, 0, 0, 0)]
        self.most: Counter[tuple[str, str, str]] = Counter()
        self._used: dict[str, int] = {}
        self._used_seconds = 0.0
        self._closed_s = self._start_s
        self._born: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._told: dict[str, str] = {}
        self._cost_micro = 0
        self._counts: Counter[str] = Counter()
        self._throttled_s = float("-inf")

    # --- what it is told -------------------------------------------------------------------------------------------

    def on_event(self, type_: str, obj: Json, value: Pod | Node | None) -> None:
        """After `books` has noted it; `value` is what it gave."""
        self._close()
        if isinstance(value, Pod):
            self._pod(type_, value)
        elif isinstance(value, Node):
            self._node(type_, value)
        elif obj["kind"] == "Event" and type_ == "ADDED":
            self._said(obj)
        elif obj["kind"] == "NodeClaim" and type_ == "ADDED":
            pods = sorted(planned_pods(obj))
            self.note("claim created", f"nodeclaim/{name_of(obj)}", self._plans.why(pods) or f"for {', '.join(pods)}")
        self._sample()

    def on_cloud(self, event: CloudEvent) -> None:
        """What the cloud did."""
        self._close()
        self._counts[event.what] += 1
        instance = event.instance
        if event.what == LAUNCHED and instance is not None:
            self._count_most()
        elif event.what in (ENDED, INTERRUPTED, REPLY_LOST) and instance is not None:
            words = {ENDED: "instance gone", INTERRUPTED: "interruption", REPLY_LOST: "reply lost"}
            if event.what != ENDED or event.detail:
                self.note(words[event.what], f"nodeclaim/{event.claim_name}", f"{instance.offering}: {event.detail}")
        elif event.what == THROTTLED and self._throttled_s < self._clock.now_s():
            self._throttled_s = self._clock.now_s()
            self.note("throttled", "cloud", f"refused {event.detail}")
        self._sample()

    def note(self, what: str, regards: str, why: str = "") -> None:
        """Write a row of the timeline."""
        self.rows.append(Row(self._clock.now_s() - self._start_s, what, regards, why))

    # --- rows ------------------------------------------------------------------------------------------------------

    def _said(self, event: Json) -> None:
        self._counts[f"said {event['reason']}"] += 1
        if event["reason"] not in _SPOKEN_ELSEWHERE:
            about = event["involvedObject"]
            key = "/".join(part for part in (about.get("namespace", ""), about["name"]) if part)
            self.note(event["reason"], f"{about['kind'].lower()}/{key}", event["message"])

    def _pod(self, type_: str, pod: Pod) -> None:
        if not pod.is_daemon:
            if pod.uid not in self._born:
                self._born[pod.uid] = self._clock.now_s()
            if type_ != DELETED and pod.node_name and pod.uid not in self._waits:
                self._waits[pod.uid] = self._clock.now_s() - self._born[pod.uid]
                self.note("bound", f"pod/{pod.key}", f"node {pod.node_name}{self._parts(pod)}")
            self._tell_end(type_, pod)
        self._count_used(pod.node_name)

    def _parts(self, pod: Pod) -> str:
        indexes = {device.id: device.index for device in self._books.devices(pod.node_name)}
        shares = [share for segment in parse_allocation(pod.annotations) or () for share in segment]
        return "".join(f", GPU {indexes[s.device_id]}: {s.memory_mib} MiB, {s.cores} cores" for s in shares)

    def _tell_end(self, type_: str, pod: Pod) -> None:
        state = "gone" if type_ == DELETED else pod.phase if pod.is_ended else ""
        if state and pod.node_name and self._told.get(pod.uid) != state:
            if self._told.get(pod.uid) is None:
                self.note("ended" if pod.is_ended else "removed", f"pod/{pod.key}", f"node {pod.node_name}")
            self._told[pod.uid] = state

    def _node(self, type_: str, node: Node) -> None:
        state = "node removed" if type_ == DELETED else "node ready" if node.is_ready else "node not ready"
        before = self._told.get(node.uid)
        if before != state:
            self._told[node.uid] = state
            if before is not None or state == "node ready":
                self.note(state, f"node/{node.name}", f"NodePool {node.labels[NODE_POOL]}" if NODE_POOL in node.labels else "")
        self._count_used(node.name)

    # --- counts ----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        now_s = self._clock.now_s()
        self._used_seconds += (now_s - self._closed_s) * sum(self._used.values())
        self._closed_s = now_s

    def _count_used(self, name: str) -> None:
        node = self._books.node(name)
        paid = {bill.instance.provider_id for bill in self._cloud.bills if bill.until_s is None}
        if node is None or node.provider_id not in paid:
            self._used.pop(name, None)
        else:
            self._used[name] = allocated(self._books.devices(name))

    def _count_most(self) -> None:
        counts: Counter[tuple[str, str, str]] = Counter()
        for instance in self._cloud.instances:
            pool, offering = self.pool_of(instance), instance.offering
            for key in {
                (p, t, c) for p in ("", pool) for t in ("", offering.instance_type) for c in ("", offering.capacity_type)
            }:
                counts[key] += 1
        for key, count in counts.items():
            self.most[key] = max(self.most[key], count)

    def pool_of(self, instance: Instance) -> str:
        """The NodePool an instance was launched for; empty when its claim is gone."""
        claim = self._api.get("NodeClaim", "", instance.claim_name)
        return "" if claim is None else labels_of(claim).get(NODE_POOL, "")

    def _sample(self) -> None:
        bills = [bill for bill in self._cloud.bills if bill.until_s is None]
        sample = Sample(
            self._clock.now_s() - self._start_s,
            len(self._books.nodes()),
            sum(bill.gpus for bill in bills),
            sum(self._used.values()),
            self.pending(),
            sum(bill.price_micro for bill in bills),
        )
        last = self.samples[-1]
        if sample.per_hour_micro != self._cost_micro:
            unit = self._cloud.currency
            change = f"{price_text(self._cost_micro)} -> {price_text(sample.per_hour_micro)} {unit}/h"
            self._cost_micro = sample.per_hour_micro
            self.note("cost", "cluster", change)
        if last.at_s == sample.at_s:
            self.samples[-1] = sample
        elif last != Sample(last.at_s, *_levels(sample)):
            self.samples.append(sample)

    def pending(self, namespace: str = "") -> int:
        """Pods that wait for a node; daemons do not count."""
        return sum(pod.is_pending and not pod.is_daemon and namespace in ("", pod.namespace) for pod in self._books.pods())

    def running(self, namespace: str = "") -> int:
        """Pods that run and are not on their way out; daemons do not count."""
        return sum(
            pod.phase == "Running" and pod.deleted_s is None and not pod.is_daemon and namespace in ("", pod.namespace)
            for pod in self._books.pods()
        )

    def totals(self) -> Totals:
        """The sums up to now."""
        self._close()
        now_s = self._clock.now_s()
        bills = self._cloud.bills
        return Totals(
            cost_micro=sum(bill.amount_micro(now_s) for bill in bills),
            node_hours=sum(bill.hours(now_s) for bill in bills),
            gpu_hours_paid=sum(bill.gpus * bill.hours(now_s) for bill in bills),
            gpu_hours_allocated=self._used_seconds / 3600 / 10_000,
            pods_placed=len(self._waits),
            pods_unplaced=self.pending(),
            waits=Waits.of(list(self._waits.values())),
            launches=self._counts[LAUNCHED],
            deletions=self._counts[ENDED],
            evictions=self._counts["said Evicted"],
        )


def _levels(sample: Sample) -> Mapping[str, int] | tuple[int, ...]:
    return sample.nodes, sample.gpus_paid, sample.gpus_used, sample.pending, sample.per_hour_micro
