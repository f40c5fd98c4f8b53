"""Documents of other kinds: they pass as they are, except names of Karpenter's that have changed.

A pod that says `karpenter.sh/do-not-evict` is evicted by today's Karpenter, and one that selects nodes by
`karpenter.sh/provisioner-name` never finds any; so these names are replaced wherever they stand as a key or as the
`key` of a requirement.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from kerf.manifests.documents import Document, YamlDocument
from kerf.manifests.migrate.metadata import RENAMED
from kerf.manifests.migrate.objects import New, Object, Old
from kerf.manifests.migrate.values import GLOBAL_SETTINGS, setting_of
from kerf.manifests.schema import Path
from kerf.manifests.yaml_nodes import compose

SETTINGS = "karpenter-global-settings"


def passed(old: Old) -> New:
    """The same object, with today's names. A YAML document in which there are none keeps its text."""
    new = New(deepcopy(old.value), {(): (old.document, ())})
    for path, key in _named(old.value):
        _rename(old, new, path, key)
    if old.rows:
        old.done(())
    else:
        new.raw = _text(old.document)
    return new


def is_global_settings(value: Object) -> bool:
    """Whether it is the ConfigMap that held Karpenter's settings until 0.32."""
    metadata = value.get("metadata")
    return value.get("kind") == "ConfigMap" and isinstance(metadata, dict) and metadata.get("name") == SETTINGS


def global_settings(old: Old) -> None:
    """That ConfigMap is no longer read: where each of its settings belongs now."""
    for path in (("apiVersion",), ("kind",), ("metadata",)):
        old.done(path)
    old.drop(
        ("metadata", "name"),
        "Karpenter does not read this ConfigMap since 0.32",
        "its settings are values of the chart",
    )
    for key in old.at("data") or {}:
        today = GLOBAL_SETTINGS.get(key)
        hint = f"value {today} of the chart" if today else ""
        why = "a value of the chart today" if today else setting_of(f"settings.{key}")
        old.drop(("data", key), why, hint)


def _named(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where old names stand: (path of the entry, the old name), innermost last."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in items:
        if step in RENAMED:
            yield (*path, step), step
        elif step == "key" and isinstance(below, str) and below in RENAMED:
            yield (*path, step), below
        else:
            yield from _named(below, (*path, step))


def _rename(old: Old, new: New, path: Path, key: str) -> None:
    today = RENAMED[key]
    if path[-1] == "key" and old.at(*path) == key:
        old.change(path, new, path, today, "it has been renamed")
        return
    holder: Any = new.value
    for step in path[:-1]:
        holder = holder[step]
    if today in holder:
        old.drop(path, f"{today}, its new name, is there too", look=holder[today] != holder[key])
        del holder[key]
        return
    value = holder[key]
    renamed = {today if name == key else name: below for name, below in holder.items()}
    holder.clear()
    holder.update(renamed)
    old.change(path, new, (*path[:-1], today), value, "it has been renamed")


def _text(document: Document) -> str:
    """The document as it is written, where its text holds nothing else; empty otherwise."""
    if not isinstance(document, YamlDocument) or len(compose(document.text)) != 1:
        return ""
    if document.root.start_mark.index != compose(document.text)[0].start_mark.index:
        return ""
    return document.text.removeprefix("---").strip("\n").rstrip() + "\n"
