"""The old object that is taken apart, the new one that grows, and a row for every field on its way.

The promise is that nothing is lost in silence. So an old object knows which of its fields were dealt with, and
what is left at the end is reported as not kept. A new one knows where each of its parts came from, so quotes,
flow style and comments can follow.
"""

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

from kerf.manifests.documents import Document
from kerf.manifests.schema import Path, path_text

Object = dict[str, Any]
Origin = tuple[Document, Path]
# Keys of documents that look like Karpenter's and that no version ever had.
_NEVER_EXISTED = {
    "maxTasksPerNode": "pods on a GPU are limited by the replicas of its device plugin, pods on a node by "
    "spec.kubelet.maxPods of the EC2NodeClass",
    "pollInterval": "nothing is polled: pods are watched, and settings.batchIdleDuration and batchMaxDuration say how "
    "long more of them are waited for",
    "price": "spot needs no bid; Kerf's annotation kerf.dev/max-price-per-hour on the NodePool caps what a node costs",
}


class FieldOutcome(Enum):
    """What became of a field."""

    KEPT = "kept"
    CHANGED = "changed"
    ADDED = "added"
    PLACEHOLDER = "placeholder"
    NOT_KEPT = "not kept"


@dataclass(frozen=True)
class FieldChange:
    """One field and what became of it.

    `path` is of the old object; empty for what was added, whose `place` is that of the object, and for an object that
    is left out as a whole. `to` is where it is today, in `target`. `needs_look`: a user has to decide or fill in
    something.
    """

    place: str
    subject: str
    path: Path
    outcome: FieldOutcome
    target: str = ""
    to: Path = ()
    why: str = ""
    hint: str = ""
    needs_look: bool = False

    @property
    def field(self) -> str:
        """The old field as people write it; empty for what was added."""
        return path_text(self.path)

    @property
    def now(self) -> str:
        """Where it is today, as people write it; empty for what was not kept."""
        return path_text(self.to)


@dataclass
class New:
    """An object of today as it grows. `raw` is its text where the document is passed on as it was written.

    `origins` says of paths where they came from, and holds for all that is below them. `lines` says of a path alone
    which old lines its key stands for, whose comments it takes over. `marks` are comments on placeholders.
    """

    value: Object = field(default_factory=dict)
    origins: dict[Path, Origin] = field(default_factory=dict)
    lines: dict[Path, list[Origin]] = field(default_factory=dict)
    marks: dict[Path, str] = field(default_factory=dict)
    raw: str = ""

    @classmethod
    def of(cls, version: str, kind: str) -> "New":
        """With nothing but its kind."""
        return cls({"apiVersion": version, "kind": kind})

    @property
    def title(self) -> str:
        """`NodePool gpu`."""
        return f"{self.value.get('kind', 'values')} {(self.value.get('metadata') or {}).get('name', '')}".strip()

    def put(self, path: Path, value: object, origin: Origin | None = None) -> None:
        """Set the value at `path`; mappings on the way are made, and a list grows by the index after its last."""
        holder: Any = self.value
        for step, following in pairwise(path):
            below: Object | list[object] = [] if isinstance(following, int) else {}
            if isinstance(step, int) and step == len(holder):
                holder.append(below)
            holder = holder[step] if isinstance(step, int) else holder.setdefault(step, below)
        last = path[-1]
        if isinstance(last, int) and last == len(holder):
            holder.append(value)
        else:
            holder[last] = value
        if origin is not None:
            self.origins[path] = origin
            self._inherit(path, *origin)

    def _inherit(self, path: Path, document: Document, old: Path) -> None:
        """The keys above stand for the old keys above, as long as they are called alike."""
        while path and old and _is_alike(path[-1], old[-1]):
            path, old = path[:-1], old[:-1]
            # What a comment above `disruption` says is not about the template into which one of its fields has moved.
            if path and old and _is_alike(path[-1], old[-1]):
                self.lines.setdefault(path, []).append((document, old))

    def size(self, path: Path) -> int:
        """How many items the list at `path` has; 0 where there is none."""
        found: Any = self.value
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return len(found or ())

    def copy(self) -> "New":
        """Another like it."""
        lines = {path: list(origins) for path, origins in self.lines.items()}
        return New(deepcopy(self.value), dict(self.origins), lines, dict(self.marks))


def _is_alike(step: str | int, old: str | int) -> bool:
    return step == old or (isinstance(step, int) and isinstance(old, int))


