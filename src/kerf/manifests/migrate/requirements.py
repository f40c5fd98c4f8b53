"""Requirements and labels of a pool: which of them today's API and today's clouds still take.

The API refuses keys in Karpenter's own domains that it does not know. It takes a value that no label can have, and then
no node ever matches; so such a requirement is reported and left out, for it never selected what it seemed to.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kerf.manifests.migrate.objects import New, Old
from kerf.manifests.rules import COMPARISONS, bound
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path
from kerf.model.constraints import ALIASES, ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, OS
from kerf.model.instancetypes import CAPACITY_TYPE_ORDER

AWS_DOMAIN, DOMAIN = "karpenter.k8s.aws", "karpenter.sh"
PROVISIONER_NAME = "karpenter.sh/provisioner-name"
_NAMES = """
capacity-reservation-id capacity-reservation-interruptible capacity-reservation-type ec2nodeclass
instance-accelerator-count instance-accelerator-manufacturer instance-accelerator-name instance-capability-flex
instance-category instance-cpu instance-cpu-manufacturer instance-cpu-sustained-clock-speed-mhz instance-ebs-bandwidth
instance-encryption-in-transit-supported instance-family instance-generation instance-gpu-count
instance-gpu-manufacturer instance-gpu-memory instance-gpu-name instance-hypervisor instance-local-nvme instance-memory
instance-network-bandwidth instance-size instance-tenancy placement-group-id placement-group-partition
"""
_AWS_LABELS = frozenset(f"{AWS_DOMAIN}/{name}" for name in _NAMES.split())
"""Keys of that domain that the CRD of Karpenter's AWS provider 1.14.0 takes."""
_VENDORS = {"nvidia": "nvidia", "amd": "amd", "habana": "habana"}
_DEFAULTS = {
    OS: "linux",
    ARCH: "amd64",
    CAPACITY_TYPE: "on-demand",
}
_REQUIREMENT = ("key", "operator", "values", "minValues")
_TAINT = ("key", "value", "effect", "timeAdded")
_CHOOSES_TYPES = (
    INSTANCE_TYPE,
    f"{AWS_DOMAIN}/instance-family",
    f"{AWS_DOMAIN}/instance-category",
    f"{AWS_DOMAIN}/instance-generation",
)


@dataclass(frozen=True)
class Concern:
    """Why an instance type cannot be bought, and what to take instead."""

    why: str
    hint: str = ""


Offers = Callable[[str], Concern | None]
"""What is wrong with an instance type of that name; None when it is sold."""


def everything_is_sold(_name: str) -> None:
    """Offers, where no catalogue is asked."""


def requirements(old: Old, at: Path, new: New, to: Path, offers: Offers) -> None:
    """The list at `at` to the list at `to`, requirement by requirement; an empty list where none is left."""
    new.put(to, [])
    for index, raw in enumerate(old.at(*at) or []):
        here, there = (*at, index), (*to, new.size(to))
        key, values = raw["key"], raw.get("values") or []
        refused = _refusal(key)
        unmeetable = _unmeetable(key, raw["operator"], values)
        wrong = next((value for value in values if not LABEL_VALUE.accepts(value)), None)
        if refused is not None:
            old.drop(here, refused.why, refused.hint)
        elif unmeetable:
            old.drop(here, unmeetable)
        elif wrong is not None:
            old.drop(here, f"{key}: {_no_label_value(wrong)}", _meant(key, wrong))
        elif key in ALIASES:
            known = {name: below for name, below in raw.items() if name in _REQUIREMENT}
            old.change(here, new, there, {**known, "key": ALIASES[key]}, f"{key} has been renamed", only=known)
        else:
            concerns = _concerns(key, raw["operator"], values, offers)
            why = "; ".join(concern.why for concern in concerns)
            hint = "; ".join(dict.fromkeys(concern.hint for concern in concerns if concern.hint))
            old.keep(here, new, there, why, hint, look=bool(concerns), only=_REQUIREMENT)


def instance_types(old: Old, at: Path, new: New, to: Path, offers: Offers) -> None:
    """A list of type names at `at` as one more requirement of the list at `to`."""
    names = old.at(*at)
    if not names:
        return
    there: Path = (*to, new.size(to))
    new.put(there, {"key": INSTANCE_TYPE, "operator": "In"})
    concerns = _concerns(INSTANCE_TYPE, "In", names, offers)
    why = "; ".join(["types are a requirement of the pool today", *(concern.why for concern in concerns)])
    hint = "; ".join(dict.fromkeys(concern.hint for concern in concerns if concern.hint))
    old.change(at, new, (*there, "values"), list(names), why, hint, look=bool(concerns))


