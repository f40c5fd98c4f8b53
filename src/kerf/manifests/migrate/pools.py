"""Provisioner v1alpha5 and NodePool v1beta1 to NodePool `karpenter.sh/v1`, and NodeClaim v1beta1 to v1.

Three defaults are others today, and each would change what happens to running nodes: an empty node went only when
`ttlSecondsAfterEmpty` said so, a node expired only when `ttlSecondsUntilExpired` did, and requirements were added by a
webhook. So all three are said. Sources: the CRDs, and the upgrade notes for 0.32 and 1.0.
"""

from dataclasses import dataclass, replace

from kerf.manifests.migrate import metadata, requirements
from kerf.manifests.migrate.objects import FieldOutcome, New, Old
from kerf.manifests.migrate.requirements import Offers
from kerf.manifests.schema import Path
from kerf.model.gpu import NVIDIA_GPU

GROUP, VERSION, KIND = "karpenter.sh", "karpenter.sh/v1", "NodePool"
CLASS_GROUP, CLASS_KIND = "karpenter.k8s.aws", "EC2NodeClass"
_TEMPLATE: Path = ("spec", "template", "spec")
_REFERENCE: Path = (*_TEMPLATE, "nodeClassRef")
_LABELS: Path = ("spec", "template", "metadata", "labels")
_ANNOTATIONS: Path = ("spec", "template", "metadata", "annotations")
_DISRUPTION: Path = ("spec", "disruption")
_GPUS = (NVIDIA_GPU, "amd.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron")
_MOST_OF_ONE_NODE = 16
"""GPUs of the largest instance type of the catalogue, p2.16xlarge."""
_BUDGET = ("nodes", "schedule", "duration", "reasons")


@dataclass
class Pool:
    """A pool of today with what its nodes' class still has to take over: the kubelet's settings at `kubelet`."""

    old: Old
    new: New
    class_name: str
    kubelet: Path

    def refer(self, name: str) -> None:
        """Name the NodeClass."""
        self.class_name = name
        place = (*_REFERENCE, "name")
        self.new.put(place, name)
        why = "a class with the settings of its kubelet"
        rows = self.old.rows
        rows[:] = [replace(row, outcome=FieldOutcome.CHANGED, why=why) if row.to == place else row for row in rows]


def from_provisioner(old: Old, class_name: str, offers: Offers) -> Pool:
    """A Provisioner as a NodePool; `class_name` is that of the NodeClass made of it where it refers to none."""
    new = New.of(VERSION, KIND)
    metadata.metadata(old, new)
    requirements.labels(old, ("spec", "labels"), new, _LABELS)
    metadata.annotations(old, ("spec", "annotations"), new, _ANNOTATIONS)
    name = _class_of_provisioner(old, new, class_name)
    _wanted(old, ("spec", "requirements"), new, offers)
    for names in (("spec", "provider", "instanceTypes"), ("spec", "instanceTypes")):
        requirements.instance_types(old, names, new, (*_TEMPLATE, "requirements"), offers)
    requirements.defaults(old, new, (*_TEMPLATE, "requirements"))
    requirements.taints(old, ("spec",), new, _TEMPLATE)
    _expiry(old, new)
    _emptiness(old, new)
    new.lines[("spec", "limits")] = [(old.document, ("spec", "limits"))]
    for resource in old.at("spec", "limits", "resources") or {}:
        _limit(old, ("spec", "limits", "resources", resource), new)
    old.keep(("spec", "weight"), new, ("spec", "weight"))
    return Pool(old, new, name, ("spec", "kubeletConfiguration"))


def from_beta(old: Old, offers: Offers) -> Pool:
    """A NodePool of v1beta1."""
    new = New.of(VERSION, KIND)
    at = _TEMPLATE
    metadata.metadata(old, new)
    requirements.labels(old, _LABELS, new, _LABELS)
    metadata.annotations(old, _ANNOTATIONS, new, _ANNOTATIONS)
    name = _reference(old, (*at, "nodeClassRef"), new, _REFERENCE)
    _wanted(old, (*at, "requirements"), new, offers)
    requirements.taints(old, at, new, _TEMPLATE)
    old.keep((*at, "terminationGracePeriod"), new, (*_TEMPLATE, "terminationGracePeriod"))
    old.keep((*_DISRUPTION, "expireAfter"), new, (*_TEMPLATE, "expireAfter"), "it belongs to the template today")
    old.drop((*at, "resources"), "Karpenter computes what a NodeClaim asks for", look=False)
    _consolidation(old, new)
    for resource in old.at("spec", "limits") or {}:
        _limit(old, ("spec", "limits", resource), new)
    old.keep(("spec", "weight"), new, ("spec", "weight"))
    return Pool(old, new, name, (*at, "kubelet"))


def claim_from_beta(old: Old) -> New:
    """A NodeClaim of v1beta1; people seldom write one."""
    new = New.of(VERSION, "NodeClaim")
    metadata.metadata(old, new)
    _reference(old, ("spec", "nodeClassRef"), new, ("spec", "nodeClassRef"))
    new.put(("spec", "requirements"), [])
    requirements.requirements(
        old, ("spec", "requirements"), new, ("spec", "requirements"), requirements.everything_is_sold
    )
    requirements.taints(old, ("spec",), new, ("spec",))
    for field in ("resources", "terminationGracePeriod"):
        old.keep(("spec", field), new, ("spec", field))
    return new


