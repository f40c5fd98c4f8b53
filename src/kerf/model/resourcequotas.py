"""What pods and claims count against a ResourceQuota, and which of them one with scopes counts.

The rules are those of the API server (kubernetes 1.36, pkg/quota/v1/evaluator/core/pods.go): requests by their name and
by `requests.NAME`, limits by `limits.NAME`, extended resources by `requests.NAME` alone, and the pod itself. A claim
counts itself and what it requests, and both once more for its StorageClass (persistent_volume_claims.go).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kerf.model.pods import Container, PodSpec
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, STORAGE, Resources

OBJECTS = "count/pods"
"""Pods that have ended count, too, as long as they are there."""
COUNTS = ("pods", OBJECTS)
"""Of each a pod is one."""
CLAIMS = "persistentvolumeclaims"
_OF_CLASS = ".storageclass.storage.k8s.io/"
_NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_STATED = (CPU, MEMORY)
"""Where a quota limits one of these, each container must state it."""


@dataclass(frozen=True, slots=True)
class QuotaScope:
    """One scope of a quota: it counts only what it selects.

    `operator` and `values` are of a PriorityClass, or of a VolumeAttributesClass.
    """

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def selects(self, spec: PodSpec) -> bool:
        """Whether such pods count; none does in a scope that is none of pods."""
        match self.name:
            case "Terminating" | "NotTerminating":
                return (spec.active_deadline_s is not None) == (self.name == "Terminating")
            case "BestEffort" | "NotBestEffort":
                return _is_best_effort(spec) == (self.name == "BestEffort")
            case "CrossNamespacePodAffinity":
                return _reaches_other_namespaces(spec)
            case "PriorityClass":
                return self._selects_class(spec.priority_class)
        return False

    def selects_claim(self, attributes_classes: Collection[str]) -> bool:
        """Whether a claim counts that names, has or is to get these VolumeAttributesClasses."""
        is_of_claims = self.name == "VolumeAttributesClass"
        return is_of_claims and any(self._selects_class(name) for name in attributes_classes or ("",))

    def _selects_class(self, name: str) -> bool:
        match self.operator:
            case "In":
                return bool(name) and name in self.values
            case "NotIn":
                return not name or name not in self.values
            case "DoesNotExist":
                return not name
        return bool(name)


def counted(spec: PodSpec) -> Resources:
    """What one pod counts, by the names of a quota."""
    found = dict.fromkeys(COUNTS, 1)
    for name, amount in spec.requests.items():
        if name in _NATIVE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = amount
        elif "/" in name:
            found[f"requests.{name}"] = amount
    found |= {f"limits.{name}": amount for name, amount in spec.limits.items() if name in _NATIVE}
    return Resources(found)


def counted_claim(storage_class: str, requested_bytes: int) -> Resources:
    """What one claim counts, by the names of a quota; `storage_class` is empty for none."""
    found = {CLAIMS: 1}
    if requested_bytes:
        found[f"requests.{STORAGE}"] = requested_bytes
    if storage_class:
        found |= {f"{storage_class}{_OF_CLASS}{name}": amount for name, amount in found.items()}
    return Resources({**found, f"count/{CLAIMS}": 1})


def is_of_claims(name: str) -> bool:
    """Whether claims count by this name of a quota."""
    return resource_of(name) in (STORAGE, CLAIMS) or name == f"count/{CLAIMS}"


def is_counted(name: str) -> bool:
    """Whether pods or claims count by this name of a quota."""
    resource = resource_of(name)
    is_of_pods = name in COUNTS or resource in _NATIVE or resource.startswith("hugepages-")
    return is_of_pods or is_of_claims(name) or (name.startswith("requests.") and "/" in name)


def exceeded(hard: Mapping[str, int], used: Mapping[str, int], asked: Mapping[str, int]) -> tuple[str, ...]:
    """The names of a quota of which there is less left than is asked; sorted. What asks for nothing exceeds nothing."""
    return tuple(sorted(name for name in asked if 0 < asked[name] > hard[name] - used.get(name, 0)))


def unstated(spec: PodSpec, limited: Collection[str]) -> tuple[str, ...]:
    """Those of a quota's names that some container does not state, for which the API server refuses the pod; sorted.

    Init containers count. A pod that asks as a whole (`spec.resources`) need not state them for its containers.
    """
    if spec.pod_requests or spec.pod_limits:
        return ()
    containers = (*spec.containers, *spec.init_containers)
    return tuple(
        sorted(name for name in limited if _must_state(name) and not all(_states(each, name) for each in containers))
    )


def resource_of(name: str) -> str:
    """The resource that a name of a quota is about."""
    return name.rpartition(_OF_CLASS)[2].removeprefix("requests.").removeprefix("limits.")


def _must_state(name: str) -> bool:
    return resource_of(name) in _STATED


def _states(container: Container, name: str) -> bool:
    return resource_of(name) in (container.limits if name.startswith("limits.") else container.requests)


def _is_best_effort(spec: PodSpec) -> bool:
    """Whether neither the pod nor a container asks for cpu or memory (QOSClass BestEffort)."""
    amounts = [spec.pod_requests, spec.pod_limits]
    for container in (*spec.containers, *spec.init_containers):
        amounts += [container.requests, container.limits]
    return not any(held.get(name, 0) > 0 for held in amounts for name in _STATED)


def _reaches_other_namespaces(spec: PodSpec) -> bool:
    held = (spec.pod_affinity, spec.pod_anti_affinity)
    terms = [*(term for each in held for term in each.required), *(term for each in held for _, term in each.preferred)]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
