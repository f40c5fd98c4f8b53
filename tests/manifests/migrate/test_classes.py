"""AWSNodeTemplate, the provider block and EC2NodeClass v1beta1."""

from typing import Any

import pytest

from kerf.manifests.migrate.node_class import FILL_IN
from kerf.manifests.migrate.objects import FieldOutcome
from kerf.manifests.migrate.selectors import terms_of
from tests.manifests.migrate.migrating import migrated, outcomes, row, spec_of, template, text_of

PROVIDER = """
    apiVersion: karpenter.sh/v1alpha5
    kind: Provisioner
    metadata: {name: gpu}
    spec:
      provider:
        apiVersion: extensions.karpenter.sh/v1alpha1
        kind: AWS
        subnetSelector: {karpenter.sh/discovery: my-cluster}
"""
BETA = """
    apiVersion: karpenter.k8s.aws/v1beta1
    kind: EC2NodeClass
    metadata: {name: default}
    spec: {subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}], role: r, amiFamily: AL2023
"""


@pytest.mark.parametrize(
    ("selector", "terms"),
    [
        ({"a": "b", "c": "d"}, [{"tags": {"a": "b", "c": "d"}}]),
        ({"a": "b, c"}, [{"tags": {"a": "b"}}, {"tags": {"a": "c"}}]),
        ({"a": "b,c", "d": "e,f"}, [{"tags": {"a": x, "d": y}} for x in "bc" for y in "ef"]),
        ({"a": ""}, [{"tags": {"a": "*"}}]),
        ({"aws-ids": "x-1, x-2"}, [{"id": "x-1"}, {"id": "x-2"}]),
        ({"aws::ids": "x-1"}, [{"id": "x-1"}]),
        ({"aws::name": "m,n", "aws::owners": "self"}, [{"name": "m", "owner": "self"}, {"name": "n", "owner": "self"}]),
        ({"a": "b", "aws::owners": "1,2"}, [{"tags": {"a": "b"}, "owner": owner} for owner in "12"]),
        ({f"k{n}": "a,b" for n in range(5)}, []),
        ({}, []),
    ],
)
def test_a_selector_becomes_the_terms_that_select_the_same(selector: dict[str, str], terms: list[Any]) -> None:
    """001-10: a comma means one of several; more than 30 terms the API does not take."""
    assert terms == terms_of(selector)[0]


def test_identifiers_select_alone() -> None:
    """What stood beside them is told."""
    made = migrated(template("{amiFamily: AL2023, subnetSelector: {aws-ids: subnet-1, a: b}}"))

    assert [FieldOutcome.CHANGED, FieldOutcome.NOT_KEPT] == outcomes(
        made, "spec.subnetSelector", "spec.subnetSelector.a"
    )


@pytest.mark.parametrize(
    ("lines", "family", "terms", "look"),
    [
        ("amiFamily: AL2023", None, [{"alias": "al2023@latest"}], False),
        ("amiFamily: Bottlerocket", None, [{"alias": "bottlerocket@latest"}], False),
        ("amiFamily: Windows2022", None, [{"alias": "windows2022@latest"}], False),
        ("amiFamily: AL2", None, [{"alias": "al2@latest"}], True),
        ("context: x", None, [{"alias": "al2@latest"}], True),
        ("amiFamily: Ubuntu", "AL2", [{"name": FILL_IN}], True),
        ("amiFamily: Custom\namiSelector: {aws-ids: ami-1}", "Custom", [{"id": "ami-1"}], True),
        ("amiFamily: AL2023\namiSelector: {aws::name: x}", "AL2023", [{"name": "x"}], False),
        ("amiSelector: {a: b}", "AL2", [{"tags": {"a": "b"}}], False),
        ("amiFamily: Gentoo\namiSelector: {a: b}", "Custom", [{"tags": {"a": "b"}}], True),
    ],
)
def test_images(lines: str, family: str | None, terms: list[Any], look: bool) -> None:
    """The newest of the family was the default, which an alias says; who chose others names the family too."""
    text = template(lines + "\ninstanceProfile: p\nsubnetSelector: {a: b}\nsecurityGroupSelector: {a: b}")

    assert (family, terms) == (spec_of(text).get("amiFamily"), spec_of(text)["amiSelectorTerms"])
    assert look is migrated(text).needs_look


def test_what_today_requires_and_is_not_given_is_marked() -> None:
    """Valid for the API, and impossible to overlook."""
    made, text = migrated(template("amiFamily: AL2023")), text_of(template("amiFamily: AL2023"))
    blank = ["spec.role", "spec.subnetSelectorTerms", "spec.securityGroupSelectorTerms"]

    assert [FieldOutcome.PLACEHOLDER] * 3 == outcomes(made, *blank)
    assert f"  role: {FILL_IN}  # fill in: the IAM role of the nodes\n" in text
    assert 3 == text.count(FILL_IN) == text.count("# fill in: ")


