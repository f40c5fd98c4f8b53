"""Each card holds the slices on it: memory, cores, slots, MIG instances, parts that were cut before, and its model.

Counted card by card: a sum over the cards of a node says nothing of what one of them holds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.model.gpu import DeviceState, Placement, Slice, SliceRequest
from kerf.model.plan import PlacedPod
from kerf.model.pods import Pod, PodDemand
from kerf.model.violations import PlanPart, PlanRule, Violation, violation
from kerf.sharing.registry import demand_of
from kerf.verify.after import After, TakingNode, named
from kerf.verify.alike import for_each

_WHOLE = 100
"""Percent points of the cores of a card; a container that asks for all of them shares it with no other."""
_HAMI = "hami"
_VENDOR = "NVIDIA"
_USE_TYPE, _AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
_USE_ID, _AVOID_ID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
_PINNED = "kerf.dev/pinned"
"""Annotations by which a pod chooses HAMi's cards; the last marks a choice that Kerf made (docs of HAMi v2.10.0)."""


@dataclass
class _Use:
    """What comes to one card."""

    memory_mib: int = 0
    cores: int = 0
    slots: int = 0
    takes_all: bool = False
    placements: list[tuple[Slice, Placement]] = field(default_factory=list)
    by_resource: Counter[str] = field(default_factory=Counter)
    """Slices of each name under which kubelet counts parts of a card; empty for those that are counted by size."""


def violations(after: After) -> Iterator[Violation]:
    """What the cards of each node do not hold. Cost: slices on nodes there, and on kinds of nodes to buy."""
    for site in after.there:
        if site.parts and site.name not in after.gone:
            yield from _of_site(after, site)
    for site, launches in after.bought:
        for found in _of_site(after, site) if site.pool else ():
            yield from for_each(found, launches)


def _of_site(after: After, site: TakingNode) -> Iterator[Violation]:
    cards = {device.index: device for device in site.devices}
    uses = defaultdict[int, _Use](_Use)
    for placed, part in site.placed:
        pod = after.pods.get(placed.pod)
        if part is not None and pod is not None:
            yield from _as_asked(after, site, pod, placed, cards, part)
        _add(uses, placed, pod)
    if site.is_open:
        yield from _in_sum(after, site, uses)
        return
    for index, use in sorted(uses.items()):
        card = cards.get(index)
        name = f"{_name(after, site)}, card {index}"
        if card is None:
            yield violation(PlanRule.CARD_UNUSABLE, name, f"one of {len(cards)} cards", "no such card", *site.parts)
        elif not card.healthy or card.cordoned:
            got = "one that is cordoned" if card.healthy else "one that is broken"
            yield violation(PlanRule.CARD_UNUSABLE, name, "a card that takes slices", got, *site.parts)
        else:
            yield from _held(card, use, name, site.parts)


def _in_sum(after: After, site: TakingNode, uses: Mapping[int, _Use]) -> Iterator[Violation]:
    """What all usable cards together do not hold, where it is open which of them are free."""
    usable = [card for card in site.devices if card.healthy and not card.cordoned]
    slots, free = sum(use.slots for use in uses.values()), sum(card.slots - card.used_slots for card in usable)
    if any(card.partitions for card in usable):
        free = sum(part.free for card in usable for part in card.partitions)
    if slots > free:
        expected, got = f"at most {free} slices", f"{slots} slices"
        yield violation(PlanRule.CARD_SLOTS, f"{_name(after, site)}, all cards", expected, got, *site.parts)


def _name(after: After, site: TakingNode) -> str:
    return site.name if site.launch is not None else named(after.snapshot, site.name)


def _add(uses: Mapping[int, _Use], placed: PlacedPod, pod: Pod | None) -> None:
    """Count the slices of a pod. Init containers run before the others and one by one, so only the most counts."""
    starting = {each.name for each in pod.spec.init_containers if not each.is_sidecar} if pod is not None else set()
    by_card = defaultdict[int, dict[str, list[Slice]]](lambda: defaultdict(list))
    for part in placed.parts:
        by_card[part.device][part.container if part.container in starting else ""].append(part)
    for index, by_turn in by_card.items():
        use = uses[index]
        use.memory_mib += max(sum(part.memory_mib for part in parts) for parts in by_turn.values())
        use.cores += max(sum(part.cores for part in parts) for parts in by_turn.values())
        use.slots += max(map(len, by_turn.values()))
        use.takes_all |= any(part.cores >= _WHOLE for parts in by_turn.values() for part in parts)
        lasting = by_turn.get("") or next(iter(by_turn.values()))
        use.placements += [(part, part.placement) for part in lasting if part.placement is not None]
        for resource in sorted({part.resource for part in placed.parts}):
            use.by_resource[resource] += max(
                sum(part.resource == resource for part in parts) for parts in by_turn.values()
            )


