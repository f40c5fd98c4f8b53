"""One object as rules look at it: plain values that may have any form, reached without a check at each step.

Rules look at manifests that no server would take, so nothing may be assumed of them; what has not the form that
a rule looks for is empty to it. That its form is wrong is said by one rule for all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kerf.manifests.dispatch import Value
from kerf.manifests.documents import Document
from kerf.manifests.schema import Path, Report

_TEMPLATES: dict[str, Path] = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
WORKLOADS = tuple(_TEMPLATES)
"""Kinds that are pods or make pods."""
POOLS = ("NodePool", "Provisioner")
"""Kinds that launch nodes, of today and retired."""
NODE_LABELS: Path = ("spec", "template", "metadata", "labels")
"""Where a NodePool states labels of its nodes."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIREMENTS: dict[str, Path] = {
    "NodePool": ("spec", "template", "spec", "requirements"),
    "Provisioner": ("spec", "requirements"),
    "NodeClaim": ("spec", "requirements"),
    "NodeOverlay": ("spec", "requirements"),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """An object of the input, the document it is in, and what decoding made of it.

    `value` is None where it has not the form of its kind, or its kind is not one that Kerf reads. `report` has what is
    wrong with its form.
    """

    index: int
    document: Document
    raw: dict[str, Any]
    report: Report = field(default_factory=Report)
    value: Value | None = None

    @cached_property
    def kind(self) -> str:
        """Its kind; empty where it states none."""
        return self.text("kind")

    @cached_property
    def group(self) -> str:
        """The API group; empty for the core group."""
        group, slash, _ = self.text("apiVersion").partition("/")
        return group if slash else ""

    @cached_property
    def version(self) -> str:
        """The version in its group."""
        return self.text("apiVersion").rpartition("/")[2]

    @cached_property
    def name(self) -> str:
        """Its name."""
        return self.text("metadata", "name")

    @cached_property
    def namespace(self) -> str:
        """The namespace it states, else `default`."""
        return self.text("metadata", "namespace") or "default"

    @cached_property
    def title(self) -> str:
        """`Deployment default/web`, `NodePool gpu`."""
        if not self.kind:
            return ""
        is_namespaced = self.kind in _TEMPLATES or bool(self.text("metadata", "namespace"))
        return f"{self.kind} {self.namespace}/{self.name}" if is_namespaced else f"{self.kind} {self.name}".rstrip()

    @property
    def is_live(self) -> bool:
        """Whether a server has made it, so its form is right."""
        return bool(self.text("metadata", "uid"))

    def get(self, *path: str | int) -> Any:
        """The value at a path; None where there is none."""
        return value_at(self.raw, path)

    def text(self, *path: str | int) -> str:
        """The text at a path; empty where there is none."""
        found = self.get(*path)
        return found if isinstance(found, str) else ""

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """The mapping at a path; empty where there is none."""
        found = self.get(*path)
        return found if isinstance(found, dict) else {}

    def items(self, *path: str | int) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The mappings of the list at a path, each with its own path."""
        found = self.get(*path)
        for index, item in enumerate(found if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield (*path, index), item

    @cached_property
    def template(self) -> Path | None:
        """Where its pod template stands: `()` for a Pod; None for a kind that makes no pods."""
        return _TEMPLATES.get(self.kind)

    @cached_property
    def pod(self) -> Path:
        """Where the spec of its pods stands."""
        return (*(self.template or ()), "spec")

    @cached_property
    def containers(self) -> tuple[tuple[Path, dict[str, Any]], ...]:
        """The containers of its pods, init containers first, each with its path."""
        if self.template is None:
            return ()
        return (*self.items(*self.pod, "initContainers"), *self.items(*self.pod, "containers"))

    @cached_property
    def requirements(self) -> tuple[tuple[Path, dict[str, Any]], ...]:
        """Its requirements on nodes, each with its path."""
        path = _REQUIREMENTS.get(self.kind)
        return () if path is None else tuple(self.items(*path))

    @cached_property
    def node_affinity(self) -> tuple[tuple[Path, dict[str, Any]], ...]:
        """The expressions of its pods' node affinity, term by term, required ones first, each with its path."""
        if self.template is None:
            return ()
        affinity = (*self.pod, "affinity", "nodeAffinity")
        required = [path for path, _ in self.items(*affinity, _REQUIRED, "nodeSelectorTerms")]
        preferred = [(*path, "preference") for path, _ in self.items(*affinity, _PREFERRED)]
        return tuple(each for path in (*required, *preferred) for each in self.items(*path, "matchExpressions"))

    def annotation(self, key: str) -> str:
        """An annotation of the object itself, else of its pod template; empty where there is none."""
        own = self.text("metadata", "annotations", key)
        return own or (self.text(*self.template, "metadata", "annotations", key) if self.template else "")

    def label(self, key: str) -> str:
        """A label of its pods, else of the object itself; empty where there is none."""
        of_pods = self.text(*(self.template or ()), "metadata", "labels", key)
        return of_pods or self.text("metadata", "labels", key)


def value_at(raw: Any, path: Path) -> Any:
    """The value at a path of plain values; None where there is none."""
    for step in path:
        if isinstance(raw, dict):
            raw = raw.get(step)
        elif isinstance(raw, list) and isinstance(step, int) and step < len(raw):
            raw = raw[step]
        else:
            return None
    return raw


def walk(raw: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value below, with its path, outer ones first."""
    pairs = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in pairs:
        yield (*path, key), value
        yield from walk(value, (*path, key))
