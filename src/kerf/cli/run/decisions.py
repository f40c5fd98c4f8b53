"""What the leader says to clients: its last decisions, what it leaves out for a while, and its settings.

A ring of small values: a plan of 20,000 pods holds their specs, and twenty of those would be the memory of the process.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kerf import __version__
from kerf.config import Settings
from kerf.controllers.market import MarketBook
from kerf.controllers.shadow import ShadowBook, Wave
from kerf.engine.study.refit import Fleet
from kerf.manifests.clusterdump.decode import exact_text, market_object
from kerf.model.dump import DUMP_VERSION, MOST_DECISIONS, MOST_LETTERS, MOST_NAMED
from kerf.model.instancetypes import price_number
from kerf.model.market import Market
from kerf.model.plan import Launch, Plan
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import Violation
from kerf.ports import PlanFeed


class Decisions:
    """`kerf.ports.PlanFeed`: keeps the last decisions that did something or left pods, and hands all on to `feed`."""

    def __init__(self, feed: PlanFeed) -> None:
        self._feed = feed
        self._last: deque[Mapping[str, Any]] = deque(maxlen=MOST_DECISIONS)
        self._refused = 0
        self._breaches: Mapping[str, Any] | None = None
        self.input: tuple[ClusterSnapshot, Market] | None = None
        """What the last decision was made from that broke a rule; None where none did."""

    def launching(self, launches: Sequence[Launch]) -> None:
        """See PlanFeed."""
        self._feed.launching(launches)

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """See PlanFeed."""
        self._feed.publish(snapshot, plan)
        if not plan.is_empty or plan.unplaced:
            self._last.append(_decision(snapshot, plan))

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """See PlanFeed. Of the last such decision its input is kept, for a report of the bug."""
        self._feed.refuse(snapshot, market, breaches)
        self._refused += 1
        self._breaches = _refusal(snapshot, breaches)
        self.input = snapshot, market

    def refused(self) -> Mapping[str, Any] | None:
        """How many decisions broke a rule, and what was wrong with the last of them; None where none did."""
        return None if self._breaches is None else {"count": self._refused, **self._breaches}

    def last(self) -> tuple[Mapping[str, Any], ...]:
        """At most 20, the newest last."""
        return tuple(self._last)


def _decision(snapshot: ClusterSnapshot, plan: Plan) -> Mapping[str, Any]:
    launches = [
        {
            "nodePool": _short(each.node_pool),
            "instanceType": _short(each.offering.instance_type),
            "zone": _short(each.offering.zone),
            "capacityType": each.offering.capacity_type,
            "pods": len(each.pods),
        }
        for each in plan.launches[:MOST_NAMED]
    ]
    deletions = [
        {"node": _short(each.node), "nodePool": _short(each.node_pool), "reason": _short(each.reason)}
        for each in plan.deletions[:MOST_NAMED]
    ]
    return {
        "at": exact_text(snapshot.taken_at_s),
        # Of the snapshot: the state moves on while a thread decides.
        "stateVersion": snapshot.version,
        "launches": launches,
        "launchesCount": len(plan.launches),
        "deletions": deletions,
        "deletionsCount": len(plan.deletions),
        "relabels": len(plan.relabels),
        "placedOnNodes": len(plan.placements),
        "unplaced": _counted(each.stage.value for each in plan.unplaced),
    }


def _refusal(snapshot: ClusterSnapshot, breaches: Sequence[Violation]) -> Mapping[str, Any]:
    """The breaches of one decision, each once, at most as many as are named."""
    distinct = dict.fromkeys((str(b.rule), str(b.object), str(b.expected), str(b.got)) for b in breaches)
    named = [
        {"rule": rule, "object": _short(of), "expected": _short(expected), "got": _short(got)}
        for rule, of, expected, got in list(distinct)[:MOST_NAMED]
    ]
    return {
        "at": exact_text(snapshot.taken_at_s),
        "stateVersion": snapshot.version,
        "breaches": named,
        "breachesCount": len(distinct),
    }


def _short(text: str) -> str:
    return text[:MOST_LETTERS]


def _counted(stages: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(stages).items()))


def answer(
    settings: Settings, catalogue: tuple[str, str], book: MarketBook, decisions: Decisions, shadow: ShadowBook
) -> dict[str, Any]:
    """What `GET /debug/decisions` says of a leader; `catalogue` is (name, region), empty where the pools decide."""
    return {
        "apiVersion": DUMP_VERSION,
        "kind": "Decisions",
        "version": __version__,
        "settings": {
            "strategy": settings.strategy,
            "follow": settings.follow,
            "preferencePolicy": settings.preference_policy,
            "minValuesPolicy": settings.min_values_policy,
            "pluginNamespaces": list(settings.plugin_namespaces),
        },
        "catalogue": {"name": catalogue[0], "region": catalogue[1]},
        "market": market_object(book.withheld()),
        "decisions": list(decisions.last()),
        **({"refused": refused} if (refused := decisions.refused()) is not None else {}),
        "shadow": shadow_object(shadow),
    }


def shadow_object(book: ShadowBook) -> Mapping[str, Any] | None:
    """What a dry run compared, with the last waves; None where the leader acts."""
    if book.since_s is None:
        return None
    sums = {
        name: {"nodes": nodes, "perHour": price_number(micro)}
        for name, nodes, micro in zip(("present", "planned"), book.nodes, book.price_micro, strict=True)
    }
    waves = [_wave(each) for each in book.waves]
    return {"since": exact_text(book.since_s), "count": book.count, "pods": book.pods, **sums, "waves": waves}


def _wave(wave: Wave) -> Mapping[str, Any]:
    return {
        "began": exact_text(wave.began_s),
        "ended": exact_text(wave.ended_s),
        "pods": wave.refit.pods,
        "present": fleet_object(wave.refit.present),
        "planned": fleet_object(wave.refit.planned),
        "placedOnOthers": wave.refit.placed_on_others,
        "unplaced": wave.refit.unplaced,
        "failed": wave.failed,
    }


def fleet_object(fleet: Fleet) -> dict[str, Any]:
    """Nodes, their price per hour, and how many of each type, at most 50 types."""
    named = list(fleet.types.items())[:MOST_NAMED]
    types = [
        {"instanceType": _short(name), "capacityType": _short(capacity_type), "nodes": nodes}
        for (name, capacity_type), nodes in named
    ]
    return {"nodes": fleet.nodes, "perHour": price_number(fleet.price_micro), "types": types}
