"""What a NodeClaim promises of its node, and how it is written down: pods with their cards, an offering, cards.

Annotations carry it because state lives in the Kubernetes API alone, and a person can edit them at any time. So a
reader never fails: what cannot be read is promised no more, and `Promises.broken` says which annotation it was: an
event on the claim and `kerf explain` show it.

The spec and the status promise as well, by type: see `resources` for what pods may count on.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kerf.model.gpu import DeviceShape, GPUModel, Profile
from kerf.model.instancetypes import MICRO, InstanceType, OfferingKey, price_text
from kerf.model.nodeclaim import (
    PLANNED_OFFERING,
    PLANNED_PODS,
    PLANNED_PRICE,
    PLANNED_ROUNDS,
    PREDICTED_DEVICES,
    NodeClaim,
)
from kerf.model.quantities import MEMORY, NOTHING, set_aside

_MOST_MIB = 2**40
_MOST_SHOWN = 80
_FORMS = {
    PLANNED_PODS: 'JSON such as {"namespace/pod": [0]}',
    PLANNED_ROUNDS: 'JSON such as {"namespace/pod": 1}',
    PLANNED_OFFERING: "type/zone/capacity-type",
    PREDICTED_DEVICES: 'JSON such as [{"model": "T4", "memoryMiB": 15360}]',
}
_PRICE = re.compile(r"[0-9]{1,9}\.[0-9]{2,6}")
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What parsing text of unknown form can raise; a deep nesting and a number of 5,000 digits are among it."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """An annotation that does not have the form Kerf writes; `got` is its text, cut to 80 characters."""

    annotation: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Promises:
    """What a claim was bought for and as.

    `pods` are keys (`namespace/name`, virtual pods too) with the indexes of their cards, in the order of the plan.
    `rounds` are of those that come after others which are behind them in the queue (`model.plan.PlacedPod`).
    `offering` is None and `devices` are empty where the claim says nothing of them, or nothing that can be read.
    """

    pods: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    offering: OfferingKey | None = None
    devices: tuple[DeviceShape, ...] = ()
    broken: tuple[BrokenPromise, ...] = ()
    rounds: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def smallest_card_mib(self) -> int:
        """The memory of the smallest promised card in MiB; 0 without cards."""
        return min((shape.memory_mib for shape in self.devices), default=0)


def read(annotations: Mapping[str, str]) -> Promises:
    """The promises in the annotations of a claim; an absent or empty one promises nothing. Never raises."""
    return _read(*map(annotations.get, _FORMS))


# Remembered, because each decision asks it of each node that starts, and of most that have started.
@lru_cache(maxsize=1024)
def _read(*texts: str | None) -> Promises:
    """The promises of the texts of `_FORMS`, in that order."""
    annotations = {name: text for name, text in zip(_FORMS, texts, strict=True) if text is not None}
    pods = _pods(annotations.get(PLANNED_PODS) or "{}")
    offering = offering_of(annotations)
    devices = _devices(annotations.get(PREDICTED_DEVICES) or "[]")
    rounds = _rounds(annotations.get(PLANNED_ROUNDS) or "{}")
    unread = {
        PLANNED_PODS: pods is None,
        PLANNED_OFFERING: offering is None,
        PREDICTED_DEVICES: devices is None,
        PLANNED_ROUNDS: rounds is None,
    }
    broken = tuple(
        BrokenPromise(name, _FORMS[name], annotations[name][:_MOST_SHOWN])
        for name, is_broken in unread.items()
        if is_broken and annotations.get(name)
    )
    return Promises(pods or {}, offering, devices or (), broken, rounds or {})


def written(promises: Promises) -> dict[str, str]:
    """The annotations that `read` reads; one of no offering, cards or rounds is left out, that of the pods never is."""
    annotations = with_pods(promises.pods)
    if promises.offering is not None:
        held = promises.offering
        parts = held.instance_type, held.zone, held.capacity_type, held.reservation, held.placement_group
        annotations[PLANNED_OFFERING] = "/".join(parts).rstrip("/")
    if promises.devices:
        annotations[PREDICTED_DEVICES] = devices_text(promises.devices)
    if promises.rounds:
        annotations[PLANNED_ROUNDS] = json.dumps(promises.rounds)
    return annotations


def with_pods(pods: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The annotation of the pods alone, each with the indexes of its cards."""
    return {PLANNED_PODS: json.dumps({pod: list(cards) for pod, cards in pods.items()})}