def _wanted(old: Old, at: Path, new: New, offers: Offers) -> None:
    requirements.requirements(old, at, new, (*_TEMPLATE, "requirements"), offers)


def _class_of_provisioner(old: Old, new: New, class_name: str) -> str:
    reference: Path = ("spec", "providerRef")
    if old.at(*reference) is not None:
        return _reference(old, reference, new, _REFERENCE)
    new.put(_REFERENCE, {"group": CLASS_GROUP, "kind": CLASS_KIND, "name": class_name})
    return class_name


def _reference(old: Old, at: Path, new: New, to: Path) -> str:
    """A reference to a NodeClass; its name. One of another cloud is kept, and has to be looked at."""
    given = old.at(*at)
    if given is None:
        new.put(to, {"group": CLASS_GROUP, "kind": CLASS_KIND})
        old.placeholder(new, (*to, "name"), "default", "required today", "the name of the NodeClass")
        return "default"
    group = (given.get("apiVersion") or f"{CLASS_GROUP}/").partition("/")[0]
    kind = given.get("kind") or CLASS_KIND
    is_aws = group == CLASS_GROUP
    new.put(to, {"group": group, "kind": CLASS_KIND if is_aws else kind})
    for field, today in (("apiVersion", "group"), ("kind", "kind")):
        if given.get(field) is not None:
            hint = "" if is_aws else "only AWS's kinds are known here: take the names of your provider's today"
            value = new.value["spec"]
            for step in (*to[1:], today):
                value = value[step]
            old.change((*at, field), new, (*to, today), value, "as the kind is called today", hint, look=not is_aws)
    old.keep((*at, "name"), new, (*to, "name"))
    return str(given["name"])


def _expiry(old: Old, new: New) -> None:
    ttl: Path = ("spec", "ttlSecondsUntilExpired")
    to: Path = (*_TEMPLATE, "expireAfter")
    seconds = old.at(*ttl)
    if seconds is None:
        old.add(new, to, "Never", "without ttlSecondsUntilExpired nodes never expired; today's default is 720h")
    else:
        hint = "expiry is forceful since 1.0: the node is drained at once, before another has come"
        old.change(ttl, new, to, f"{seconds}s", "seconds as a duration", hint)


def _emptiness(old: Old, new: New) -> None:
    """When empty and under-used nodes go, in an order in which the policy stands first."""
    ttl: Path = ("spec", "ttlSecondsAfterEmpty")
    enabled: Path = ("spec", "consolidation", "enabled")
    policy, after = (*_DISRUPTION, "consolidationPolicy"), (*_DISRUPTION, "consolidateAfter")
    seconds = old.at(*ttl)
    if old.at(*enabled):
        old.change(enabled, new, policy, "WhenEmptyOrUnderutilized", "the same by another name")
        if seconds is None:
            old.add(new, after, "0s", "required today; nodes were considered at once")
        else:
            hint = "v1alpha5 took only one of the two; a node that is not empty waits that long today, too"
            old.change(ttl, new, after, f"{seconds}s", "", hint, look=True)
        return
    if old.at(*enabled) is not None:
        old.change(enabled, new, policy, "WhenEmpty", "under-used nodes stay")
    elif seconds is not None:
        old.add(new, policy, "WhenEmpty", "only empty nodes went; today's default is WhenEmptyOrUnderutilized")
    else:
        old.add(new, policy, "WhenEmpty", "no node went for being empty or under-used")
    if seconds is not None:
        old.change(ttl, new, after, f"{seconds}s", "seconds since the last pod left, as before")
    else:
        old.add(new, after, "Never", "without ttlSecondsAfterEmpty empty nodes stayed; today's default is 0s")


def _consolidation(old: Old, new: New) -> None:
    policy, after = (*_DISRUPTION, "consolidationPolicy"), (*_DISRUPTION, "consolidateAfter")
    if old.at(*policy) == "WhenUnderutilized":
        old.change(policy, new, policy, "WhenEmptyOrUnderutilized", "it has been renamed")
    else:
        old.keep(policy, new, policy)
    if old.at(*after) is not None:
        old.keep(after, new, after)
    elif old.at(*_DISRUPTION):
        old.add(new, after, "0s", "required today; nodes were considered at once")
    old.keep_each((*_DISRUPTION, "budgets"), new, (*_DISRUPTION, "budgets"), _BUDGET)


def _limit(old: Old, at: Path, new: New) -> None:
    resource, amount = str(at[-1]), old.at(*at)
    to: Path = ("spec", "limits", resource)
    if isinstance(amount, float):
        old.change(at, new, to, f"{amount}", "text or a whole number today")
        return
    number = int(amount) if str(amount).isascii() and str(amount).isdigit() else 0
    hint = ""
    if resource in _GPUS and 0 < number <= _MOST_OF_ONE_NODE:
        hint = (
            "it is the total of the pool, as it was; to cap one node add the requirement "
            f"karpenter.k8s.aws/instance-gpu-count Lt {number + 1}"
        )
    old.keep(at, new, to, "", hint)
