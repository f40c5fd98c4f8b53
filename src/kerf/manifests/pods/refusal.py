"""Why an API server would refuse the spec of a new pod (kubernetes 1.36, pkg/apis/core/validation, ValidatePodSpec).

What a server refuses never comes to be, so nothing is planned for it; the reason is that of one pod, and all others of
the input are planned.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kerf.errors import brief
from kerf.manifests.kinds import EFFECTS, TOLERATION_OPERATORS
from kerf.manifests.pods.nodeaffinity import refused_node_affinity
from kerf.manifests.pods.topology import refused_labels, refused_topology
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, path_text
from kerf.model.quantities import CPU, MEMORY, quantity

_LAST_PORT, _PROTOCOLS = 65_535, ("TCP", "UDP", "SCTP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_OF_JOBS, _OF_LASTING = ("OnFailure", "Never"), ("Always",)
_Raw = Mapping[str, Any]


def refusal_of(raw: _Raw) -> str:
    """The first reason; empty where there is none."""
    of_containers = _refused_containers(raw), _refused_of_pod(raw.get("resources") or {})
    return next(chain(*of_containers, _refused_policy(raw, "restartPolicy"), refused_placement(raw)), "")


def refused_placement(raw: _Raw) -> Iterator[str]:
    """Why it would, for what the spec says of where its pods are to run."""
    yield from refused_labels(raw.get("nodeSelector") or {}, ("nodeSelector",))
    yield from refused_node_affinity(raw)
    yield from _refused_tolerations(raw)
    yield from _refused_volumes(raw)
    why = refused_topology(raw)
    if why:
        yield why


def policy_expected(kind: str, raw: _Raw) -> str:
    """The restartPolicy that pods of an object of this kind must have, where theirs is another; else empty.

    The pods of a Job must end (kubernetes 1.36, pkg/apis/batch/validation, ValidateJobSpec), those of the others must
    not (pkg/apis/apps/validation). Without one a pod has Always.
    """
    allowed = _OF_JOBS if kind in ("Job", "CronJob") else _OF_LASTING
    policy = raw.get("restartPolicy")
    if (policy or _OF_LASTING[0]) in allowed or (policy is not None and policy not in _RESTART_POLICIES):
        return ""
    return " or ".join(allowed)


def is_of_pods(name: str) -> bool:
    """Whether a pod may ask for the resource as a whole."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _refused_containers(raw: _Raw) -> Iterator[str]:
    if not raw.get("containers"):
        yield "it has no containers"
        return
    containers = [*(raw.get("initContainers") or ()), *raw["containers"]]
    names = [container["name"] for container in containers]
    if len(set(names)) != len(names):
        yield f"two containers are named {max(names, key=names.count)}"
    for container in containers:
        why = _refused_resources(container.get("resources") or {})
        if why:
            yield f"container {container['name']}: {why}"
        yield from _refused_policy(container, f"container {container['name']}: restartPolicy")
        yield from _refused_ports(container)


def _refused_policy(raw: _Raw, at: str) -> Iterator[str]:
    policy = raw.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        yield f"{at} must be one of {', '.join(_RESTART_POLICIES)}, got {brief(policy)}"


def _refused_ports(container: _Raw) -> Iterator[str]:
    for index, each in enumerate(container.get("ports") or ()):
        at = f"container {container['name']}: {path_text(('ports', index))}"
        for name in ("containerPort", "hostPort"):
            number = each.get(name)
            if number is not None and not (1 <= number <= _LAST_PORT or (name == "hostPort" and number == 0)):
                yield f"{at}.{name} must be from 1 to {_LAST_PORT}, got {number}"
        protocol = each.get("protocol")
        if protocol is not None and protocol not in _PROTOCOLS:
            yield f"{at}.protocol must be one of {', '.join(_PROTOCOLS)}, got {brief(protocol)}"


def _refused_of_pod(raw: _Raw) -> Iterator[str]:
    """What the pod asks as a whole."""
    for name in sorted({**(raw.get("limits") or {}), **(raw.get("requests") or {})}):
        if not is_of_pods(name):
            yield f"spec.resources: {name} can only be asked for by a container"
    why = _refused_resources(raw)
    if why:
        yield f"spec.resources: {why}"


def _refused_resources(raw: _Raw) -> str:
    limits, requests = raw.get("limits") or {}, raw.get("requests") or {}
    for name in sorted({**limits, **requests}):
        limit, request = limits.get(name), requests.get(name)
        if _is_extended(name):
            if any(q is not None and quantity(q, milli=True) % 1000 for q in (limit, request)):
                return f"{name} must be a whole number, got {limit if limit is not None else request}"
            if limit is None:
                return f"{name} is requested without a limit, which an extended resource needs"
        if limit is None or request is None:
            continue
        asked, most = quantity(request, milli=True), quantity(limit, milli=True)
        if asked > most:
            return f"the request of {name} ({request}) is above its limit ({limit})"
        if asked != most and _is_extended(name):
            return f"request ({request}) and limit ({limit}) of {name} differ, which an extended resource forbids"
    return ""


def _is_extended(name: str) -> bool:
    return "/" in name and not name.rpartition("/")[0].endswith("kubernetes.io")


def _refused_tolerations(raw: _Raw) -> Iterator[str]:
    for index, each in enumerate(raw.get("tolerations") or ()):
        at = path_text(("tolerations", index))
        key, operator, value = each.get("key") or "", each.get("operator") or "Equal", each.get("value") or ""
        if key and not LABEL_KEY.accepts(key):
            yield f"{at}.key must be {LABEL_KEY.expected}, got {brief(key)}"
        if operator not in TOLERATION_OPERATORS:
            yield f"{at}.operator must be one of {', '.join(TOLERATION_OPERATORS)}, got {brief(operator)}"
        if each.get("effect") and each["effect"] not in EFFECTS:
            yield f"{at}.effect must be one of {', '.join(EFFECTS)}, got {brief(each['effect'])}"
        if not key and operator != "Exists":
            yield f"{at}.operator must be Exists where there is no key, got {operator}"
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            yield f"{at}.effect must be NoExecute where tolerationSeconds is set, got {brief(each.get('effect') or '')}"
        if operator == "Exists" and value:
            yield f"{at}.value must be empty for Exists, got {brief(value)}"
        if operator == "Equal" and not LABEL_VALUE.accepts(value):
            yield f"{at}.value must be {LABEL_VALUE.expected}, got {brief(value)}"
        if operator in ("Gt", "Lt") and not _is_number(value):
            yield f"{at}.value must be a whole number for {operator}, got {brief(value)}"


def _is_number(text: str) -> bool:
    """A decimal number of 64 bits, as the API writes it: no leading zeros, no plus."""
    digits = text.removeprefix("-")
    is_plain = digits.isascii() and digits.isdigit() and (digits == text == "0" or not digits.startswith("0"))
    return is_plain and len(digits) < 20 and -(2**63) <= int(text) < 2**63


def _refused_volumes(raw: _Raw) -> Iterator[str]:
    seen = set[str]()
    for index, each in enumerate(raw.get("volumes") or ()):
        at, name = path_text(("volumes", index)), each.get("name") or ""
        if not name:
            yield f"{at} has no name"
        if name in seen:
            yield f"two volumes are named {name}"
        seen.add(name)
        if each.get("ephemeral") is not None and each["ephemeral"].get("volumeClaimTemplate") is None:
            yield f"{at}.ephemeral has no volumeClaimTemplate"