def _held(card: DeviceState, use: _Use, name: str, parts: tuple[PlanPart, ...]) -> Iterator[Violation]:
    """What one card does not hold of what comes to it beside what is there."""
    yield from _cut(card, use, name, parts)
    if card.partitions:
        return
    if use.memory_mib > card.free_memory_mib:
        expected = f"at most {max(0, card.free_memory_mib)} MiB of {card.memory_mib}"
        yield violation(PlanRule.CARD_MEMORY, name, expected, f"{use.memory_mib} MiB", *parts)
    is_shared = card.used_slots + use.slots > 1
    if use.cores > card.free_cores:
        yield violation(
            PlanRule.CARD_CORES, name, f"at most {max(0, card.free_cores)}% of its cores", f"{use.cores}%", *parts
        )
    elif use.takes_all and card.cores == _WHOLE and is_shared and not card.profiles:
        got = f"{card.used_slots + use.slots} slices, one with all cores"
        yield violation(PlanRule.CARD_CORES, name, "nothing beside a slice with all cores", got, *parts)
    if card.used_slots + use.slots > card.slots:
        expected = f"at most {max(0, card.slots - card.used_slots)} slices of {card.slots}"
        yield violation(PlanRule.CARD_SLOTS, name, expected, f"{use.slots} slices", *parts)
    if card.profiles:
        yield from _geometry(card, use, name, parts)
    elif use.placements:
        got = f"{use.placements[0][1].profile} on a card without"
        yield violation(PlanRule.CARD_GEOMETRY, name, "MIG instances where they are cut as pods come", got, *parts)


def _cut(card: DeviceState, use: _Use, name: str, parts: tuple[PlanPart, ...]) -> Iterator[Violation]:
    """Whether slices are of the parts that the card was cut into, and of no part where it was not cut."""
    free = {part.resource: part.free for part in card.partitions} or {"": use.by_resource[""]}
    for resource, number in sorted(use.by_resource.items()):
        if number > free.get(resource, 0):
            what = resource or "no part of it"
            expected, got = f"at most {free.get(resource, 0)} of {what}", f"{number} of {what}"
            yield violation(PlanRule.CARD_PARTS, name, expected, got, *parts)


def _geometry(card: DeviceState, use: _Use, name: str, parts: tuple[PlanPart, ...]) -> Iterator[Violation]:
    """Whether the MIG instances can lie on the card beside each other, where they are planned."""
    profiles = {profile.name: profile for profile in card.profiles}
    taken = Counter(at for placement in card.placements for at in placement.slices)
    engines = sum(profiles[each.profile].has_media_engine for each in card.placements if each.profile in profiles)
    if len(use.placements) < use.slots:
        yield violation(PlanRule.CARD_GEOMETRY, name, "a place for each instance", "none for some", *parts)
    for part, placement in use.placements:
        profile = profiles.get(placement.profile)
        where = f"{placement.profile} at {placement.start}"
        # A printed plan says where an instance starts, and its profile how large it is.
        size = profile.size if profile is not None and not placement.size else placement.size
        if profile is None or placement.start not in profile.starts or size != profile.size:
            expected = "a profile of the card at a place where it may start"
            yield violation(PlanRule.CARD_GEOMETRY, name, expected, where, *parts)
            return
        if part.memory_mib < profile.memory_mib or part.cores < profile.cores:
            expected = f"{profile.memory_mib} MiB and {profile.cores}% of the cores of {where}"
            got = f"{part.memory_mib} MiB and {part.cores}%"
            yield violation(PlanRule.CARD_GEOMETRY, name, expected, got, *parts)
        taken.update(range(placement.start, placement.start + size))
        engines += profile.has_media_engine
    if any(number > 1 for number in taken.values()) or engines > 1:
        held = [*card.placements, *(placement for _, placement in use.placements)]
        got = ", ".join(f"{each.profile} at {each.start}" for each in held)
        yield violation(PlanRule.CARD_GEOMETRY, name, "instances beside each other", got, *parts)


