"""What `kerf doctor` finds in the objects that were read: pools, GPU plugins, cards, catalogue, use."""

import re
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote

from kerf.cli.doctor.finding import LEFT_OUT, LOOK, OK, Diagnosis
from kerf.cli.doctor.plugins import plugin_checks
from kerf.cli.inputs.deadlines import missed_deadline
from kerf.cli.inputs.foreign import foreign_objects
from kerf.cli.inputs.input import ReadInput, plugin_namespaces
from kerf.cli.render import counted, some
from kerf.engine.explain.volumes import assumed_notes
from kerf.model.evidence import HAMIS_IMAGE, NVIDIAS_IMAGE, Project
from kerf.model.times import instant_s

_IMAGES = {
    "hami": ("HAMi", HAMIS_IMAGE, "2.10"),
    "device plugin": ("NVIDIA's device plugin", NVIDIAS_IMAGE, "0.18"),
}
"""By check: whose it is, what its image ends with, and the version that Kerf follows (`sharing/config_keys`)."""
_OLD_S = 180 * 86_400
_DATE = re.compile(r"\b(20[0-9]{2})-([01][0-9])(?:-([0-3][0-9]))?\b")
_TAG = re.compile(r"v?([0-9]+)\.([0-9]+)\b")


def checks_of(read: ReadInput, images: Sequence[str] | None) -> Iterator[Diagnosis]:
    """In the order in which they are shown. `images` are those that run; None where that is not known."""
    yield _pools(read)
    yield from _plugins(read, images)
    yield from plugin_checks(read)
    yield from _given_up(read)
    yield _cards(read)
    yield _catalogue(read)
    absent = assumed_notes(read.snapshot.pending, read.snapshot)
    for line in (*read.missing, *absent):
        yield Diagnosis("objects", LOOK, line, "read a dump of the cluster: kerf snapshot")


def _pools(read: ReadInput) -> Diagnosis:
    pools = read.snapshot.node_pools
    if pools:
        return Diagnosis("pools", OK, counted(len(pools), "NodePool"))
    hint = "write one (docs/reference/nodepools.md): Kerf buys nothing without"
    return Diagnosis("pools", LOOK, f"no NodePool in the {read.place}", hint)


def _plugins(read: ReadInput, images: Sequence[str] | None) -> Iterator[Diagnosis]:
    evidence = read.snapshot.evidence
    there = {"hami": bool(evidence.of(Project.HAMI)) or evidence.has_register}
    there["device plugin"] = bool(evidence.of(Project.NVIDIA))
    foreign = foreign_objects(read.decoded, plugin_namespaces())
    elsewhere = {
        "hami": {each.namespace for each in foreign if each.runs and each.project is Project.HAMI},
        "device plugin": {each.namespace for each in foreign if each.runs and each.project is Project.NVIDIA},
    }
    has_cards = any(node.devices for node in read.snapshot.nodes)
    for name, (whose, image, followed) in _IMAGES.items():
        tags = _tags(image, images if images is not None else _stated_images(read))
        if not there[name] and not tags:
            yield Diagnosis(name, LEFT_OUT, f"{whose} {_absent(read, sorted(elsewhere[name]), images)}")
            continue
        versions = [found for tag in tags if (found := _TAG.match(tag)) is not None]
        others = [each for each in versions if f"{each[1]}.{each[2]}" != followed]
        title = f"{whose} {', '.join(tags) or '(its version is not in the input)'}"
        if any(each[1] != followed.partition(".")[0] for each in others):
            hint = f"Kerf follows {followed}, and another major version may register cards in another way"
            yield Diagnosis(name, LOOK, title, hint)
        else:
            yield Diagnosis(name, OK, f"{title}; Kerf follows {followed}" if others else title)
    if any(each.of_operator for each in evidence.plugins):
        yield Diagnosis("gpu operator", OK, "a ClusterPolicy says how cards are shared")
    for each in evidence.images:
        yield Diagnosis("device plugin", OK, f"the images of {each.name} bring NVIDIA's along, and say how it is set")
    if has_cards and not any(there.values()) and not evidence.images:
        hint = "install HAMi or NVIDIA's device plugin, or set KERF_PLUGIN_NAMESPACES to where it runs"
        yield Diagnosis("plugins", LOOK, "nodes have cards, and no plugin is seen that hands them out", hint)


def _absent(read: ReadInput, elsewhere: Sequence[str], images: Sequence[str] | None) -> str:
    """What is known of a plugin that was not seen: nothing where files have no DaemonSet, which would run it."""
    if elsewhere:
        return f"is not installed where it is looked for, but in {some(elsewhere, 3)}"
    if images is None and read.place == "input" and not read.decoded.daemon_sets:
        return "is not seen: the input has no DaemonSet, so whether it is installed is not known"
    return "is not installed"


def _stated_images(read: ReadInput) -> list[str]:
    """The images of the DaemonSets of the input, as far as they are those of plugins."""
    return [program.image for daemon in read.decoded.daemon_sets for program in daemon.programs]


def _tags(image: str, images: Iterable[str]) -> list[str]:
    """The tags with which an image runs."""
    found = set()
    for each in images:
        path, _, tag = each.partition("@")[0].rpartition(":")
        if f"/{path}".endswith(f"/{image}"):
            found.add(tag)
    return sorted(found)


def _given_up(read: ReadInput) -> Iterator[Diagnosis]:
    """Claims that have missed a deadline, with what their nodes lack."""
    claims = [node.claim for node in read.snapshot.nodes if node.claim is not None]
    found = [(claim.name, missed) for claim in claims if (missed := missed_deadline(claim)) is not None]
    if found:
        (first, missed), names = found[0], some([f"NodeClaim {name}" for name, _ in found])
        text = f"{names}: a deadline was missed, and the node is given up: {missed.message or missed.reason}"
        yield Diagnosis("nodes", LOOK, text, f"kerf explain nodeclaim/{quote(first)} says more")


def _cards(read: ReadInput) -> Diagnosis:
    broken = [node.name for node in read.snapshot.nodes if node.problem is not None]
    cards = [device for node in read.snapshot.nodes for device in node.devices]
    if broken:
        hint = f"kerf explain node/{quote(broken[0])} says why"
        return Diagnosis("cards", LOOK, f"the cards of {some(broken)} cannot be planned with", hint)
    sick = sum(1 for each in cards if not each.healthy)
    if sick:
        return Diagnosis(
            "cards", LOOK, f"{sick} of {counted(len(cards), 'card')} not healthy", "kerf gpus -o wide names them"
        )
    return Diagnosis("cards", OK, counted(len(cards), "card") if cards else f"no card in the {read.place}")


def _catalogue(read: ReadInput) -> Diagnosis:
    market = read.market
    title = f"{market.provider or 'a file'}{f' {market.region}' if market.region else ''}"
    dates = [date for note in market.notes[:1] for date in _DATE.findall(note)]
    if not dates:
        return Diagnosis("catalogue", OK, f"{counted(len(market.types), 'type')} of {title}")
    year, month, day = dates[0]
    priced_on = f"{year}-{month}-{day or '01'}"
    days = int(read.snapshot.taken_at_s - instant_s(f"{priced_on}T00:00:00Z")) // 86_400
    text = f"{counted(len(market.types), 'type')} of {title}, prices of {priced_on}"
    if days * 86_400 <= _OLD_S:
        return Diagnosis("catalogue", OK, text)
    hint = "--catalog aws:live has those of now" if market.provider == "aws" else "--catalog FILE has your own prices"
    return Diagnosis("catalogue", LOOK, f"{text}, {days} days ago", hint)
