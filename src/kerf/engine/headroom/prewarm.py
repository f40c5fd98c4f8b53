"""Pre-warming: the pods of a CronJob's next run count before they are there, so the run finds its node ready.

They are virtual pods, as those of windows: from `next run - lead` until two minutes after it, and fewer of them as the
run's own pods come.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.headroom.grants import Grants
from kerf.engine.headroom.windows.openings import lead_times, learned_lead_s
from kerf.model.causes import Cause, Quoted
from kerf.model.constraints import NODE_POOL, Requirement, Requirements
from kerf.model.cronjobs import LEAD_TIMES, OFF, PREWARM, PREWARM_CRON_JOBS, STAYS_S, CronJob, lead_of
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.placeholders import VIRTUAL, Keeper, Placeholder
from kerf.model.pods import Pod
from kerf.model.promises import pods_under
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.uses import Use

_LAST_RANK = -1
_OF_A_RUN = f"{Keeper.RUN}{VIRTUAL}"


@dataclass(frozen=True, slots=True)
class NotPrewarmed(Cause):
    """The schedule or the annotation cannot be read, so no run of it is met with a node."""

    problem: Quoted


@dataclass(frozen=True, slots=True)
class Suspended(Cause):
    """The CronJob is suspended: it has no next run."""


@dataclass(frozen=True, slots=True)
class NoTimeZone(Cause):
    """Its runs are reckoned in UTC, and the clock of the cluster's controller may be another."""


@dataclass(frozen=True, slots=True)
class NoDeadline(Cause):
    """A run that hangs holds its node for ever."""


@dataclass(frozen=True, slots=True)
class StartsLate(Cause):
    """A run may start this many seconds late at the most, which is less than its node is bought ahead."""

    starting_deadline_s: int
    lead_s: int


RunWarning = NotPrewarmed | Suspended | NoTimeZone | NoDeadline | StartsLate


@dataclass(frozen=True)
class Prewarmed:
    """A CronJob that is to find its nodes ready. `pools` empty means any; `lead_s` before each run they are bought.

    `bought` are the keys of runs that claims were bought for, of any CronJob.
    """

    cron_job: CronJob
    lead_s: int
    pools: tuple[str, ...] = ()
    bought: frozenset[str] = frozenset()

    def run_at(self, now_s: float) -> float | None:
        """The run whose pods count now; None where none does."""
        due_s = self.cron_job.run_after(now_s - STAYS_S)
        if due_s is None:
            return None
        # What was learned meanwhile must not let go again what was bought for the run.
        return due_s if self.is_begun(due_s) or now_s >= due_s - self.lead_s else None

    def is_begun(self, due_s: float) -> bool:
        """Whether a node was bought for the run that is due then."""
        return _run_key(self.cron_job, due_s) in self.bought

    def next_change_s(self, now_s: float) -> float | None:
        """When pods begin or cease to count next; None for never."""
        begun_s = self.run_at(now_s)
        due_s = self.cron_job.run_after(now_s - STAYS_S)
        if begun_s is not None or due_s is None:
            return None if begun_s is None else begun_s + STAYS_S
        return due_s - self.lead_s


def _run_key(cron_job: CronJob, due_s: float) -> str:
    """The keys of a run's virtual pods, up to their number."""
    return f"{Placeholder(Keeper.RUN, cron_job.key).namespace}/{int(due_s) // 60}"


class Leads:
    """How long before its runs nodes are bought for a CronJob, by what pools and claims show.

    Cost: linear in pools and claims once, then constant for each CronJob.
    """

    def __init__(self, pools: Iterable[NodePool], claims: Iterable[NodeClaim]) -> None:
        self.pools, self.claims = tuple(pools), tuple(claims)
        self._willing = tuple(pool for pool in self.pools if _is_asked(pool))
        self._by_pool: dict[str, list[NodeClaim]] = {}
        for claim in self.claims:
            self._by_pool.setdefault(claim.node_pool, []).append(claim)

    def of(self, cron_job: CronJob) -> tuple[int, tuple[str, ...]] | None:
        """(lead in seconds, the pools that meet its runs, none for any); None where its runs are not met.

        What a CronJob says itself goes before what pools say of all.
        """
        if PREWARM not in cron_job.annotations and not self._willing:
            return None
        try:
            is_wanted, stated_s = lead_of(cron_job.annotations, PREWARM)
        except ValueError:
            return None
        if is_wanted:
            return (self._learned_s if stated_s is None else stated_s), ()
        return None if cron_job.annotations.get(PREWARM) == OFF or not self._willing else self._of_willing

    @cached_property
    def _learned_s(self) -> int:
        return learned_lead_s([seconds for pool in self.pools for seconds in self._observed(pool)])

    @cached_property
    def _of_willing(self) -> tuple[int, tuple[str, ...]]:
        stated = ((pool, lead_of(pool.stated_annotations, PREWARM_CRON_JOBS)[1]) for pool in self._willing)
        leads = (learned_lead_s(self._observed(pool)) if each_s is None else each_s for pool, each_s in stated)
        return max(leads), tuple(pool.name for pool in self._willing)

    def _observed(self, pool: NodePool) -> list[int]:
        return [seconds for _, seconds in observed_leads(pool, self._by_pool.get(pool.name, ()))]


