"""Why an API server would refuse the spec of a new pod (kubernetes 1.36, pkg/apis/core/validation, ValidatePodSpec).

What a server refuses never comes to be, so nothing is planned for it; the reason is that of one pod, and all others of
the input are planned.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kerf.manifests.kinds import EFFECTS, TOLERATION_OPERATORS
from kerf.manifests.pods.nodeaffinity import refused_node_affinity
from kerf.manifests.pods.topology import refused_labels, refused_topology
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path, Problem, mistake, no_word
from kerf.model.quantities import CPU, MEMORY, quantity

_LAST_PORT, _PROTOCOLS = 65_535, ("TCP", "UDP", "SCTP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_OF_JOBS, _OF_LASTING = ("OnFailure", "Never"), ("Always",)
_OF_PODS = f"{CPU}, {MEMORY} or hugepages, which a pod can ask for as a whole"
_Raw = Mapping[str, Any]


def refusal_of(raw: _Raw) -> Problem | None:
    """The first reason, with its path from the spec; None where there is none."""
    of_containers = _refused_containers(raw), _refused_of_pod(raw.get("resources") or {})
    return next(chain(*of_containers, _refused_policy(raw, ()), refused_placement(raw)), None)


def refused_placement(raw: _Raw) -> Iterator[Problem]:
    """Why it would, for what the spec says of where its pods are to run; paths count from the spec."""
    yield from refused_labels(raw.get("nodeSelector") or {}, ("nodeSelector",))
    yield from refused_node_affinity(raw)
    yield from _refused_tolerations(raw)
    yield from _refused_volumes(raw)
    why = refused_topology(raw)
    if why is not None:
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


def policy_hint(kind: str) -> str:
    """Why the policy must be another."""
    return f"the API server refuses a {kind} with any other; without one it is {_OF_LASTING[0]}"


def is_of_pods(name: str) -> bool:
    """Whether a pod may ask for the resource as a whole."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _refused_containers(raw: _Raw) -> Iterator[Problem]:
    if not raw.get("containers"):
        yield mistake(("containers",), "at least one container", raw.get("containers"))
        return
    seen = set[str]()
    for part in ("initContainers", "containers"):
        for index, container in enumerate(raw.get(part) or ()):
            at: Path = (part, index)
            if container["name"] in seen:
                yield mistake((*at, "name"), "a name that no other container has", container["name"])
            seen.add(container["name"])
            yield from _refused_resources(container.get("resources") or {}, (*at, "resources"))
            yield from _refused_policy(container, at)
            yield from _refused_ports(container, at)


def _refused_policy(raw: _Raw, at: Path) -> Iterator[Problem]:
    policy = raw.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        yield no_word((*at, "restartPolicy"), _RESTART_POLICIES, policy)


def _refused_ports(container: _Raw, within: Path) -> Iterator[Problem]:
    for index, each in enumerate(container.get("ports") or ()):
        at: Path = (*within, "ports", index)
        for name in ("containerPort", "hostPort"):
            number = each.get(name)
            if number is not None and not (1 <= number <= _LAST_PORT or (name == "hostPort" and number == 0)):
                yield mistake((*at, name), f"a port from 1 to {_LAST_PORT}", number)
        protocol = each.get("protocol")
        if protocol is not None and protocol not in _PROTOCOLS:
            yield no_word((*at, "protocol"), _PROTOCOLS, protocol)


def _refused_of_pod(raw: _Raw) -> Iterator[Problem]:
    """What the pod asks as a whole."""
    at: Path = ("resources",)
    for part in ("limits", "requests"):
        for name in sorted(raw.get(part) or {}):
            if not is_of_pods(name):
                yield mistake((*at, part, name), _OF_PODS, name, "ask for it in a container")
    yield from _refused_resources(raw, at)


def _refused_resources(raw: _Raw, at: Path) -> Iterator[Problem]:
    limits, requests = raw.get("limits") or {}, raw.get("requests") or {}
    for name in sorted({**limits, **requests}):
        limit, request = limits.get(name), requests.get(name)
        if _is_extended(name):
            yield from _refused_extended(name, limit, request, at)
        elif limit is not None and request is not None and _milli(request) > _milli(limit):
            hint = "raise the limit, or lower the request"
            yield mistake((*at, "requests", name), f"at most {limit}, the limit", request, hint)


def _refused_extended(name: str, limit: Any, request: Any, at: Path) -> Iterator[Problem]:
    for part, amount in (("limits", limit), ("requests", request)):
        if amount is not None and _milli(amount) % 1000:
            yield mistake((*at, part, name), "a whole number", amount, "an extended resource has no parts")
    if limit is None:
        hint = "an extended resource needs a limit, which the request follows"
        yield mistake((*at, "limits", name), f"{request}, as the request", None, hint)
    elif request is not None and _milli(request) != _milli(limit):
        hint = "leave the request out: that of an extended resource follows its limit"
        yield mistake((*at, "requests", name), f"{limit}, as the limit", request, hint)


def _milli(amount: Any) -> int:
    return quantity(amount, milli=True)


def _is_extended(name: str) -> bool:
    return "/" in name and not name.rpartition("/")[0].endswith("kubernetes.io")


def _refused_tolerations(raw: _Raw) -> Iterator[Problem]:
    for index, each in enumerate(raw.get("tolerations") or ()):
        at: Path = ("tolerations", index)
        key, operator, value = each.get("key") or "", each.get("operator") or "Equal", each.get("value") or ""
        effect = each.get("effect")
        if key and not LABEL_KEY.accepts(key):
            yield mistake((*at, "key"), LABEL_KEY.expected, key)
        if operator not in TOLERATION_OPERATORS:
            yield no_word((*at, "operator"), TOLERATION_OPERATORS, operator)
        if effect and effect not in EFFECTS:
            yield no_word((*at, "effect"), EFFECTS, effect)
        if not key and operator != "Exists":
            hint = "name a key, or say Exists to tolerate every taint"
            yield mistake((*at, "operator"), "Exists where there is no key", operator, hint)
        if each.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield mistake((*at, "effect"), "NoExecute where tolerationSeconds is set", effect)
        if operator == "Exists" and value:
            yield mistake((*at, "value"), "nothing for Exists", value, "leave it out, or say Equal")
        if operator == "Equal" and not LABEL_VALUE.accepts(value):
            yield mistake((*at, "value"), LABEL_VALUE.expected, value)
        if operator in ("Gt", "Lt") and not _is_number(value):
            yield mistake((*at, "value"), f"a whole number for {operator}", value)


def _is_number(text: str) -> bool:
    """A decimal number of 64 bits, as the API writes it: no leading zeros, no plus."""
    digits = text.removeprefix("-")
    is_plain = digits.isascii() and digits.isdigit() and (digits == text == "0" or not digits.startswith("0"))
    return is_plain and len(digits) < 20 and -(2**63) <= int(text) < 2**63


def _refused_volumes(raw: _Raw) -> Iterator[Problem]:
    seen = set[str]()
    for index, each in enumerate(raw.get("volumes") or ()):
        at: Path = ("volumes", index)
        name = each.get("name") or ""
        if not name:
            yield mistake((*at, "name"), "a name", each.get("name"))
        if name in seen:
            yield mistake((*at, "name"), "a name that no other volume has", name)
        seen.add(name)
        if each.get("ephemeral") is not None and each["ephemeral"].get("volumeClaimTemplate") is None:
            yield mistake((*at, "ephemeral", "volumeClaimTemplate"), "a template of its claim", None)
