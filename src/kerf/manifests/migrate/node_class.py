"""AWSNodeTemplate, a Provisioner's `provider` block and EC2NodeClass v1beta1 to EC2NodeClass `karpenter.k8s.aws/v1`.

Today's kind requires what the old ones filled in by themselves: images, an identity, security groups. Where the old
default can be said it is said; else a placeholder stands there, which the API takes and AWS does not.
Sources: the CRD of Karpenter's AWS provider 1.14.0, its upgrade notes for 0.32 and 1.0, and the CRDs of 0.31.
"""

import re
from dataclasses import dataclass
from typing import Any

from kerf.manifests.migrate.forms import KUBELET_AMOUNTS, KUBELET_TEXTS
from kerf.manifests.migrate.objects import New, Old
from kerf.manifests.migrate.selectors import MOST_TERMS, terms_of
from kerf.manifests.schema import Path
from kerf.model.quantities import quantity_of

VERSION, KIND = "karpenter.k8s.aws/v1", "EC2NodeClass"
FILL_IN = "REPLACE-ME"
_SPEC: Path = ("spec",)
_FAMILIES = {
    "AL2": "al2",
    "AL2023": "al2023",
    "Bottlerocket": "bottlerocket",
    "Windows2019": "windows2019",
    "Windows2022": "windows2022",
    "Windows2025": "windows2025",
}
"""Families with images of their own, and the alias of each."""
_AL2 = (
    "EKS publishes no AL2 images since 2025-11-26 and none for Kubernetes 1.33 and later: take al2023@latest there, "
    "whose user data has another form"
)
_SIZE = re.compile(r"[1-9][0-9]*(?:Gi|G|Ti|T)", re.ASCII)
_GIB = 1024**3
_TERMS: dict[str, tuple[str, str]] = {
    "subnet": ("subnetSelectorTerms", "the tags or ids of the subnets"),
    "securityGroup": ("securityGroupSelectorTerms", "the tags or ids of the nodes' security groups"),
}
_RESTRICTED_TAGS = (
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
)
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_EVICTIONS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_KUBELET_SCALARS = (
    "clusterDNS",
    "cpuCFSQuota",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "maxPods",
    "podsPerCore",
)
_DEVICE = ("deviceName", "rootVolume")
_VOLUME = ("deleteOnTermination", "encrypted", "iops", "kmsKeyID", "snapshotID", "throughput", "volumeType")
_TERM = ("tags", "id", "name")
_METADATA = ("httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit", "httpTokens")


@dataclass(frozen=True)
class MetadataDefaults:
    """What the old kind took for metadata options: where there are none at all, and where some are given."""

    without: dict[str, Any]
    beside: dict[str, Any]


_REACHABLE = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
ALPHA = MetadataDefaults(_REACHABLE, {"httpTokens": "optional"})
BETA = MetadataDefaults(_REACHABLE, {"httpPutResponseHopLimit": 2})


def from_template(old: Old, at: Path, new: New) -> None:
    """The fields of AWSNodeTemplate, which are also those of the `provider` block, from `at` to `spec`."""
    _images(old, at, new)
    _identity(old, at, new)
    for noun in _TERMS:
        _network(old, at, new, noun)
    for misspelt in ("associatePublicIpAddress",):
        old.keep((*at, misspelt), new, (*_SPEC, "associatePublicIPAddress"))
    _machine(old, at, new, ALPHA)
    for name in ("launchTemplate", "launchTemplateName"):
        hint = "say in the EC2NodeClass what it said: amiSelectorTerms, userData, blockDeviceMappings"
        old.drop((*at, name), "launch templates of one's own are gone since 0.32", hint)


def from_beta(old: Old, new: New) -> None:
    """The fields of EC2NodeClass v1beta1."""
    _images(old, _SPEC, new)
    _identity(old, _SPEC, new)
    for name, what in _TERMS.values():
        if old.at("spec", name):
            old.keep_each((*_SPEC, name), new, (*_SPEC, name), _TERM)
        else:
            _missing(old, new, name, what)
    old.keep((*_SPEC, "instanceStorePolicy"), new, (*_SPEC, "instanceStorePolicy"))
    _machine(old, _SPEC, new, BETA)