def prewarmed(
    cron_jobs: Iterable[CronJob], pools: Iterable[NodePool], claims: Iterable[NodeClaim]
) -> tuple[Prewarmed, ...]:
    """The CronJobs whose runs are met with a node, in their order, suspended and broken ones left out.

    Cost: linear in CronJobs, pools and claims.
    """
    leads, found = Leads(pools, claims), []
    launched = (claim for claim in leads.claims if not claim.is_deleting)
    pods = (pod for claim in launched for pod in pods_under(claim.annotations, _OF_A_RUN))
    bought = frozenset(pod.rpartition("-")[0] for pod in pods)
    for cron_job in cron_jobs:
        lead = None if cron_job.is_suspended or cron_job.problem else leads.of(cron_job)
        if lead is not None:
            found.append(Prewarmed(cron_job, *lead, bought))
    return tuple(found)


def _is_asked(pool: NodePool) -> bool:
    try:
        return lead_of(pool.stated_annotations, PREWARM_CRON_JOBS)[0]
    except ValueError:
        return False


def prewarm_problem(pool: NodePool) -> str:
    """Why what a pool says of CronJobs is not followed; empty where it is, or where it says nothing."""
    try:
        lead_of(pool.stated_annotations, PREWARM_CRON_JOBS)
    except ValueError as error:
        return str(error)
    return ""


def observed_leads(pool: NodePool, claims: Iterable[NodeClaim]) -> tuple[tuple[str, int], ...]:
    """The latest times that nodes of a pool took until their devices were ready, by claim: noted ones and present."""
    known: list[tuple[str, int]] = []
    try:
        noted = json.loads(pool.own_annotations.get(LEAD_TIMES, "{}"))
        known = [(str(name), int(seconds)) for name, seconds in noted.items()]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        # A person has written there: it is learned again.
        known = []
    return lead_times(known, [claim for claim in claims if claim.node_pool == pool.name])


def leads_annotation(leads: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The note of a pool that says so."""
    return {LEAD_TIMES: json.dumps(dict(leads))}


def prewarming(snapshot: ClusterSnapshot) -> tuple[Prewarmed, ...]:
    """All of a snapshot, whether their pods count now or later."""
    if not snapshot.cron_jobs:
        return ()
    claims = (node.claim for node in snapshot.nodes if node.claim is not None)
    return prewarmed(snapshot.cron_jobs, snapshot.node_pools, claims)


def prewarming_pods(snapshot: ClusterSnapshot, grants: Grants | None = None) -> tuple[Pod, ...]:
    """The pods of runs that are near, less those that are there already; no more than is granted.

    Runs that a node was bought for come first, else a new CronJob would buy another; then the earliest, ties by name.
    """
    runs, found = _runs(snapshot), []
    there = _there(snapshot) if runs else Counter()
    for due_s, each in runs:
        cron_job = each.cron_job
        missing = cron_job.pods - there[cron_job.namespace, cron_job.job_name(due_s)]
        if missing <= 0:
            continue
        grants = grants or Grants(snapshot)
        kept, whose = Placeholder(Keeper.RUN, cron_job.key), cron_job.namespace
        granted = grants.grant(Use.PREWARM, kept, _pod(each), missing, whose)
        if granted.limited is not None:
            grants.limited.append(granted.limited)
        pod = _virtual(replace(cron_job.pod, spec=granted.spec), cron_job, due_s)
        found += [replace(pod, name=f"{pod.name}-{number}") for number in range(granted.number)]
    return tuple(found)


def _runs(snapshot: ClusterSnapshot) -> list[tuple[float, Prewarmed]]:
    """The runs whose pods count now, and when each is due, in the order in which they get room."""
    turns = ((each.run_at(snapshot.taken_at_s), each) for each in prewarming(snapshot))
    near = [(due_s, each) for due_s, each in turns if due_s is not None]
    return sorted(near, key=lambda run: (not run[1].is_begun(run[0]), run[0], run[1].cron_job.key))


def _there(snapshot: ClusterSnapshot) -> Counter[tuple[str, str]]:
    """How many pods each Job has, by its namespace and name."""
    owned = ((pod, pod.owner) for pod in _all_pods(snapshot))
    return Counter((pod.namespace, owner.name) for pod, owner in owned if owner is not None and owner.kind == "Job")


def _all_pods(snapshot: ClusterSnapshot) -> Iterator[Pod]:
    yield from snapshot.pending
    for node in snapshot.nodes:
        yield from node.pods


def _pod(each: Prewarmed) -> Pod:
    """One of its pods, on the pools that meet its runs."""
    pod = each.cron_job.pod
    if not each.pools:
        return pod
    there = Requirements([Requirement.of(NODE_POOL, "In", each.pools)])
    return replace(pod, spec=replace(pod.spec, node_selector=pod.spec.node_selector.intersect(there)))


def _virtual(pod: Pod, cron_job: CronJob, due_s: float) -> Pod:
    """A placeholder of a run, without its number."""
    namespace, _, run = _run_key(cron_job, due_s).partition("/")
    return replace(pod, namespace=namespace, name=run, queue_priority=_LAST_RANK, uid="")


def warnings(cron_job: CronJob, leads: Leads) -> tuple[RunWarning, ...]:
    """What keeps a run from its warm node, or lets it hold the node for ever; nothing where none is asked for."""
    try:
        lead_of(cron_job.annotations, PREWARM)
    except ValueError as error:
        return (NotPrewarmed(Quoted(str(error))),)
    lead = leads.of(cron_job)
    if lead is None:
        return ()
    if cron_job.problem:
        return (NotPrewarmed(Quoted(cron_job.problem)),)
    if cron_job.is_suspended:
        return (Suspended(),)
    found: list[RunWarning] = []
    if not cron_job.time_zone:
        found.append(NoTimeZone())
    if not cron_job.has_deadline:
        found.append(NoDeadline())
    starting_s = cron_job.starting_deadline_s
    if starting_s is not None and starting_s < lead[0]:
        found.append(StartsLate(starting_s, lead[0]))
    return tuple(found)
