"""Keys of Kerf's own domain in an object, and those among them that Kerf does not know."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from kerf.manifests.schema import Path, Report, Unknown
from kerf.model.keys import DOMAIN, KNOWN_KEYS

_TEMPLATES: tuple[Path, ...] = (
    (),
    ("template",),
    ("spec", "template"),
    ("spec", "jobTemplate"),
    ("spec", "jobTemplate", "spec", "template"),
)
_PLACES: tuple[Path, ...] = (
    *((*at, "metadata", field) for at in _TEMPLATES for field in ("annotations", "labels")),
    ("spec", "limits"),
)


def note_unknown_keys(raw: dict[str, Any], report: Report) -> None:
    """Note annotations, labels and limits in Kerf's domain that mean nothing to it, with the known one that is near."""
    for path, key in _keys(raw):
        if is_unknown(key):
            nearest = get_close_matches(key, sorted(KNOWN_KEYS), 1)
            report.unknown.append(Unknown((*path, key), nearest[0] if nearest else ""))


def is_unknown(key: str) -> bool:
    """Whether the key of an annotation, label or limit is in Kerf's domain and means nothing to it."""
    return key.startswith(DOMAIN) and key not in KNOWN_KEYS


def _keys(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    for path in _PLACES:
        held: Any = raw
        for step in path:
            held = held.get(step) if isinstance(held, dict) else None
        yield from ((path, key) for key in (held if isinstance(held, dict) else ()) if isinstance(key, str))
