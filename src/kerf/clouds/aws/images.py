"""Images that an EC2NodeClass selects, the newest for each sort of types first.

EC2 gives the architecture of an image, and not whether it has a driver. What an alias publishes is known by its SSM
parameter; any other image runs on all types of its architecture. Where an image was replaced, the newest counts, and
one that its owner has deprecated counts only where there is no other.
"""

import asyncio
from collections.abc import Iterable, Mapping

from kerf.clouds.aws.aliases import published
from kerf.clouds.aws.api import EC2, SSM, Api, ApiFailed
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.codes import is_not_found
from kerf.clouds.aws.nodeclass.model import LATEST, AMISelectorTerm, EC2NodeClass
from kerf.clouds.aws.nodeclass.status import Image
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import MOST_VALUES, Filter, either, filter_of, tag_filters, words_of
from kerf.model.constraints import ANYTHING, ARCH, OS, WINDOWS_BUILD, Requirement, Requirements
from kerf.model.times import instant_s
from kerf.ports import Clock

_KEPT_S = 300
_PINNED_S = 24 * 3600
"""What a pinned parameter holds never changes; an id of `latest` is asked for as often as images are."""
_PAGE, _MOST_PAGES = 1000, 20
"""Amazon and others have published a hundred thousand images: a name of `*` would be asked for every five minutes."""
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_OWN_LABELS = frozenset({OS, WINDOWS_BUILD})
"""Labels that a node has by its image."""

Sorts = Mapping[str, tuple[Requirements, ...]]


