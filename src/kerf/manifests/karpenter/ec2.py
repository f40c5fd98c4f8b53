"""The form of Karpenter's AWS NodeClass, EC2NodeClass of `karpenter.k8s.aws/v1`: all its fields and rules.

The CRD is the one that `controlplane/definitions.json` locks; the control plane tier compares the fields.
A plan needs nothing of its spec: lint asks for this form, `kerf migrate` for what it writes, the AWS provider for what
it reads. The rules of `kubelet` are in `kubelet`, since later versions of the CRD leave them to the controller.
"""

import re
from collections.abc import Iterable
from typing import Any

from kerf.manifests.karpenter.kubelet import KUBELET, check_kubelet
from kerf.manifests.kinds import METADATA
from kerf.manifests.schema import (
    BOOLEAN,
    COUNT,
    FILLED,
    TEXT,
    WHOLE,
    ListOf,
    MapOf,
    Path,
    Record,
    Report,
    Scalar,
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
_MOST_TERMS, _MOST_DEVICES, _MOST_INTERFACES = 30, 50, 150
_RESERVATION = re.compile(r"cr-[0-9a-z]+", re.ASCII)
_PLACEMENT_GROUP = re.compile(r"pg-[0-9a-z]+", re.ASCII)
_ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)
RESTRICTED_TAGS = (
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
)
"""Keys of tags that the provider sets itself, beside all that begin with CLUSTER_TAG."""
CLUSTER_TAG = "kubernetes.io/cluster"
MOST_TAGS = 50
"""Of an instance; those of AWS itself do not count (EC2 user guide, "Tag your Amazon EC2 resources", 2026-11)."""
PROVIDERS_TAGS = (*RESTRICTED_TAGS, "Name", "kerf.dev/claim-uid", "kerf.dev/nodeclass-hash")
"""Keys that Kerf sets on each instance beside the one of the cluster; `Name` is a user's where one is given."""


def _id(prefix: str) -> Scalar:
    # As the CRD has it: somewhere in the text, so only the least is asked.
    form = re.compile(rf"{prefix}-[0-9a-z]+", re.ASCII)
    return Scalar(f"an id such as {prefix}-0123456789abcdef0", lambda v: isinstance(v, str) and bool(form.search(v)))


def _whole_text(form: re.Pattern[str], words: str) -> Scalar:
    return Scalar(words, lambda v: isinstance(v, str) and form.fullmatch(v) is not None)


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
_RESERVED = Record(
    {
        "id": _whole_text(_RESERVATION, "an id such as cr-0123456789abcdef0"),
        "instanceMatchCriteria": one_of("open", "targeted"),
        "ownerID": _whole_text(_ACCOUNT, "text of the twelve digits of an account"),
        "tags": _TAGS,
    }
)
_INTERFACE = Record(
    {"networkCardIndex": COUNT, "deviceIndex": COUNT, "interfaceType": one_of("interface", "efa-only")},
    ("networkCardIndex", "deviceIndex", "interfaceType"),
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
                "kubelet": KUBELET,
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
                "tags": MapOf(TEXT, FILLED),
                "capacityReservationSelectorTerms": ListOf(_RESERVED, 0, _MOST_TERMS),
                "connectionTracking": Record(
                    {
                        "tcpEstablishedTimeout": whole(60, 432_000),
                        "udpStreamTimeout": whole(60, 180),
                        "udpTimeout": whole(30, 60),
                    }
                ),
                "cpuOptions": Record({"nestedVirtualization": _SWITCH}),
                "ipPrefixCount": COUNT,
                "networkInterfaces": ListOf(_INTERFACE, 0, _MOST_INTERFACES),
                "placementGroupSelector": Record(
                    {"id": _whole_text(_PLACEMENT_GROUP, "an id such as pg-0123456789abcdef0"), "name": FILLED}
                ),
            },
            ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms"),
        ),
        "status": Record({}, is_open=True),
    },
    ("metadata", "spec"),
)


_ALONE = {
    "subnetSelectorTerms": ("id",),
    "securityGroupSelectorTerms": ("id", "name"),
    "capacityReservationSelectorTerms": ("id",),
}
"""Fields of a term that stand alone in it, by the list of terms."""


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
    for name, alone in _ALONE.items():
        _check_terms(spec.get(name) or [], alone, ("spec", name), report)
    _check_tags(spec, report)
    _check_devices(spec, report)
    _check_network(spec, report)
    check_kubelet(spec.get("kubelet") or {}, ("spec", "kubelet"), report)


def _check_tags(spec: Object, report: Report) -> None:
    tags = spec.get("tags") or {}
    for key in tags:
        if key in RESTRICTED_TAGS or key.startswith(CLUSTER_TAG):
            report.problem(("spec", "tags", key), "a tag that the provider does not set itself", key)
    added = 1 + len(set(PROVIDERS_TAGS) - set(tags))
    if len(tags) + added > MOST_TAGS:
        expected = f"at most {MOST_TAGS - added} tags: Kerf adds {added}, and EC2 takes {MOST_TAGS} of an instance"
        report.problem(("spec", "tags"), expected, len(tags))