class Old:
    """An object of a retired kind, and which of its fields have been dealt with."""

    def __init__(self, document: Document, value: Object, rows: list[FieldChange]) -> None:
        self.document, self.value, self.rows = document, value, rows
        self._done: set[Path] = set()

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.value["metadata"]["name"])

    @property
    def title(self) -> str:
        """`Provisioner gpu`."""
        metadata = self.value.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        return f"{self.value.get('kind', 'values')} {name}".strip()

    def at(self, *path: str | int) -> Any:
        """The value there; None where there is none."""
        found: Any = self.value
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def keep(
        self,
        path: Path,
        new: New,
        to: Path,
        why: str = "",
        hint: str = "",
        *,
        look: bool = False,
        only: Collection[str] = (),
    ) -> None:
        """Put the value at `path`, where there is one, into `new` at `to`, as it is.

        With `only` it is a mapping of which just these keys are put.
        """
        value = deepcopy(self.at(*path))
        if value is None:
            return
        if only:
            value = {key: below for key, below in value.items() if key in only}
        new.put(to, value, (self.document, path))
        self._row(path, FieldOutcome.KEPT, new, to, why, hint, look)
        if only:
            self._only(path, only)

    def keep_each(self, path: Path, new: New, to: Path, only: Collection[str]) -> None:
        """Keep each mapping of the list at `path`, with `only` these keys."""
        for index in range(len(self.at(*path) or ())):
            self.keep((*path, index), new, (*to, index), only=only)

    def change(
        self,
        path: Path,
        new: New,
        to: Path,
        value: object,
        why: str = "",
        hint: str = "",
        *,
        look: bool = False,
        only: Collection[str] = (),
    ) -> None:
        """Put `value` into `new` at `to` in place of what is at `path`; with `only`, in place of these keys of it."""
        new.put(to, value, (self.document, path))
        self._row(path, FieldOutcome.CHANGED, new, to, why, hint, look)
        if only:
            self._only(path, only)

    def _only(self, path: Path, keys: Collection[str]) -> None:
        self._done.discard(path)
        self._done |= {(*path, key) for key in keys}

    def drop(self, path: Path, why: str, hint: str = "", *, look: bool = True) -> None:
        """Leave out what is at `path`, where there is something."""
        if self.at(*path) is not None:
            self._row(path, FieldOutcome.NOT_KEPT, None, (), why, hint, look)

    def add(self, new: New, to: Path, value: object, why: str, hint: str = "", *, look: bool = False) -> None:
        """Put what the old object has not, because today's API has another default."""
        new.put(to, value)
        self._added(FieldOutcome.ADDED, new, to, why, hint, look)

    def placeholder(self, new: New, to: Path, value: object, why: str, what: str, hint: str = "") -> None:
        """Put what has to be filled in: `what` says it, also in a comment on the first scalar at `to`."""
        new.put(to, value)
        spot: Path = to
        found: Any = value
        while isinstance(found, list | dict):
            step = 0 if isinstance(found, list) else next(iter(found))
            spot, found = (*spot, step), found[step]
        new.marks[spot] = f"fill in: {what}"
        self._added(FieldOutcome.PLACEHOLDER, new, to, why, f"fill in {what}" + (f"; {hint}" if hint else ""), True)

    def done(self, path: Path) -> None:
        """What is at `path` has been dealt with."""
        self._done.add(path)

    def rest(self) -> None:
        """Report what was not dealt with."""
        for path in self._undone((), self.value):
            name = next((step for step in reversed(path) if isinstance(step, str)), "")
            hint = _NEVER_EXISTED.get(name, "")
            why = "no version of Karpenter had this field" if hint else "today's API has no such field"
            self._row(path, FieldOutcome.NOT_KEPT, None, (), why, hint, True)

    def _undone(self, path: Path, value: object) -> list[Path]:
        """The outermost paths below which nothing has been dealt with, in the order of the document."""
        if path in self._done or value is None or value in ({}, []):
            return []
        if not any(done[: len(path)] == path for done in self._done):
            return [path]
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [found for step, below in items for found in self._undone((*path, step), below)]

    def _row(
        self, path: Path, outcome: FieldOutcome, new: New | None, to: Path, why: str, hint: str, look: bool
    ) -> None:
        self._done.add(path)
        place = self.document.place(path, at_key=bool(path) and isinstance(path[-1], str))
        target = new.title if new is not None else ""
        self.rows.append(FieldChange(place, self.title, path, outcome, target, to, why, hint, look))

    def _added(self, outcome: FieldOutcome, new: New, to: Path, why: str, hint: str, look: bool) -> None:
        place = self.document.place(("kind",))
        self.rows.append(FieldChange(place, self.title, (), outcome, new.title, to, why, hint, look))
