"""Why an API server would refuse the spec of a new pod (kubernetes 1.36, pkg/apis/core/validation, ValidatePodSpec).

What a server refuses never comes to be, so nothing is planned for it; the reason is that of one pod, and all others of
the input are planned.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.manifests.kinds import EFFECTS, TOLERATION_OPERATORS
from kerf.manifests.pods.nodeaffinity import refused_node_affinity
from kerf.manifests.pods.ports import refused_ports
from kerf.manifests.pods.resources import refused_amounts, refused_of_pod
from kerf.manifests.pods.topology import refused_labels, refused_topology
from kerf.manifests.pods.volumes import refused_mounts, refused_volumes
from kerf.manifests.schema import DNS_LABEL, LABEL_KEY, LABEL_VALUE, NAME, Path, Problem, mistake, no_word

_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSTEMS = ("linux", "windows")
_OF_JOBS, _OF_LASTING = ("OnFailure", "Never"), ("Always",)
_NAMES = {"nodeName": NAME, "hostname": DNS_LABEL, "subdomain": DNS_LABEL, "serviceAccountName": NAME}
_LONGEST_S = 2**31 - 1
_Raw = Mapping[str, Any]


def refusals(raw: _Raw) -> Iterator[Problem]:
    """Every reason, with its path from the spec. What probes, variables and security contexts say is not looked at."""
    yield from _refused_containers(raw)
    yield from refused_of_pod(raw)
    yield from _refused_policy(raw, ())
    yield from _refused_words(raw)
    yield from _refused_gates(raw)
    yield from refused_labels(raw.get("nodeSelector") or {}, ("nodeSelector",))
    yield from refused_node_affinity(raw)
    yield from _refused_tolerations(raw)
    yield from refused_volumes(raw)
    yield from refused_mounts(raw)
    yield from refused_topology(raw)


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


def _refused_containers(raw: _Raw) -> Iterator[Problem]:
    if not raw.get("containers"):
        yield mistake(("containers",), "at least one container", raw.get("containers"))
    seen, claims = set[str](), {claim.get("name") for claim in raw.get("resourceClaims") or ()}
    for part in ("initContainers", "containers"):
        for index, container in enumerate(raw.get(part) or ()):
            at: Path = (part, index)
            if not DNS_LABEL.accepts(container["name"]):
                yield mistake((*at, "name"), DNS_LABEL.expected, container["name"])
            if container["name"] in seen:
                yield mistake((*at, "name"), "a name that no other container has", container["name"])
            seen.add(container["name"])
            yield from refused_amounts(container.get("resources") or {}, (*at, "resources"))
            yield from _refused_policy(container, at)
            for number, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
                if claim.get("name") not in claims:
                    expected = "the name of one of the pod's resourceClaims"
                    yield mistake((*at, "resources", "claims", number, "name"), expected, claim.get("name"))
    yield from refused_ports(raw)
    if raw.get("ephemeralContainers"):
        hint = "such are put into a pod that runs: kubectl debug"
        yield mistake(("ephemeralContainers",), "none in a new pod", raw["ephemeralContainers"], hint)


def _refused_policy(raw: _Raw, at: Path) -> Iterator[Problem]:
    policy = raw.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        yield no_word((*at, "restartPolicy"), _RESTART_POLICIES, policy)


def _refused_words(raw: _Raw) -> Iterator[Problem]:
    policy, system = raw.get("dnsPolicy"), (raw.get("os") or {}).get("name")
    if policy and policy not in _DNS_POLICIES:
        yield no_word(("dnsPolicy",), _DNS_POLICIES, policy)
    if policy == "None" and not (raw.get("dnsConfig") or {}).get("nameservers"):
        yield mistake(("dnsConfig", "nameservers"), "at least one, since dnsPolicy is None", None)
    if raw.get("os") is not None and system not in _SYSTEMS:
        yield no_word(("os", "name"), _SYSTEMS, system)
    for name, form in _NAMES.items():
        if raw.get(name) and not form.accepts(raw[name]):
            yield mistake((name,), form.expected, raw[name])
    deadline = raw.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_S:
        yield mistake(("activeDeadlineSeconds",), f"seconds from 1 to {_LONGEST_S}", deadline)
    if raw.get("overhead") and not raw.get("runtimeClassName"):
        hint = "leave it out: the server takes it from the pod's RuntimeClass, and the pod names none"
        yield mistake(("overhead",), "nothing without a runtimeClassName", raw["overhead"], hint)
    if raw.get("hostPID") and raw.get("shareProcessNamespace"):
        yield mistake(("shareProcessNamespace",), "false, since the pod has hostPID", True)


def _refused_gates(raw: _Raw) -> Iterator[Problem]:
    gates = [gate["name"] for gate in raw.get("schedulingGates") or ()]
    for index, name in enumerate(gates):
        at: Path = ("schedulingGates", index, "name")
        if not LABEL_KEY.accepts(name):
            yield mistake(at, "a name such as example.com/gate", name)
        if name in gates[:index]:
            yield mistake(at, "a name that no other gate has", name)
    if gates and raw.get("nodeName"):
        yield mistake(("nodeName",), "nothing while the pod has schedulingGates", raw["nodeName"])


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