def defaults(old: Old, new: New, to: Path) -> None:
    """The requirements that v1alpha5 added by itself, after all others (its webhook, in 0.19 to 0.32)."""
    present = {raw["key"] for raw in new.value["spec"]["template"]["spec"]["requirements"]}
    present |= {ALIASES.get(raw["key"], raw["key"]) for raw in old.at("spec", "requirements") or []}
    present |= {ALIASES.get(key, key) for key in old.at("spec", "labels") or {}}
    why = "v1alpha5 added it by itself"
    for key, value in _DEFAULTS.items():
        if key not in present:
            old.add(new, (*to, new.size(to)), {"key": key, "operator": "In", "values": [value]}, why)
    if not present & {*_CHOOSES_TYPES}:
        category = {"key": f"{AWS_DOMAIN}/instance-category", "operator": "In", "values": ["c", "m", "r"]}
        generation = {"key": f"{AWS_DOMAIN}/instance-generation", "operator": "Gt", "values": ["2"]}
        for raw in (category, generation):
            old.add(new, (*to, new.size(to)), raw, why)


def labels(old: Old, at: Path, new: New, to: Path) -> None:
    """The labels at `at`, one by one."""
    for key, value in (old.at(*at) or {}).items():
        refused = _refusal(key)
        if refused is not None:
            old.drop((*at, key), refused.why, refused.hint)
        elif not LABEL_VALUE.accepts(value):
            old.drop((*at, key), _no_label_value(value))
        elif key in ALIASES:
            old.change((*at, key), new, (*to, ALIASES[key]), value, f"{key} has been renamed")
        else:
            old.keep((*at, key), new, (*to, key))


def taints(old: Old, at: Path, new: New, to: Path) -> None:
    """`taints` and `startupTaints` below `at`. No empty values, which mean the same as none, and no taint twice."""
    seen: set[tuple[str, str]] = set()
    for name in ("taints", "startupTaints"):
        for index, raw in enumerate(old.at(*at, name) or []):
            here, there = (*at, name, index), (*to, name, new.size((*to, name)))
            if (raw["key"], raw["effect"]) in seen:
                old.drop(here, "there is another taint of this key and effect")
            elif raw.get("value") == "":
                plain = {field: value for field, value in raw.items() if field in _TAINT and field != "value"}
                old.change(here, new, there, plain, "an empty value is left out today", only=_TAINT)
            else:
                old.keep(here, new, there, only=_TAINT)
            seen.add((raw["key"], raw["effect"]))


def _refusal(key: str) -> Concern | None:
    """Why today's API takes no such key."""
    domain = key.partition("/")[0]
    if key in (PROVISIONER_NAME, NODE_POOL):
        return Concern("the pool sets its own name as a label", "pods select its nodes by karpenter.sh/nodepool")
    if key == HOSTNAME:
        return Concern("the API refuses it: every node has another one")
    if key == f"{AWS_DOMAIN}/instance-pods":
        return Concern("the label is gone since 0.32", "spec.kubelet.maxPods of the EC2NodeClass sets the number")
    if domain.endswith(DOMAIN) and key != CAPACITY_TYPE:
        return Concern(f"the API refuses keys of {DOMAIN}, which is reserved", "use a domain of your own")
    if domain.endswith(AWS_DOMAIN) and key not in _AWS_LABELS:
        return Concern(f"the API refuses unknown keys of {AWS_DOMAIN}", f"known are {', '.join(sorted(_AWS_LABELS))}")
    return None if LABEL_KEY.accepts(key) else Concern("it is no label key", LABEL_KEY.expected)


def _unmeetable(key: str, operator: str, values: list[str]) -> str:
    """Why no node can meet it; empty where one can."""
    if key == CAPACITY_TYPE and operator == "In" and values and not {*values} & CAPACITY_TYPE_ORDER.keys():
        return f"capacity types are {', '.join(CAPACITY_TYPE_ORDER)}"
    if operator in COMPARISONS and bound(values) is None:
        return f"{operator} needs exactly one whole number that is not negative"
    return "In needs a value" if operator == "In" and not values else ""


def _no_label_value(value: str) -> str:
    sign = next((sign for sign in value if not (sign.isascii() and sign.isalnum()) and sign not in "-_."), None)
    if sign is None:
        return f"{value} is no label value: it is too long, or begins or ends with a sign"
    return f"{value} is no label value, which has no `{sign}`: the API refuses it on a node, so none ever has it"


def _meant(key: str, value: str) -> str:
    vendor = next((name for word, name in _VENDORS.items() if word in value.lower() or word in key.lower()), None)
    if vendor is None:
        return ""
    return (
        f"{AWS_DOMAIN}/instance-gpu-manufacturer In [{vendor}] selects types with such a GPU; the resource itself is "
        "asked for by pods"
    )


def _concerns(key: str, operator: str, values: list[str], offers: Offers) -> list[Concern]:
    if key != INSTANCE_TYPE or operator != "In":
        return []
    return [concern for concern in map(offers, values) if concern is not None]