def _check_devices(spec: Object, report: Report) -> None:
    devices = spec.get("blockDeviceMappings") or ()
    roots = [device for device in devices if device.get("rootVolume")]
    if len(roots) > 1:
        report.problem(("spec", "blockDeviceMappings"), "at most one rootVolume", len(roots))
    for index, device in enumerate(devices):
        volume, path = device.get("ebs"), ("spec", "blockDeviceMappings", index, "ebs")
        if volume is None:
            continue
        if not (volume.get("snapshotID") or volume.get("volumeSize")):
            report.problem(path, "snapshotID or volumeSize", None)
        if volume.get("volumeInitializationRate") is not None and not volume.get("snapshotID"):
            report.problem((*path, "snapshotID"), "a snapshot beside volumeInitializationRate", None)


def _check_network(spec: Object, report: Report) -> None:
    tracking, group = spec.get("connectionTracking"), spec.get("placementGroupSelector")
    if tracking is not None and not _given(tracking):
        expected = "one of tcpEstablishedTimeout, udpStreamTimeout, udpTimeout"
        report.problem(("spec", "connectionTracking"), expected, None)
    if group is not None and len(_given(group)) != 1:
        report.problem(("spec", "placementGroupSelector"), "one of name and id", "both" if _given(group) else None)
    _check_interfaces(spec.get("networkInterfaces") or (), report)


def _check_interfaces(interfaces: Iterable[Object], report: Report) -> None:
    """One primary interface, one interface a place, and one EFA device a card."""
    path, places, cards = ("spec", "networkInterfaces"), [], []
    for index, interface in enumerate(interfaces):
        place = interface["networkCardIndex"], interface["deviceIndex"]
        is_efa = interface["interfaceType"] == "efa-only"
        if place == (0, 0) and is_efa:
            report.problem((*path, index, "interfaceType"), "interface at card 0, device 0", "efa-only")
        if place in places:
            report.problem((*path, index), "one interface of a card and device", f"{place[0]}/{place[1]} again")
        if is_efa and place[0] in cards:
            report.problem((*path, index), "one efa-only interface of a card", f"card {place[0]} again")
        places.append(place)
        cards += [place[0]] if is_efa else []
    if places and (0, 0) not in places:
        report.problem(path, "an interface at card 0, device 0", None)


def _check_images(spec: Object, report: Report) -> None:
    terms = spec["amiSelectorTerms"]
    for index, term in enumerate(terms):
        _check_term(term, ("id", "alias"), ("spec", "amiSelectorTerms", index), report)
    aliases = [term["alias"] for term in terms if term.get("alias")]
    if aliases and len(terms) > 1:
        report.problem(("spec", "amiSelectorTerms"), "an alias alone, or terms without one", len(terms))
    if aliases and aliases[0].startswith("windows") and not aliases[0].endswith("@latest"):
        report.problem(("spec", "amiSelectorTerms", 0, "alias"), "version latest, for Windows", aliases[0])
    family = spec.get("amiFamily")
    if not aliases and family is None:
        report.problem(("spec", "amiFamily"), "a family beside images without an alias", None)
    if aliases and family not in (None, "Custom") and family.lower() != aliases[0].partition("@")[0]:
        report.problem(("spec", "amiFamily"), f"the family of the alias {aliases[0]}, or Custom", family)


def _check_terms(terms: list[Object], alone: tuple[str, ...], path: Path, report: Report) -> None:
    """The CRD refuses identifiers with company only where every term is so: a server can hold one of several."""
    found = [Report() for _ in terms]
    for index, term in enumerate(terms):
        _check_term(term, alone, (*path, index), found[index])
    wrong = [each for each in found if each.problems]
    if report.is_live and len(wrong) < len(terms):
        wrong = [each for term, each in zip(terms, found, strict=True) if not set(_given(term)) - {"owner", "ownerID"}]
    for each in wrong:
        report.problems += each.problems


def _given(record: Object) -> list[str]:
    return [name for name, value in record.items() if value]


def _check_term(term: Object, alone: tuple[str, ...], path: Path, report: Report) -> None:
    """A term selects by something, and identifiers stand by themselves; the CRD lets an SSM parameter stand beside."""
    given = _given(term)
    if not set(given) - {"owner", "ownerID"}:
        report.problem(path, f"{', '.join(alone)}, tags or a name", None)
    for name in alone:
        beside = [other for other in given if other not in (name, "ssmParameter")]
        if name in given and beside:
            report.problem((*path, name), f"{name} alone", f"<beside {', '.join(beside)}>")