def test_the_provider_block_becomes_a_class_of_the_pools_name() -> None:
    """001-9, 001-10."""
    made = migrated(PROVIDER)
    pool, node_class = (new.value for new in made.objects)

    assert "gpu" == pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] == node_class["metadata"]["name"]
    assert [{"tags": {"karpenter.sh/discovery": "my-cluster"}}] == node_class["spec"]["subnetSelectorTerms"]
    assert "my-cluster" in row(made, "spec.securityGroupSelectorTerms").hint


def test_a_class_of_that_name_is_not_taken_for_it() -> None:
    """The block gets another name then."""
    made = migrated(PROVIDER, template("amiFamily: AL2023").replace("default", "gpu"))

    assert ["NodePool gpu", "EC2NodeClass gpu-provider", "EC2NodeClass gpu"] == [new.title for new in made.objects]


def test_a_reference_wins_over_a_block() -> None:
    """v1alpha5 took only one of the two."""
    made = migrated(PROVIDER + "      providerRef: {name: x}")

    assert ["NodePool gpu"] == [new.title for new in made.objects]
    assert FieldOutcome.NOT_KEPT == row(made, "spec.provider.subnetSelector").outcome


def test_a_provisioner_without_either_gets_a_class_to_fill_in() -> None:
    """The first versions found everything out by the cluster's name."""
    made = migrated("apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {}")

    assert ["NodePool p", "EC2NodeClass p"] == [new.title for new in made.objects]
    assert 4 == made.count(FieldOutcome.PLACEHOLDER)


def test_machines_are_described_as_before() -> None:
    """Disks, user data, tags and the rest; sizes as today's API takes them."""
    spec = spec_of(
        template("""
            amiFamily: AL2023
            blockDeviceMappings:
              - {deviceName: /dev/xvda, ebs: {volumeSize: 100Gi, volumeType: gp3, encrypted: true}}
              - {deviceName: /dev/xvdb, ebs: {volumeSize: 100000Mi}}
              - {deviceName: /dev/xvdc, ebs: {volumeSize: 107374182400}}
            userData: |
              #!/bin/sh
              true
            tags: {team: a, kubernetes.io/cluster/x: owned}
            detailedMonitoring: true
            associatePublicIPAddress: false
            context: c
        """)
    )

    assert ["100Gi", "98Gi", "100Gi"] == [device["ebs"]["volumeSize"] for device in spec["blockDeviceMappings"]]
    assert {"volumeSize": "100Gi", "volumeType": "gp3", "encrypted": True} == spec["blockDeviceMappings"][0]["ebs"]
    assert "#!/bin/sh\ntrue\n" == spec["userData"]
    assert {"team": "a"} == spec["tags"]
    assert (True, False, "c") == (spec["detailedMonitoring"], spec["associatePublicIPAddress"], spec["context"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (template("amiFamily: AL2023"), {"httpTokens": "required", "httpPutResponseHopLimit": 2}),
        (
            template("metadataOptions: {httpPutResponseHopLimit: 3}"),
            {"httpTokens": "optional", "httpPutResponseHopLimit": 3},
        ),
        (BETA + "}", {"httpTokens": "required", "httpPutResponseHopLimit": 2}),
        (BETA + ", metadataOptions: {httpTokens: optional}}", {"httpTokens": "optional", "httpPutResponseHopLimit": 2}),
        (BETA + ", metadataOptions: {httpPutResponseHopLimit: 1}}", {"httpPutResponseHopLimit": 1}),
    ],
)
def test_the_metadata_service_stays_as_reachable_as_it_was(text: str, expected: dict[str, Any]) -> None:
    """Today's default lets no container reach it."""
    options = spec_of(text)["metadataOptions"]

    assert expected == {name: options.get(name) for name in expected}


def test_a_beta_class_keeps_what_it_says() -> None:
    """Only images and the metadata service had other defaults."""
    made = migrated(BETA + ", instanceStorePolicy: RAID0}")

    assert not made.needs_look
    assert {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "r",
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "instanceStorePolicy": "RAID0",
    } == {name: value for name, value in made.objects[0].value["spec"].items() if name != "metadataOptions"}


def test_a_launch_template_cannot_be_kept() -> None:
    """The fields that say the same are named."""
    found = row(migrated(template("launchTemplate: mine")), "spec.launchTemplate")

    assert (FieldOutcome.NOT_KEPT, True) == (found.outcome, found.needs_look)
    assert "userData" in found.hint


def test_the_kubelet_is_asked_only_what_today_takes() -> None:
    """Other signals and resources are refused by the API."""
    made = migrated(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\n"
        "spec: {kubeletConfiguration: {containerRuntime: dockerd, evictionHard: {memory.available: 5%, x: 1Gi},\n"
        "  systemReserved: {cpu: 0.5, gpu: 1}, clusterDNS: [10.0.0.1]}}"
    )

    assert {
        "clusterDNS": ["10.0.0.1"],
        "evictionHard": {"memory.available": "5%"},
        "systemReserved": {"cpu": "0.5"},
    } == made.objects[1].value["spec"]["kubelet"]
    at = "spec.kubeletConfiguration"
    assert [FieldOutcome.NOT_KEPT] * 3 == outcomes(
        made, f"{at}.containerRuntime", f"{at}.evictionHard.x", f"{at}.systemReserved.gpu"
    )