def moved(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The promised pods of a claim's annotations as they were and are; both empty, and unparsed, for equal texts."""
    was, is_now = before.get(PLANNED_PODS, ""), after.get(PLANNED_PODS, "")
    if was == is_now:
        return (), ()
    return tuple(_pods(was or "{}") or ()), tuple(_pods(is_now or "{}") or ())


def pods_under(annotations: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """The promised pods whose keys begin so; claims whose text has no such prefix are not parsed."""
    text = annotations.get(PLANNED_PODS, "")
    if prefix not in text:
        return ()
    return tuple(pod for pod in _pods(text) or () if pod.startswith(prefix))


def is_made_by_kerf(annotations: Mapping[str, str]) -> bool:
    """Whether Kerf made the claim: it writes the offering on each, and a broken one is still a trace of it."""
    return PLANNED_OFFERING in annotations


def offering_of(annotations: Mapping[str, str]) -> OfferingKey | None:
    """The planned offering alone: prices ask it of every node, and the pods would have to be parsed with it."""
    parts = annotations.get(PLANNED_OFFERING, "").split("/")
    return OfferingKey(*parts) if 3 <= len(parts) <= 5 else None


def with_price(price_micro: int) -> dict[str, str]:
    """The annotation that `planned_price_micro` reads."""
    return {PLANNED_PRICE: price_text(price_micro)}


def planned_price_micro(claim: NodeClaim) -> int | None:
    """What its offering cost an hour when it was bought; None where the claim does not say it, or not as Kerf does."""
    text = claim.annotations.get(PLANNED_PRICE, "")
    if not _PRICE.fullmatch(text):
        return None
    whole, _, decimals = text.partition(".")
    return int(whole) * MICRO + int(decimals.ljust(6, "0"))


def planned_type(claim: NodeClaim) -> str:
    """The instance type that the claim was launched as, or is planned to be; empty where neither is known."""
    # Not by `read`: a person who breaks zone or capacity type leaves the type, and limits must go on counting it.
    return claim.instance_type or claim.annotations.get(PLANNED_OFFERING, "").partition("/")[0]


def resources(claim: NodeClaim, kind: InstanceType | None) -> Mapping[str, int]:
    """What its node will have for pods: as it was launched, before that as its type `kind` has, None for unknown.

    A resource that no catalogue knows (a NodeOverlay's) is promised as far as the claim was bought for it; huge pages
    among these take of its memory.
    """
    sold = kind.sold_as(offering_of(claim.annotations)) if kind is not None else None
    expected = claim.allocatable or (sold.allocatable if sold is not None else NOTHING)
    beside = {name: amount for name, amount in claim.requests.items() if name not in expected}
    memory = {MEMORY: max(0, expected[MEMORY] - set_aside(beside))} if MEMORY in expected else {}
    return {**claim.requests, **expected, **memory}


def _pods(text: str) -> dict[str, tuple[int, ...]] | None:
    try:
        return {str(pod): _indexes(cards) for pod, cards in json.loads(text).items()}
    except _UNREADABLE:
        return None


def _rounds(text: str) -> dict[str, int] | None:
    if text == "{}":
        return {}
    try:
        return {str(pod): _indexes([number])[0] for pod, number in json.loads(text).items()}
    except _UNREADABLE:
        return None


def _indexes(value: object) -> tuple[int, ...]:
    """Indexes of cards. Raises ValueError for what is no list of them."""
    # By a plain loop: a plan at 1,000 nodes reads ten thousand of these, and each has one index or a few.
    if type(value) is not list:
        raise ValueError("indexes")
    for index in value:
        if type(index) is not int or index < 0:
            raise ValueError("index")
    return tuple(value)


# Remembered, because the claims of one instance type all carry the same text, and MIG profiles make it long.
@lru_cache(maxsize=1024)
def _devices(text: str) -> tuple[DeviceShape, ...] | None:
    try:
        return tuple(
            DeviceShape(
                GPUModel(str(card["model"]), "nvidia", str(card.get("registeredAs", ""))),
                _memory(card["memoryMiB"]),
                profiles=tuple(_profile(row) for row in card.get("migProfiles", ())),
                pci_ids=tuple(map(str, card.get("pciIds", ()))),
            )
            for card in json.loads(text)
        )
    except _UNREADABLE:
        return None


def devices_text(shapes: Iterable[DeviceShape]) -> str:
    """The text of the annotation with the cards; how their memory is known and a fraction's size are not in it."""
    return json.dumps([_card(shape) for shape in shapes])


def _card(shape: DeviceShape) -> dict[str, object]:
    card: dict[str, object] = {
        "model": shape.model.name,
        "registeredAs": shape.model.registered_as,
        "memoryMiB": shape.memory_mib,
    }
    if shape.profiles:
        card["migProfiles"] = [
            [p.name, p.size, list(p.starts), p.memory_mib, p.cores, p.slice_count, p.has_media_engine]
            for p in shape.profiles
        ]
        card["pciIds"] = list(shape.pci_ids)
    return card


def _memory(value: object) -> int:
    """MiB of a card. Raises ValueError for what no card has."""
    if isinstance(value, int) and 0 < value <= _MOST_MIB:
        return value
    raise ValueError("memory")


def _profile(row: Iterable[object]) -> Profile:
    """A MIG profile as `_card` writes it. Raises TypeError or ValueError for anything else."""
    name, size, starts, memory, cores, slices, has_media_engine = row
    if not isinstance(starts, list):
        raise TypeError("starts")
    slots, memory_mib, percent, compute = (int(str(number)) for number in (size, memory, cores, slices))
    places = tuple(int(start) for start in starts)
    return Profile(str(name), slots, places, memory_mib, percent, compute, has_media_engine=bool(has_media_engine))