def blank(old: Old, new: New) -> None:
    """What an object that names no template leaves open: everything."""
    _images(old, ("spec", "provider"), new)
    _identity(old, ("spec", "provider"), new)
    for name, what in _TERMS.values():
        _missing(old, new, name, what)
    _metadata_options(old, ("spec", "provider"), new, ALPHA)


def kubelet(old: Old, at: Path, new: New) -> None:
    """Settings of the kubelet, which belonged to the pool, from `at` to `spec.kubelet`."""
    to: Path = (*_SPEC, "kubelet")
    for name in _KUBELET_SCALARS:
        old.keep((*at, name), new, (*to, name))
    for name, known in (*((n, _EVICTIONS) for n in KUBELET_TEXTS), *((n, _RESERVABLE) for n in KUBELET_AMOUNTS)):
        for key, value in (old.at(*at, name) or {}).items():
            if key not in known:
                old.drop((*at, name, key), f"today's API takes only {', '.join(known)} here")
            elif isinstance(value, str):
                old.keep((*at, name, key), new, (*to, name, key))
            else:
                old.change((*at, name, key), new, (*to, name, key), f"{value}", "text today")
    runtime = old.at(*at, "containerRuntime")
    why = "containerd is the only runtime since Kubernetes 1.24"
    old.drop((*at, "containerRuntime"), why, look=runtime != "containerd")


def _images(old: Old, at: Path, new: New) -> None:
    family, terms = old.at(*at, "amiFamily"), (*_SPEC, "amiSelectorTerms")
    chosen: Path = next(
        ((*at, name) for name in ("amiSelector", "amiSelectorTerms") if old.at(*at, name)), (*at, "amiSelector")
    )
    alias = _FAMILIES.get(family or "AL2")
    if old.at(*chosen) is not None:
        _family(old, at, new, family)
        _chosen_images(old, chosen, new, terms)
        return
    hint = _AL2 if alias == "al2" else ""
    if family is None:
        value = [{"alias": f"{alias}@latest"}]
        what = "the images; this is what was taken without an amiFamily"
        old.placeholder(new, terms, value, "required today", what, hint)
    elif alias is not None:
        why = "the newest image of the family, as before"
        old.change((*at, "amiFamily"), new, terms, [{"alias": f"{alias}@latest"}], why, hint, look=bool(hint))
    else:
        _family(old, at, new, family)
        what = "the name, id or tags of the image"
        old.placeholder(new, terms, [{"name": FILL_IN}], f"{family} has no images of its own today", what)


def _family(old: Old, at: Path, new: New, family: str | None) -> None:
    to: Path = (*_SPEC, "amiFamily")
    if family is None:
        old.add(new, to, "AL2", "the family that was taken where none was given; required beside an image of one's own")
    elif family == "Ubuntu":
        why = "Ubuntu's user data has the form of AL2, which is what Karpenter 1.0 converts it to"
        hint = "Ubuntu's root volume is /dev/sda1: give it in blockDeviceMappings"
        old.change((*at, "amiFamily"), new, to, "AL2", why, hint, look=True)
    elif family == "Custom":
        hint = "the user data must register nodes with the taint karpenter.sh/unregistered:NoExecute since 1.0"
        old.keep((*at, "amiFamily"), new, to, "", hint, look=True)
    elif family in _FAMILIES:
        old.keep((*at, "amiFamily"), new, to)
    else:
        hint = f"one of {', '.join(_FAMILIES)}, or Custom, which this is now"
        old.change((*at, "amiFamily"), new, to, "Custom", "today's API has no such family", hint, look=True)


def _chosen_images(old: Old, chosen: Path, new: New, terms: Path) -> None:
    if chosen[-1] == "amiSelectorTerms":
        old.keep_each(chosen, new, terms, (*_TERM, "owner", "alias", "ssmParameter"))
    else:
        _selected(old, chosen, new, terms, "the name, id or tags of the image")


