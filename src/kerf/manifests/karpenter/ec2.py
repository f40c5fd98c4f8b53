"""The form of Karpenter's AWS NodeClass, EC2NodeClass of `karpenter.k8s.aws/v1`: all its fields, most of its rules.

The CRD is the one that `controlplane/definitions.json` locks; the control plane tier compares the fields.
Kerf reads nothing of its spec, so a plan does not ask for this form: lint does, and `kerf migrate` of what it writes.
A field that the form only names is not looked into.
"""

import re
from typing import Any

from kerf.manifests.kinds import METADATA
from kerf.manifests.schema import (
    BOOLEAN,
    COUNT,
    FILLED,
    TEXT,
    TEXTS,
    WHOLE,
    ListOf,
    MapOf,
    Path,
    Record,
    Report,
    Scalar,
    known,
    one_of,
    whole,
)

Object = dict[str, Any]
KIND, VERSION = "EC2NodeClass", "karpenter.k8s.aws/v1"
FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025")
"""Of images that EKS publishes; `Custom` stands for all others."""
_SIZE = re.compile(
    r"(?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
    r"|(?:[1-9]|[1-5][0-7]|58)Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T",
    re.ASCII,
)
_MOST_TERMS, _MOST_DEVICES = 30, 50


def _id(prefix: str) -> Scalar:
    # As the CRD has it: somewhere in the text, so only the least is asked.
    form = re.compile(rf"{prefix}-[0-9a-z]+", re.ASCII)
    return Scalar(f"an id such as {prefix}-0123456789abcdef0", lambda v: isinstance(v, str) and bool(form.search(v)))


def _is_alias(value: object) -> bool:
    families = "|".join(family.lower() for family in FAMILIES)
    return isinstance(value, str) and len(value) <= 60 and re.fullmatch(rf"(?:{families})@.+", value) is not None


_TAGS = MapOf(FILLED, FILLED, 20)
_IMAGE = Record(
    {
        "alias": Scalar("family@version such as al2023@latest", _is_alias),
        "id": _id("ami"),
        **dict.fromkeys(("name", "owner", "ssmParameter"), TEXT),
        "tags": _TAGS,
    }
)
_VOLUME = Record(
    {
        "volumeSize": Scalar("a size such as 100Gi", lambda v: isinstance(v, str) and bool(_SIZE.fullmatch(v))),
        "volumeType": one_of("standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"),
        **dict.fromkeys(("deleteOnTermination", "encrypted"), BOOLEAN),
        **dict.fromkeys(("iops", "throughput"), WHOLE),
        "volumeInitializationRate": whole(100, 300),
        **dict.fromkeys(("kmsKeyID", "snapshotID"), TEXT),
    }
)
_KUBELET = Record(
    {
        "clusterDNS": ListOf(TEXT),
        "cpuCFSQuota": BOOLEAN,
        **dict.fromkeys(("imageGCHighThresholdPercent", "imageGCLowThresholdPercent"), whole(0, 100)),
        **dict.fromkeys(("maxPods", "podsPerCore"), COUNT),
        "evictionMaxPodGracePeriod": WHOLE,
        **dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod"), TEXTS),
        **dict.fromkeys(("kubeReserved", "systemReserved"), TEXTS),
    }
)
_SWITCH = one_of("enabled", "disabled")
EC2_NODE_CLASS = Record(
    {
        "apiVersion": FILLED,
        "kind": FILLED,
        "metadata": METADATA,
        "spec": Record(
            {
                "amiFamily": one_of(*FAMILIES, "Custom"),
                "amiSelectorTerms": ListOf(_IMAGE, 1, _MOST_TERMS),
                "subnetSelectorTerms": ListOf(Record({"id": _id("subnet"), "tags": _TAGS}), 1, _MOST_TERMS),
                "securityGroupSelectorTerms": ListOf(
                    Record({"id": _id("sg"), "name": TEXT, "tags": _TAGS}), 1, _MOST_TERMS
                ),
                "role": FILLED,
                "instanceProfile": FILLED,
                "blockDeviceMappings": ListOf(
                    Record({"deviceName": TEXT, "ebs": _VOLUME, "rootVolume": BOOLEAN}), 0, _MOST_DEVICES
                ),
                "kubelet": _KUBELET,
                "metadataOptions": Record(
                    {
                        "httpEndpoint": _SWITCH,
                        "httpProtocolIPv6": _SWITCH,
                        "httpPutResponseHopLimit": whole(1, 64),
                        "httpTokens": one_of("required", "optional"),
                    }
                ),
                "instanceStorePolicy": one_of("RAID0"),
                **dict.fromkeys(("associatePublicIPAddress", "detailedMonitoring"), BOOLEAN),
                **dict.fromkeys(("context", "userData"), TEXT),
                "tags": TEXTS,
                **known("capacityReservationSelectorTerms connectionTracking cpuOptions ipPrefixCount"),
                **known("networkInterfaces placementGroupSelector"),
            },
            ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms"),
        ),
        "status": Record({}, is_open=True),
    },
    ("metadata", "spec"),
)


def check_ec2_node_class(raw: Object, report: Report) -> None:
    """The form, and where that is right the rules between fields."""
    EC2_NODE_CLASS.check(raw, (), report)
    if report.problems:
        return
    spec = raw["spec"]
    if (spec.get("role") is None) == (spec.get("instanceProfile") is None):
        both = "both" if spec.get("role") is not None else None
        report.problem(("spec", "role"), "one of role and instanceProfile", both)
    _check_images(spec, report)
    for name in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
        for index, term in enumerate(spec[name]):
            _check_term(term, ("id",), ("spec", name, index), report)
    roots = [device for device in spec.get("blockDeviceMappings") or () if device.get("rootVolume")]
    if len(roots) > 1:
        report.problem(("spec", "blockDeviceMappings"), "at most one rootVolume", len(roots))
    for index, device in enumerate(spec.get("blockDeviceMappings") or ()):
        volume = device.get("ebs")
        if volume is not None and not (volume.get("snapshotID") or volume.get("volumeSize")):
            report.problem(("spec", "blockDeviceMappings", index, "ebs"), "snapshotID or volumeSize", None)


def _check_images(spec: Object, report: Report) -> None:
    terms = spec["amiSelectorTerms"]
    for index, term in enumerate(terms):
        _check_term(term, ("id", "alias"), ("spec", "amiSelectorTerms", index), report)
    aliases = [term["alias"] for term in terms if term.get("alias")]
    if aliases and len(terms) > 1:
        report.problem(("spec", "amiSelectorTerms"), "an alias alone, or terms without one", len(terms))
    family = spec.get("amiFamily")
    if not aliases and family is None:
        report.problem(("spec", "amiFamily"), "a family beside images without an alias", None)
    if aliases and family not in (None, "Custom") and family.lower() != aliases[0].partition("@")[0]:
        report.problem(("spec", "amiFamily"), f"the family of the alias {aliases[0]}, or Custom", family)


def _check_term(term: Object, alone: tuple[str, ...], path: Path, report: Report) -> None:
    """A term selects by something, and identifiers stand by themselves; the CRD lets an SSM parameter stand beside."""
    given = [name for name, value in term.items() if value]
    if not set(given) - {"owner"}:
        report.problem(path, f"{', '.join(alone)}, tags or a name", None)
    for name in alone:
        beside = [other for other in given if other not in (name, "ssmParameter")]
        if name in given and beside:
            report.problem((*path, name), f"{name} alone", f"<beside {', '.join(beside)}>")
