"""Why an API server would refuse what containers, or a pod as a whole, ask for.

Rules of kubernetes 1.36, pkg/apis/core/validation (`ValidateContainerResourceRequirements`,
`validatePodResources`).
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from kerf.manifests.schema import LABEL_KEY, Path, Problem, mistake
from kerf.model.pods import PodSpec
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, quantity, quantity_text

_STANDARD = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HUGE = "hugepages-"
_OF_PODS = f"{CPU}, {MEMORY} or hugepages, which a pod can ask for as a whole"
_OF_QUOTAS = "requests."
_Raw = Mapping[str, Any]


def is_of_pods(name: str) -> bool:
    """Whether a pod may ask for the resource as a whole."""
    return name in (CPU, MEMORY) or name.startswith(_HUGE)


def is_extended(name: str) -> bool:
    """Whether the resource is an extended one: whole numbers only, and a limit that the request equals."""
    return "/" in name and not name.rpartition("/")[0].endswith("kubernetes.io")


def refused_amounts(raw: _Raw, at: Path) -> Iterator[Problem]:
    """Why it would refuse the `resources` of a container, which stand at `at`."""
    for part in ("limits", "requests"):
        for name in raw.get(part) or {}:
            yield from _refused_name(name, (*at, part, name))
    yield from _refused_pairs(raw, at)


def refused_of_pod(raw: _Raw) -> Iterator[Problem]:
    """Why it would refuse what the pod asks as a whole, looked at alone; paths count from the spec."""
    resources, at = raw.get("resources") or {}, ("resources",)
    for part in ("limits", "requests"):
        for name in sorted(resources.get(part) or {}):
            if not is_of_pods(name):
                yield mistake((*at, part, name), _OF_PODS, name, "ask for it in a container")
    yield from _refused_pairs(resources, at)


def refused_sums(raw: _Raw, spec: PodSpec) -> Iterator[Problem]:
    """Why it would refuse what the pod asks as a whole, beside what its containers ask.

    It asks for no less than they do together, and none of them has a larger limit; those of init containers are free.
    `spec` holds what LimitRanges add.
    """
    stated = raw.get("resources") or {}
    requests, limits = stated.get("requests") or {}, stated.get("limits") or {}
    together = spec.requests_of_containers
    for name in sorted({*requests, *limits}):
        least, part = together.get(name, 0), "requests" if name in requests else "limits"
        if spec.pod_requests.get(name, least) < least or spec.pod_limits.get(name, least) < least:
            expected = f"at least {quantity_text(name, least)}, which its containers request together"
            yield mistake(("resources", part, name), expected, stated[part][name])
    for index, container in enumerate(spec.containers):
        for name, most in sorted(spec.pod_limits.items()):
            limit = container.limits.get(name, 0)
            if limit > most:
                expected = f"at most {quantity_text(name, most)}, the limit of the pod as a whole"
                at = ("containers", index, "resources", "limits", name)
                yield mistake(at, expected, quantity_text(name, limit))


def _refused_name(name: str, at: Path) -> Iterator[Problem]:
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
        words = (*_STANDARD, "nvidia.com/gpu")
        meant = get_close_matches(name, words, 1) or [word for word in words if word.endswith(f"/{name}")]
        expected = f"{', '.join(_STANDARD)}, hugepages-SIZE or a name with a domain"
        yield mistake(at, expected, name, f"is `{meant[0]}` meant?" if meant else "")
    elif "/" in name and (not LABEL_KEY.accepts(name) or name.startswith(_OF_QUOTAS)):
        yield mistake(at, "the name of a resource, such as nvidia.com/gpu", name)


def _refused_pairs(raw: _Raw, at: Path) -> Iterator[Problem]:
    limits, requests = raw.get("limits") or {}, raw.get("requests") or {}
    asked = {**limits, **requests}
    for name in sorted(asked):
        limit, request = limits.get(name), requests.get(name)
        if name.startswith(_HUGE):
            yield from _refused_huge(name, limit, request, at)
        elif is_extended(name):
            yield from _refused_extended(name, limit, request, at)
        elif limit is not None and request is not None and _milli(request) > _milli(limit):
            hint = "raise the limit, or lower the request"
            yield mistake((*at, "requests", name), f"at most {limit}, the limit", request, hint)
    huge = sorted(name for name in asked if name.startswith(_HUGE))
    if huge and asked.keys().isdisjoint((CPU, MEMORY)):
        yield mistake(at, f"{CPU} or {MEMORY} too", huge[0], "huge pages cannot be asked for alone")


def _refused_extended(name: str, limit: Any, request: Any, at: Path) -> Iterator[Problem]:
    for part, amount in (("limits", limit), ("requests", request)):
        if amount is not None and _milli(amount) % 1000:
            yield mistake((*at, part, name), "a whole number", amount, "an extended resource has no parts")
    yield from _refused_overcommitment(name, limit, request, at, "an extended resource")


def _refused_huge(name: str, limit: Any, request: Any, at: Path) -> Iterator[Problem]:
    size = _page_of(name)
    for part, amount in (("limits", limit), ("requests", request)):
        if amount is not None and (not size or quantity(amount) % size or _milli(amount) % 1000):
            expected = (
                f"whole pages of {name.removeprefix(_HUGE)}" if size else "a size of pages, such as hugepages-2Mi"
            )
            yield mistake((*at, part, name), expected, amount if size else name)
    yield from _refused_overcommitment(name, limit, request, at, "one of huge pages")


def _refused_overcommitment(name: str, limit: Any, request: Any, at: Path, kind: str) -> Iterator[Problem]:
    if limit is None:
        hint = f"{kind} needs a limit, which the request follows"
        yield mistake((*at, "limits", name), f"{request}, as the request", None, hint)
    elif request is not None and _milli(request) != _milli(limit):
        hint = f"leave the request out: that of {kind} follows its limit"
        yield mistake((*at, "requests", name), f"{limit}, as the limit", request, hint)


def _page_of(name: str) -> int:
    """The bytes of a page; 0 where the name has no size."""
    try:
        return max(0, quantity(name.removeprefix(_HUGE)))
    except (ValueError, OverflowError):
        return 0


def _milli(amount: Any) -> int:
    return quantity(amount, milli=True)
