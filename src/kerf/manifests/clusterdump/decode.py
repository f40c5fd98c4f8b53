"""The header of a dump: from the document to its value and back.

Instants keep their microseconds here, unlike those of the API: a plan says how long something has lasted, and a replay
a second off would be another plan.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kerf.manifests.kinds import METADATA
from kerf.manifests.metadata import instant
from kerf.manifests.schema import (
    BOOLEAN,
    COUNT,
    FILLED,
    INSTANT,
    INSTANT_AHEAD,
    TEXT,
    ListOf,
    MapOf,
    Record,
    Scalar,
    Schema,
    one_of,
)
from kerf.model.dump import (
    DUMP,
    DUMP_VERSION,
    MOST_DECISIONS,
    MOST_LETTERS,
    MOST_NAMED,
    CatalogueSource,
    ClusterDump,
)
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import BackOff, SoldOut
from kerf.model.snapshot import PLUGIN_NAMESPACES

Object = dict[str, Any]
_SOLD_OUT = Record(
    {"instanceType": FILLED, "zone": TEXT, "capacityType": FILLED, "until": INSTANT, "reason": TEXT},
    ("instanceType", "capacityType", "until"),
)
_BACK_OFF = Record(
    {"nodePool": FILLED, "instanceType": FILLED, "until": INSTANT, "reason": TEXT},
    ("nodePool", "instanceType", "until"),
)
MARKET = Record({"soldOut": ListOf(_SOLD_OUT), "backOffs": ListOf(_BACK_OFF)})
_SHORT = Scalar(
    f"text of at most {MOST_LETTERS} characters", lambda value: isinstance(value, str) and len(value) <= MOST_LETTERS
)
_LAUNCH: dict[str, Schema] = {
    **dict.fromkeys(("nodePool", "instanceType", "zone", "capacityType"), _SHORT),
    "pods": COUNT,
}
_DELETION: dict[str, Schema] = dict.fromkeys(("node", "nodePool", "reason"), _SHORT)
_DECISION: dict[str, Schema] = {
    "at": INSTANT_AHEAD,
    "launches": ListOf(Record(_LAUNCH, tuple(_LAUNCH)), 0, MOST_NAMED),
    "deletions": ListOf(Record(_DELETION, tuple(_DELETION)), 0, MOST_NAMED),
    "unplaced": MapOf(COUNT, _SHORT, MOST_NAMED),
    **dict.fromkeys(("stateVersion", "launchesCount", "deletionsCount", "relabels", "placedOnNodes"), COUNT),
}
DECISIONS = ListOf(Record(_DECISION, tuple(_DECISION)), 0, MOST_DECISIONS)
CLUSTER_DUMP = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "takenAt": INSTANT,
        "takenBy": TEXT,
        "place": one_of("cluster", "input"),
        "namespace": TEXT,
        "full": BOOLEAN,
        "settings": Record(
            {
                "strategy": one_of("cost", "first-fit"),
                "follow": one_of("auto", "reserve", "pin", "off"),
                "preferencePolicy": one_of("Respect", "Ignore"),
                "minValuesPolicy": one_of("Strict", "BestEffort"),
                "pluginNamespaces": ListOf(FILLED),
            }
        ),
        "catalogue": Record(dict.fromkeys(("name", "region", "text", "digest"), TEXT) | {"notes": ListOf(TEXT)}),
        "market": MARKET,
        "decisions": DECISIONS,
        "missing": ListOf(TEXT),
    },
    ("metadata",),
)


def cluster_dump_of(raw: Object) -> ClusterDump:
    """The header as a value; what it does not say is as in a dump without a leader."""
    settings, catalogue, market = (raw.get(name) or {} for name in ("settings", "catalogue", "market"))
    sold_out, back_offs = market_of(market)
    return ClusterDump(
        taken_at_s=instant(raw.get("takenAt")),
        version=raw.get("takenBy") or "",
        place=raw.get("place") or "cluster",
        namespace=raw.get("namespace") or "default",
        is_full=bool(raw.get("full")),
        strategy=settings.get("strategy") or "cost",
        follow=settings.get("follow") or "auto",
        preference_policy=settings.get("preferencePolicy") or "Respect",
        min_values_policy=settings.get("minValuesPolicy") or "Strict",
        plugin_namespaces=tuple(settings.get("pluginNamespaces") or PLUGIN_NAMESPACES),
        catalogue=CatalogueSource(
            name=catalogue.get("name") or "",
            region=catalogue.get("region") or "",
            text=catalogue.get("text") or "",
            digest=catalogue.get("digest") or "",
            notes=tuple(catalogue.get("notes") or ()),
        ),
        sold_out=sold_out,
        back_offs=back_offs,
        decisions=tuple(raw.get("decisions") or ()),
        missing=tuple(raw.get("missing") or ()),
    )


def market_of(raw: Object) -> tuple[tuple[SoldOut, ...], tuple[BackOff, ...]]:
    """What is sold out and what is backed off from, of a checked `MARKET`."""
    sold_out = (
        SoldOut(
            OfferingKey(each["instanceType"], each.get("zone") or "", each["capacityType"]),
            instant(each["until"]) or 0,
            each.get("reason") or "",
        )
        for each in raw.get("soldOut") or ()
    )
    back_offs = (
        BackOff(each["nodePool"], each["instanceType"], instant(each["until"]) or 0, each.get("reason") or "")
        for each in raw.get("backOffs") or ()
    )
    return tuple(sold_out), tuple(back_offs)


def cluster_dump_object(dump: ClusterDump) -> Object:
    """The header as a document; decoded again it is the same value."""
    catalogue = {
        "name": dump.catalogue.name,
        "region": dump.catalogue.region,
        "text": dump.catalogue.text,
        "digest": dump.catalogue.digest,
        "notes": list(dump.catalogue.notes),
    }
    return {
        "apiVersion": DUMP_VERSION,
        "kind": DUMP,
        "metadata": {"name": "dump"},
        **({} if dump.taken_at_s is None else {"takenAt": exact_text(dump.taken_at_s)}),
        "takenBy": dump.version,
        "place": dump.place,
        "namespace": dump.namespace,
        "full": dump.is_full,
        "settings": {
            "strategy": dump.strategy,
            "follow": dump.follow,
            "preferencePolicy": dump.preference_policy,
            "minValuesPolicy": dump.min_values_policy,
            "pluginNamespaces": list(dump.plugin_namespaces),
        },
        "catalogue": {name: value for name, value in catalogue.items() if value},
        "market": market_object(dump.sold_out, dump.back_offs),
        "decisions": list(dump.decisions),
        "missing": list(dump.missing),
    }


def market_object(sold_out: Iterable[SoldOut], back_offs: Iterable[BackOff]) -> Object:
    """What is out of reach, as the header and the leader write it."""
    return {
        "soldOut": [
            {
                "instanceType": each.offering.instance_type,
                "zone": each.offering.zone,
                "capacityType": each.offering.capacity_type,
                "until": exact_text(each.until_s),
                "reason": each.reason,
            }
            for each in sold_out
        ],
        "backOffs": [
            {
                "nodePool": each.node_pool,
                "instanceType": each.instance_type,
                "until": exact_text(each.until_s),
                "reason": each.reason,
            }
            for each in back_offs
        ],
    }


def exact_text(seconds: float) -> str:
    """RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
