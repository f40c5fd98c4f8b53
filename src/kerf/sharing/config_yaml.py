"""YAML inside ConfigMaps, checked field by field: a device plugin that cannot read its own shows no GPU at all."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import yaml

from kerf.errors import DecodeError
from kerf.model.snapshot import ConfigMap


@dataclass(frozen=True, slots=True)
class Field:
    """A value and where it stands: `ConfigMap gpu-operator/sharing`, `data["any"].sharing.mps`."""

    value: object
    place: str
    path: str

    def wrong(self, expected: str, hint: str = "") -> DecodeError:
        """The error that says so."""
        got = "<nothing>" if self.value is None else self.value
        return DecodeError(self.path, expected, got, place=self.place, hint=hint)

    def child(self, key: str) -> "Field":
        """The value under a key of a mapping; None for no such key. Raises DecodeError where this is no mapping."""
        return Field(self.mapping().get(key), self.place, f"{self.path}.{key}")

    def mapping(self) -> Mapping[str, object]:
        """Itself as a mapping; empty for nothing. Raises DecodeError for anything else."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.wrong("a mapping")
        return cast("Mapping[str, object]", self.value)

    def children(self) -> Iterator[tuple[str, "Field"]]:
        """The entries of a mapping, in the order of the text. Raises DecodeError for what is none."""
        return ((str(key), Field(value, self.place, f"{self.path}.{key}")) for key, value in self.mapping().items())

    def items(self) -> Iterator["Field"]:
        """The entries of a list; none for nothing. Raises DecodeError for what is none."""
        if self.value is not None and not isinstance(self.value, list):
            raise self.wrong("a list")
        held = cast("Sequence[object]", self.value or ())
        return (Field(value, self.place, f"{self.path}[{i}]") for i, value in enumerate(held))

    def text(self) -> str:
        """Itself as text. Raises DecodeError for anything else."""
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong("text")
        return self.value

    def truth(self) -> bool:
        """Itself as a boolean, false for nothing. Raises DecodeError for anything else."""
        if self.value is not None and not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return bool(self.value)

    def whole(self, least: int, hint: str = "") -> int:
        """Itself as a whole number of at least `least`. Raises DecodeError for anything else."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value < 2**16:
            raise self.wrong(f"a whole number from {least}", hint)
        return self.value


def documents(config_maps: Sequence[ConfigMap], marks: re.Pattern[str]) -> Iterator[tuple[str, ConfigMap, Field]]:
    """Each text of the maps that bears the marks: its key, its map, and the document; maps in the order of their names.

    Raises DecodeError for a marked text that is no YAML.
    """
    for config_map in sorted(config_maps, key=lambda m: (m.namespace, m.name)):
        for key, text in sorted(config_map.data.items()):
            if marks.search(text):
                yield key, config_map, _document(config_map, key, text)


def _document(config_map: ConfigMap, key: str, text: str) -> Field:
    place, path = f"ConfigMap {config_map.namespace}/{config_map.name}", f'data["{key}"]'
    try:
        return Field(yaml.safe_load(text), place, path)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecodeError(path, "YAML", f"<text that is none: {' '.join(str(error).split())}>", place=place) from error