class Images:
    """The images of a region, asked for every five minutes; `kubernetes` is the cluster's version, e.g. `1.34`."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._found: TimedCache[tuple[object, ...], tuple[Image, ...]] = TimedCache(clock, _KEPT_S)
        self._parameters: TimedCache[str, str] = TimedCache(clock, _KEPT_S)

    async def find(self, node_class: EC2NodeClass, kubernetes: str) -> tuple[Image, ...]:
        """The images, newest first, then by id. Raises Unusable for an alias that has none, and for more images than
        can be looked through; ApiFailed, Throttled.
        """
        terms = node_class.spec.ami_selector_terms
        key = (terms, kubernetes if node_class.alias else "")
        found = self._found.get(key)
        if found is None:
            found = _newest(await self._listed(node_class, kubernetes))
            self._found.put(key, found, None if found else _KEPT_S / 5)
        return found

    async def _listed(self, node_class: EC2NodeClass, kubernetes: str) -> list[Image]:
        alias = node_class.alias
        if alias is not None:
            sorts = await self._of_alias(*alias, kubernetes)
            return await self._by_id(sorts) if sorts else []
        terms = node_class.spec.ami_selector_terms
        ids = [term.id for term in terms if term.id]
        for term in terms:
            if term.ssm_parameter and not term.id:
                ids += [image for image in (await self._parameter(term.ssm_parameter, _KEPT_S),) if image]
        found = await self._by_id(dict.fromkeys(ids, (ANYTHING,))) if ids else []
        for term in terms:
            if not term.id and not term.ssm_parameter:
                found += await self._described(_filters(term), _owners(term), {})
        return found

    async def _of_alias(self, family: str, version: str, kubernetes: str) -> Sorts:
        kept_s = _KEPT_S if version == LATEST or family.startswith("Windows") else _PINNED_S
        places = published(family, version, kubernetes)
        values = await asyncio.gather(*(self._parameter(place.path, kept_s) for place in places))
        found: dict[str, tuple[Requirements, ...]] = {}
        for place, image in zip(places, values, strict=True):
            if image:
                found[image] = (*found.get(image, ()), *place.sorts)
        return found

    async def _parameter(self, name: str, kept_s: float) -> str:
        """The id of the image that a parameter holds; empty where there is no such parameter, or no image in it."""
        held = self._parameters.get(name)
        if held is not None:
            return held
        try:
            reply = await self._api.call(SSM, "GetParameter", Name=name)
        except ApiFailed as error:
            if not is_not_found(error):
                raise
            self._parameters.put(name, "")
            return ""
        with reading("GetParameter"):
            value = str(reply["Parameter"]["Value"])
        image = value if value.startswith("ami-") else ""
        self._parameters.put(name, image, kept_s if image else None)
        return image

    async def _by_id(self, sorts: Sorts) -> list[Image]:
        ids, found = sorted(sorts), []
        for start in range(0, len(ids), MOST_VALUES):
            found += await self._described([filter_of("image-id", ids[start : start + MOST_VALUES])], [], sorts)
        return found

    async def _described(self, filters: list[Filter], owners: list[str], sorts: Sorts) -> list[Image]:
        parameters: dict[str, object] = {
            "Filters": [*filters, filter_of("state", ["available"])],
            "IncludeDeprecated": True,
            "MaxResults": _PAGE,
            **({"Owners": owners} if owners else {}),
        }
        found: tuple[Image, ...] = ()
        for _ in range(_MOST_PAGES):
            reply = await self._api.call(EC2, "DescribeImages", **parameters)
            with reading("DescribeImages"):
                page = [image for raw in reply["Images"] for image in self._images(raw, sorts)]
            # Of a hundred thousand public images only the newest may stay in memory.
            found = _newest((*found, *page))
            if not reply.get("NextToken"):
                return list(found)
            parameters["NextToken"] = reply["NextToken"]
        most = f"{_MOST_PAGES * _PAGE:,}"
        raise Unusable("TooManyImages", f"a term of spec.amiSelectorTerms selects more than {most} images: narrow it")

    def _images(self, raw: Mapping[str, str], sorts: Sorts) -> list[Image]:
        architecture = _ARCHITECTURES.get(raw.get("Architecture") or "")
        if architecture is None:
            return []
        runs_on = Requirements([Requirement.of(ARCH, "In", [architecture])])
        is_deprecated = _instant_s(raw.get("DeprecationTime"), float("inf")) <= self._clock.now_s()
        return [
            Image(
                raw["ImageId"],
                raw.get("Name") or "",
                sort.intersect(runs_on),
                is_deprecated,
                raw.get("CreationDate") or "",
            )
            for sort in sorts.get(raw["ImageId"], (ANYTHING,))
        ]


def image_for(images: Iterable[Image], kind: Requirements) -> Image | None:
    """The first image that runs on a type, by what the type says of itself; None where none does.

    A label that the type does not have is absent; operating system and build come with the image.
    """
    return next((image for image in images if _runs(image, kind)), None)


def wanted(terms: Iterable[AMISelectorTerm]) -> str:
    """The terms in words."""
    return either(
        [
            words_of(
                alias=term.alias,
                id=term.id,
                SSM_parameter=term.ssm_parameter,
                name=term.name,
                owner=term.owner,
                tag=term.tags,
            )
            for term in terms
        ]
    )


def _runs(image: Image, kind: Requirements) -> bool:
    for key, requirement in image.requirements.items():
        said = kind.get(key)
        if said is None:
            if key not in _OWN_LABELS and not requirement.allows_absence:
                return False
        elif requirement.intersect(said).is_empty and not (requirement.allows_absence and said.allows_absence):
            return False
    return True


def _newest(images: Iterable[Image]) -> tuple[Image, ...]:
    """The best image of each sort: not deprecated, then the newest, then the last by name."""
    best: dict[Requirements, Image] = {}
    for image in images:
        held = best.get(image.requirements)
        if held is None or _rank(image) > _rank(held):
            best[image.requirements] = image
    return tuple(sorted(best.values(), key=lambda image: (-_created_s(image), image.id, str(image.requirements))))


def _rank(image: Image) -> tuple[bool, float, str, str]:
    return not image.is_deprecated, _created_s(image), image.name, image.id


def _created_s(image: Image) -> float:
    return _instant_s(image.created, 0)


def _instant_s(text: str | None, otherwise: float) -> float:
    try:
        return instant_s(text) if text else otherwise
    except ValueError:
        return otherwise


def _owners(term: AMISelectorTerm) -> list[str]:
    """Without an owner a name selects among images of one's own and Amazon's: any account may publish that name."""
    if term.owner:
        return [term.owner]
    return ["self", "amazon"] if term.name else []


def _filters(term: AMISelectorTerm) -> list[Filter]:
    return [*([filter_of("name", [term.name])] if term.name else []), *tag_filters(term.tags)]