def _as_asked(
    after: After, site: TakingNode, pod: Pod, placed: PlacedPod, cards: Mapping[int, DeviceState], part: PlanPart
) -> Iterator[Violation]:
    """Whether the pod has the slices that it asks for, of cards that it accepts."""
    name = f"{pod.key} on {_name(after, site)}"
    rightful = next((family for family in after.families if family.claims(pod)), None)
    if rightful is not None and rightful.name != site.family.name:
        yield violation(PlanRule.CARD_FAMILY, name, f"cards of {rightful.title}", f"cards of {site.family.title}", part)
        return
    demand = demand_of(pod, site.family)
    if not isinstance(demand, PodDemand):
        yield violation(
            PlanRule.CARD_REQUEST, name, f"a pod that {site.family.title} serves", "one that it refuses", part
        )
        return
    by_container = defaultdict[str, list[Slice]](list)
    for each in placed.parts:
        by_container[each.container].append(each)
    asking = defaultdict[str, list[SliceRequest]](list)
    for asked in demand.asking:
        if asked.request is not None:
            asking[asked.name].append(asked.request)
    for container in sorted(by_container.keys() - asking.keys()):
        yield violation(PlanRule.CARD_REQUEST, name, f"no slice for container {container}", "one", part)
    for container, requests in asking.items():
        held, names = by_container[container], [request.resource for request in requests]
        if len(requests) == 1:
            yield from _sized(name, container, requests[0], held, cards, part)
            continue
        # Parts of several names: each of them is counted by itself.
        for request in requests:
            mine = [each for each in held if each.resource == request.resource]
            yield from _sized(name, container, request, mine, cards, part)
        strange = sorted({each.resource for each in held} - {*names})
        if strange:
            expected = f"parts of {', '.join(names)} for container {container}"
            yield violation(PlanRule.CARD_REQUEST, name, expected, strange[0] or "another slice", part)
    if site.family.name == _HAMI:
        yield from _accepted(name, pod, placed, cards, part)


def _sized(
    name: str,
    container: str,
    request: SliceRequest,
    held: Sequence[Slice],
    cards: Mapping[int, DeviceState],
    part: PlanPart,
) -> Iterator[Violation]:
    """Whether a container has as many slices as it asks for, each of another card and large enough."""
    if len(held) != request.count:
        expected = f"{request.count} slices for container {container}"
        yield violation(PlanRule.CARD_REQUEST, name, expected, len(held), part)
        return
    there = [(each, card) for each in held if (card := cards.get(each.device)) is not None]
    are_cut = any(card.partitions or card.profiles for _, card in there)
    if not are_cut and len({each.device for each in held}) < len(held):
        expected = f"{request.count} cards for container {container}"
        yield violation(PlanRule.CARD_REQUEST, name, expected, "several slices of one card", part)
    for each, card in there:
        if card.partitions:
            yield from _as_cut(name, container, request, each, card, part)
            continue
        # An instance that is cut for the container has the cores of its profile.
        least_mib, least_cores = request.memory_on(card), 0 if card.profiles else min(request.cores, _WHOLE)
        if each.memory_mib < least_mib or each.cores < least_cores:
            expected = f"{least_mib} MiB and {least_cores}% of the cores for container {container}"
            yield violation(PlanRule.CARD_REQUEST, name, expected, f"{each.memory_mib} MiB and {each.cores}%", part)


def _as_cut(
    name: str, container: str, request: SliceRequest, held: Slice, card: DeviceState, part: PlanPart
) -> Iterator[Violation]:
    """Whether a slice is one of the parts of that name that the card was cut into, with the size that they have."""
    if request.resource and held.resource != request.resource:
        expected = f"{request.resource} for container {container}"
        yield violation(PlanRule.CARD_REQUEST, name, expected, held.resource or "no part of a card", part)
        return
    sizes = [(each.memory_mib, each.cores) for each in card.partitions if each.resource == held.resource]
    if sizes and (held.memory_mib, held.cores) not in sizes:
        expected = f"{sizes[0][0]} MiB and {sizes[0][1]}% of the cores for container {container}"
        yield violation(PlanRule.CARD_REQUEST, name, expected, f"{held.memory_mib} MiB and {held.cores}%", part)


def _accepted(
    name: str, pod: Pod, placed: PlacedPod, cards: Mapping[int, DeviceState], part: PlanPart
) -> Iterator[Violation]:
    """Whether HAMi's cards are of the models, and among those, that the pod's annotations name."""
    notes = pod.annotations
    for each in placed.parts:
        card = cards.get(each.device)
        if card is None:
            continue
        model = card.model.lower()
        wanted, unwanted = _listed(notes.get(_USE_TYPE, "")), _listed(notes.get(_AVOID_TYPE, ""))
        if _VENDOR not in card.model.upper():
            yield violation(PlanRule.CARD_MODEL, name, f"a card of {_VENDOR}", card.model, part)
        elif wanted and not any(word in model for word in wanted):
            yield violation(PlanRule.CARD_MODEL, name, f"a card of {notes[_USE_TYPE]}", card.model, part)
        elif any(word in model for word in unwanted):
            yield violation(PlanRule.CARD_MODEL, name, f"no card of {notes[_AVOID_TYPE]}", card.model, part)
        ids = () if _PINNED in notes else _listed(notes.get(_USE_ID, ""))
        if (ids and card.id.lower() not in ids) or card.id.lower() in _listed(notes.get(_AVOID_ID, "")):
            yield violation(PlanRule.CARD_MODEL, name, "a card that its annotations allow", card.id, part)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(entry.strip().lower() for entry in text.split(",") if entry.strip())
