"""EC2NodeClass on a real server: our definition is Karpenter's, and the decoder refuses what the server refuses."""

from typing import Any

import pytest

from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import (
    FOUND_CONDITIONS,
    GOOD,
    CapacityReservation,
    Image,
    Resolved,
    SecurityGroup,
    Subnet,
    conditions_of,
    status_of,
)
from kerf.errors import DecodeError
from kerf.kube.crds import crds
from kerf.model.constraints import ARCH, Requirement, Requirements
from tests.clouds.aws.nodeclass.objects import FULL, an_object
from tests.clouds.aws.nodeclass.test_decode import INTERFACE
from tests.controlplane.definitions import definitions
from tools.controlplane.server import Answer, ControlPlane

PATH = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NAME = "ec2nodeclasses.karpenter.k8s.aws"
TERMS = [{"id": "subnet-1", "tags": {"a": "b"}}, {"id": "subnet-2"}]

Object = dict[str, Any]


def ours() -> Object:
    """Our definition."""
    return next(each for each in crds("aws") if each["metadata"]["name"] == NAME)


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A server with our definition."""
    control_plane.install_crds([ours()])
    return control_plane


def posted(plane: ControlPlane, obj: Object) -> Answer:
    """The server's answer to a new object that is not kept."""
    return plane.request("POST", f"{PATH}?fieldValidation=Strict&dryRun=All", obj)


def bare(schema: Any) -> Any:
    """A schema without words, with what has no order sorted."""
    if isinstance(schema, dict):
        found = {
            key: bare(each) for key, each in schema.items() if not (key == "description" and isinstance(each, str))
        }
        return found | ({"required": sorted(found["required"])} if isinstance(found.get("required"), list) else {})
    return [bare(each) for each in schema] if isinstance(schema, list) else schema


def test_the_definition_is_karpenters_except_words() -> None:
    """Save that kubelet is open, as in the version after the locked one."""
    (locked,) = definitions("karpenter.k8s.aws_ec2nodeclasses")
    mine, theirs = (bare(each["spec"]["versions"][0]) for each in (ours(), locked))
    kubelet = mine["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["kubelet"]

    assert kubelet.pop("x-kubernetes-preserve-unknown-fields")
    assert theirs == mine
    assert locked["spec"]["names"] == ours()["spec"]["names"]


@pytest.mark.parametrize("spec", [{}, FULL, {"subnetSelectorTerms": TERMS}, {"kubelet": {"newField": 1}}])
def test_what_the_server_takes_is_decoded(plane: ControlPlane, spec: Object) -> None:
    """Every field, and an identifier with tags beside a right term."""
    answer = posted(plane, an_object(**spec))

    assert 201 == answer.status, answer.body
    assert isinstance(decode(answer.body), EC2NodeClass)


REFUSED: list[Object] = [
    {"role": None},
    {"role": ""},
    {"instanceProfile": "both"},
    {"amiSelectorTerms": []},
    {"amiSelectorTerms": [{"id": "ami-1"}]},
    {"amiSelectorTerms": [{"owner": "self"}], "amiFamily": "Custom"},
    {"amiSelectorTerms": [{"alias": "ubuntu@latest"}]},
    {"amiSelectorTerms": [{"alias": "windows2022@v1"}]},
    {"amiSelectorTerms": [{"alias": "al2023@latest", "id": "ami-1"}]},
    {"amiSelectorTerms": [{"alias": "al2023@latest"}, {"id": "ami-1"}]},
    {"amiFamily": "AL2"},
    {"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]},
    {"subnetSelectorTerms": [{"id": "subnet-1"}, {}]},
    {"subnetSelectorTerms": [{"id": f"subnet-{number}"} for number in range(31)]},
    {"securityGroupSelectorTerms": [{"name": "a", "tags": {"a": "b"}}]},
    {"securityGroupSelectorTerms": [{"tags": {str(number): "a" for number in range(21)}}]},
    {"subnetSelectorTerms": [{"tags": {"a": ""}}]},
    {"capacityReservationSelectorTerms": [{"ownerID": "1" * 12}]},
    {"capacityReservationSelectorTerms": [{"id": "ocr-1"}]},
    {"placementGroupSelector": {}},
    {"placementGroupSelector": {"id": "pg-1", "name": "a"}},
    {"tags": {"kubernetes.io/cluster/demo": "owned"}},
    {"tags": {"eks:eks-cluster-name": "demo"}},
    {"tags": {"": "a"}},
    {"connectionTracking": {}},
    {"connectionTracking": {"tcpEstablishedTimeout": 59}},
    {"cpuOptions": {"nestedVirtualization": "on"}},
    {"ipPrefixCount": -1},
    {"blockDeviceMappings": [{"ebs": {}}]},
    {"blockDeviceMappings": [{"rootVolume": True}, {"rootVolume": True}]},
    {"blockDeviceMappings": [{"ebs": {"volumeSize": "8Gi", "volumeInitializationRate": 100}}]},
    {"networkInterfaces": [{**INTERFACE, "deviceIndex": 1}]},
    {"networkInterfaces": [{**INTERFACE, "interfaceType": "efa-only"}]},
    {"networkInterfaces": [INTERFACE, INTERFACE]},
    {"networkInterfaces": [INTERFACE, *({**INTERFACE, "deviceIndex": n, "interfaceType": "efa-only"} for n in (1, 2))]},
    {"kubelet": {"evictionHard": {"memory": "1Gi"}}},
    {"kubelet": {"evictionHard": {"memory.available": "101%"}}},
    {"kubelet": {"kubeReserved": {"cpu": "-1"}}},
    {"kubelet": {"systemReserved": {"gpu": "1"}}},
    {"kubelet": {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80}},
    {"kubelet": {"evictionSoft": {"memory.available": "1Gi"}, "evictionSoftGracePeriod": {}}},
    {"kubelet": {"evictionSoftGracePeriod": {"memory.available": "1m"}, "evictionSoft": {}}},
    {"metadataOptions": {"httpPutResponseHopLimit": 65}},
    {"instanceStorePolicy": "RAID1"},
]


def test_the_decoder_refuses_what_the_server_refuses(plane: ControlPlane) -> None:
    """Each rule of the CRD. One test, since each is one request."""
    for spec in REFUSED:
        obj = an_object(**spec)

        assert 422 == posted(plane, obj).status, spec
        with pytest.raises(DecodeError):
            decode(obj)


def test_the_server_takes_our_status(plane: ControlPlane) -> None:
    """With every list filled, and keeps it as it is."""
    made = plane.request("POST", PATH, an_object("status"))
    requirements = Requirements([Requirement.of(ARCH, "In", ["amd64"]), Requirement.of("a", "DoesNotExist")])
    resolved = Resolved(
        (Subnet("subnet-1", "us-east-1a", "use1-az1", 10),),
        (SecurityGroup("sg-1", "nodes"),),
        (Image("ami-1", "al2023", requirements, is_deprecated=True),),
        (CapacityReservation("cr-1", "us-east-1a", "g6f.large", "1" * 12, end_s=1_800_000_000, remaining=3),),
        instance_profile="demo_1",
    )
    status = status_of(decode(made.body), resolved, conditions_of(dict.fromkeys(FOUND_CONDITIONS, GOOD), (), 1000))

    answer = plane.request("PUT", f"{PATH}/status/status?fieldValidation=Strict", {**made.body, "status": status})

    assert 200 == answer.status, answer.body
    assert status == answer.body["status"]