def _selected(old: Old, at: Path, new: New, to: Path, what: str) -> None:
    selector = old.at(*at) or {}
    terms, lost = terms_of(selector)
    if not terms:
        old.drop(at, f"it selects nothing, or more than {MOST_TERMS} combinations of values", what)
        value = {"name": FILL_IN} if to[-1] == "amiSelectorTerms" else {"tags": {"karpenter.sh/discovery": FILL_IN}}
        old.placeholder(new, to, [value], "required today", what)
        return
    if terms == [{"tags": selector}]:
        new.put(to, [{}])
        old.keep(at, new, (*to, 0, "tags"))
    else:
        old.change(at, new, to, terms, "a list of alternatives today, with one value each")
    for key in lost:
        old.drop((*at, key), "identifiers select alone today", "leave it out, or select by tags only")


def _identity(old: Old, at: Path, new: New) -> None:
    for name in ("role", "instanceProfile"):
        if old.at(*at, name) is not None:
            old.keep((*at, name), new, (*_SPEC, name))
    if not {"role", "instanceProfile"} & new.value.get("spec", {}).keys():
        why = "required today: the default instance profile of the settings is gone since 0.32"
        what = "the IAM role of the nodes"
        old.placeholder(new, (*_SPEC, "role"), FILL_IN, why, what, "instanceProfile may stand in its place")


def _network(old: Old, at: Path, new: New, noun: str) -> None:
    name, what = _TERMS[noun]
    if old.at(*at, f"{noun}Selector"):
        _selected(old, (*at, f"{noun}Selector"), new, (*_SPEC, name), what)
        return
    discovery = (old.at(*at, "subnetSelector") or {}).get("karpenter.sh/discovery")
    hint = f"often they have the tag of the subnets, karpenter.sh/discovery: {discovery}" if discovery else ""
    _missing(old, new, name, what, hint)


def _missing(old: Old, new: New, name: str, what: str, hint: str = "") -> None:
    value = [{"tags": {"karpenter.sh/discovery": FILL_IN}}]
    old.placeholder(new, (*_SPEC, name), value, "required today", what, hint)


def _machine(old: Old, at: Path, new: New, defaults: MetadataDefaults) -> None:
    for index, device in enumerate(old.at(*at, "blockDeviceMappings") or []):
        _device(old, (*at, "blockDeviceMappings", index), new, device)
    for name in ("userData", "context", "detailedMonitoring", "associatePublicIPAddress"):
        old.keep((*at, name), new, (*_SPEC, name))
    for key in old.at(*at, "tags") or {}:
        if key in _RESTRICTED_TAGS or key.startswith("kubernetes.io/cluster") or not key:
            old.drop((*at, "tags", key), "Karpenter sets this tag itself, and the API refuses it")
        else:
            old.keep((*at, "tags", key), new, (*_SPEC, "tags", key))
    _metadata_options(old, at, new, defaults)


def _metadata_options(old: Old, at: Path, new: New, defaults: MetadataDefaults) -> None:
    to: Path = (*_SPEC, "metadataOptions")
    given = old.at(*at, "metadataOptions")
    for name in _METADATA:
        old.keep((*at, "metadataOptions", name), new, (*to, name))
    if given is None:
        why = "the old default: since 1.0 containers cannot reach the metadata service (httpPutResponseHopLimit 1)"
        old.add(new, to, dict(defaults.without), why)
        return
    for name, value in defaults.beside.items():
        if given.get(name) is None:
            old.add(new, (*to, name), value, "the old default; today's is another one")


def _device(old: Old, at: Path, new: New, device: dict[str, Any]) -> None:
    to: Path = (*_SPEC, "blockDeviceMappings", new.size((*_SPEC, "blockDeviceMappings")))
    for name in _DEVICE:
        old.keep((*at, name), new, (*to, name))
    for name in _VOLUME:
        old.keep((*at, "ebs", name), new, (*to, "ebs", name))
    volume = device.get("ebs") or {}
    size, place = volume.get("volumeSize"), (*to, "ebs", "volumeSize")
    if size is None:
        return
    if isinstance(size, str) and _SIZE.fullmatch(size):
        old.keep((*at, "ebs", "volumeSize"), new, place)
    else:
        gib = max(1, -(-quantity_of("memory", size) // _GIB))
        old.change((*at, "ebs", "volumeSize"), new, place, f"{gib}Gi", "whole Gi, G, Ti or T today, rounded up")
