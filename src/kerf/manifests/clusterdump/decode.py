"""The header of a dump: from the document to its value and back.

Instants keep their microseconds here, unlike those of the API: a plan says how long something has lasted, and a replay
a second off would be another plan.
"""

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
from kerf.model.causes import Quoted
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
from kerf.model.market import BackOff, MovePause, PriceHistory, SoldOut, Withheld
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES

Object = dict[str, Any]
_SOLD_OUT = Record(
    {
        **dict.fromkeys(("instanceType", "capacityType"), FILLED),
        **dict.fromkeys(("zone", "reservation", "placementGroup", "reason"), TEXT),
        "until": INSTANT,
    },
    ("instanceType", "capacityType", "until"),
)
_BACK_OFF = Record(
    {"nodePool": FILLED, "instanceType": FILLED, "until": INSTANT, "reason": TEXT, "tried": BOOLEAN},
    ("nodePool", "instanceType", "until"),
)
_MOVE_PAUSE = Record(
    {**dict.fromkeys(("namespace", "kind", "name"), FILLED), "until": INSTANT}, ("namespace", "kind", "name", "until")
)
_PRICES = ("priceMicro", "beforeMicro", "meanMicro", "lowestMicro", "highestMicro", "forSeconds", "changes")
_PRICE_HISTORY = Record(
    {
        **dict.fromkeys(("instanceType", "capacityType"), FILLED),
        **dict.fromkeys(("zone", "reservation", "placementGroup"), TEXT),
        **dict.fromkeys(_PRICES, COUNT),
        "changed": INSTANT,
    },
    ("instanceType", "capacityType", *_PRICES, "changed"),
)
_PROBED = Record({"nodePool": FILLED, "instanceType": FILLED}, ("nodePool", "instanceType"))
MARKET = Record(
    {
        "soldOut": ListOf(_SOLD_OUT),
        "backOffs": ListOf(_BACK_OFF),
        "oneAtATime": ListOf(_PROBED),
        "pricePauses": ListOf(_BACK_OFF),
        "movePauses": ListOf(_MOVE_PAUSE),
        "priceHistories": ListOf(_PRICE_HISTORY),
    }
)
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
        withheld=withheld_of(market),
        decisions=tuple(raw.get("decisions") or ()),
        missing=tuple(raw.get("missing") or ()),
    )


def withheld_of(raw: Object) -> Withheld:
    """What the leader leaves alone, of a checked `MARKET`."""
    sold_out = (
        SoldOut(_offering(each), instant(each["until"]) or 0, each.get("reason") or "")
        for each in raw.get("soldOut") or ()
    )
    probed = ((each["nodePool"], each["instanceType"]) for each in raw.get("oneAtATime") or ())
    back_offs, price_pauses = (tuple(map(_back_off, raw.get(name) or ())) for name in ("backOffs", "pricePauses"))
    move_pauses = tuple(
        MovePause((each["namespace"], each["kind"], each["name"]), instant(each["until"]) or 0)
        for each in raw.get("movePauses") or ()
    )
    histories = (
        PriceHistory(
            _offering(each),
            each["priceMicro"],
            each["beforeMicro"],
            each["meanMicro"],
            each["forSeconds"],
            each["changes"],
            instant(each["changed"]) or 0,
            each["lowestMicro"],
            each["highestMicro"],
        )
        for each in raw.get("priceHistories") or ()
    )
    return Withheld(tuple(sold_out), back_offs, frozenset(probed), price_pauses, move_pauses, tuple(histories))


def _offering(each: Object) -> OfferingKey:
    return OfferingKey(
        each["instanceType"],
        each.get("zone") or "",
        each["capacityType"],
        each.get("reservation") or "",
        each.get("placementGroup") or "",
    )


def _back_off(each: Object) -> BackOff:
    said, until_s = Quoted(each.get("reason") or ""), instant(each["until"]) or 0
    return BackOff(each["nodePool"], each["instanceType"], until_s, said, bool(each.get("tried")))


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
        "market": market_object(dump.withheld),
        "decisions": list(dump.decisions),
        "missing": list(dump.missing),
    }


def market_object(withheld: Withheld) -> Object:
    """What the leader leaves alone, as `withheld_of` reads it."""
    return {
        "soldOut": [
            {
                **_offering_object(each.offering),
                "until": exact_text(each.until_s),
                "reason": each.reason,
            }
            for each in withheld.sold_out
        ],
        "backOffs": [_back_off_object(each) for each in withheld.back_offs],
        "oneAtATime": [{"nodePool": pool, "instanceType": name} for pool, name in sorted(withheld.probed)],
        "pricePauses": [_back_off_object(each) for each in withheld.price_pauses],
        "movePauses": [
            {"namespace": namespace, "kind": kind, "name": name, "until": exact_text(each.until_s)}
            for each in withheld.move_pauses
            for namespace, kind, name in (each.workload,)
        ],
        "priceHistories": [
            {
                **_offering_object(each.offering),
                "priceMicro": each.price_micro,
                "beforeMicro": each.before_micro,
                "meanMicro": each.mean_micro,
                "lowestMicro": each.lowest_micro,
                "highestMicro": each.highest_micro,
                "forSeconds": each.for_s,
                "changes": each.changes,
                "changed": exact_text(each.changed_s),
            }
            for each in withheld.price_histories
        ],
    }


def _offering_object(offering: OfferingKey) -> Object:
    return {
        "instanceType": offering.instance_type,
        "zone": offering.zone,
        "capacityType": offering.capacity_type,
        **({"reservation": offering.reservation} if offering.reservation else {}),
        **({"placementGroup": offering.placement_group} if offering.placement_group else {}),
    }


def _back_off_object(each: BackOff) -> Object:
    return {
        "nodePool": each.node_pool,
        "instanceType": each.instance_type,
        "until": exact_text(each.until_s),
        "reason": each.said,
        **({"tried": True} if each.is_tried else {}),
    }


def exact_text(seconds: float) -> str:
    """RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
