"""Which free volumes the claims of a pod may take: each its own, and each one that fits it.

As component-helpers' FindMatchingVolume (storage/volume/pv_helpers.go) and the volume binder of kube-scheduler 1.36.
That goes claim by claim, the smallest first, and never back; here every choice counts. Both agree unless claims of one
class differ in selectors or access modes: then it may take a volume that the next claim needs, of equal ones by chance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.model.causes import Cause
from kerf.model.constraints import ANYTHING, Requirement, Requirements
from kerf.model.volumecauses import TooManyChoices
from kerf.model.volumes import PersistentVolume, PersistentVolumeClaim

MOST_TRIED = 65_536
"""Pairs of a choice and one volume more that are looked at for a pod."""
Terms = tuple[Requirements, ...]


@dataclass(frozen=True, slots=True)
class WaitingClaim:
    """A claim that waits for its pod: the volumes it may take, and where one could be made."""

    volumes: tuple[PersistentVolume, ...]
    made: Terms

    @property
    def there(self) -> Terms:
        """What it asks of nodes, if no other claim takes its volumes."""
        terms = (term for volume in self.volumes for term in volume.terms or (ANYTHING,))
        return joined((*terms, *self.made))


class FreeVolumes:
    """Those that no claim has, by class; and those that are kept for one."""

    def __init__(self, volumes: Mapping[str, PersistentVolume]) -> None:
        self._by_class: dict[str, list[PersistentVolume]] = {}
        for volume in volumes.values():
            if volume.is_free or volume.kept_for:
                self._by_class.setdefault(volume.storage_class, []).append(volume)

    def of(self, claim: PersistentVolumeClaim, class_name: str) -> tuple[PersistentVolume, ...]:
        """Those that the claim may take; where one is kept for it, no other. Linear in those of the class."""
        found = [volume for volume in self._by_class.get(class_name, ()) if volume.serves(claim)]
        return tuple([volume for volume in found if volume.kept_for][:1] or found)


def shared_out(claims: Sequence[WaitingClaim]) -> Terms | Cause:
    """What several claims of one pod ask of nodes together: no two may take one volume."""
    if len(claims) == 1:
        return claims[0].there
    found: dict[tuple[Requirements, frozenset[str]], None] = {(ANYTHING, frozenset()): None}
    for claim in claims:
        choices = [(volume.name, term) for volume in claim.volumes for term in volume.terms or (ANYTHING,)]
        choices += [("", term) for term in claim.made]
        if len(found) * len(choices) > MOST_TRIED:
            return TooManyChoices(len(found) * len(choices), MOST_TRIED)
        found = {
            (held.intersect(term), taken | {name} if name else taken): None
            for held, taken in found
            for name, term in choices
            if name not in taken and held.conflict(term) is None
        }
    return joined(term for term, _ in found)


def joined(terms: Iterable[Requirements]) -> Terms:
    """The same terms; those that ask for values of one label alone become one, such as the names of many nodes."""
    found: dict[object, Requirements] = {}
    for term in terms:
        if not term:
            return (ANYTHING,)
        alone = _alone(term)
        if alone is None:
            found.setdefault(term, term)
        else:
            held = found.get(alone.key)
            before = held[alone.key].values if held is not None else frozenset()
            found[alone.key] = Requirements([Requirement.of(alone.key, "In", before | alone.values)])
    return tuple(found.values())


def _alone(term: Requirements) -> Requirement | None:
    """The only requirement of a term, where that lists values and nothing more."""
    first = next(iter(term.values()), None)
    if first is None or len(term) > 1 or first != Requirement.of(first.key, "In", first.values):
        return None
    return first
