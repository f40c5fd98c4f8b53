"""The metadata that every object has, and the conditions that many have."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kerf.model.constraints import HOSTNAME, Taint
from kerf.model.nodeclaim import Condition
from kerf.model.pods import Owner
from kerf.model.times import instant_s

NO_TEXTS: Mapping[str, str] = {}
"""The labels and annotations of every object that has none."""


@dataclass(frozen=True, slots=True)
class Meta:
    """`metadata` of an object; an object that no API has seen has no uid. `generation` counts from one."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    uid: str
    resource_version: str
    generation: int
    created_s: float
    deleted_s: float | None
    finalizers: tuple[str, ...]
    owner: Owner | None

    @classmethod
    def of(cls, raw: dict[str, Any], *, is_namespaced: bool = False) -> "Meta":
        """From a checked object; a namespaced one without a namespace is in `default`."""
        meta = raw["metadata"]
        get = meta.get
        return cls(
            name=meta["name"],
            namespace=(get("namespace") or "default") if is_namespaced else "",
            labels=_shared_labels(held) if (held := get("labels")) else NO_TEXTS,
            annotations={shared_text(key): text for key, text in held.items()}
            if (held := get("annotations"))
            else NO_TEXTS,
            uid=get("uid") or "",
            resource_version=get("resourceVersion") or "",
            generation=get("generation") or 1,
            created_s=instant(get("creationTimestamp")) or 0,
            deleted_s=instant(get("deletionTimestamp")),
            finalizers=tuple(get("finalizers") or ()),
            owner=owner_of(get("ownerReferences") or ()),
        )


def owner_of(raws: Any) -> Owner | None:
    """The controller among the owners, else the first of them."""
    owners = sorted(raws, key=lambda raw: raw.get("controller") is not True)
    return Owner(owners[0]["kind"], owners[0]["name"], owners[0].get("uid") or "") if owners else None


@lru_cache(maxsize=32768)
def shared_text(text: str) -> str:
    """The first of all equal texts: node names, namespaces and labels repeat in tens of thousands of objects."""
    return text


def shared_texts(texts: Mapping[str, str]) -> Mapping[str, str]:
    """The same mapping of shared texts."""
    return {shared_text(key): shared_text(text) for key, text in texts.items()}


def _shared_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The first of all equal mappings, in the same order: the pods of a workload have one. A node has its own."""
    shared = shared_texts(labels)
    return shared if HOSTNAME in shared else _of_items(tuple(shared.items()))


@lru_cache(maxsize=4096)
def _of_items(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)


def instant(text: str | None) -> float | None:
    """Seconds of a checked instant; None for none."""
    return None if text is None else instant_s(text)


def conditions_of(status: dict[str, Any]) -> tuple[Condition, ...]:
    """The conditions of a status, by type."""
    found = (
        Condition(
            shared_text(raw["type"]),
            shared_text(raw["status"]),
            shared_text(raw.get("reason") or ""),
            raw.get("message") or "",
            instant(raw.get("lastTransitionTime")) or 0,
        )
        for raw in status.get("conditions") or ()
    )
    return tuple(sorted(found, key=lambda condition: condition.type))


def taints_of(raws: Any) -> tuple[Taint, ...]:
    """The taints of a node or a template, in their order."""
    return tuple(Taint(raw["key"], raw.get("value") or "", raw["effect"]) for raw in raws or ())
