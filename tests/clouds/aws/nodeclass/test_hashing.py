"""The digest of an EC2NodeClass: what makes other nodes changes it, and nothing else does."""

from typing import Any

import pytest

from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.hashing import HASH_VERSION, digest
from tests.clouds.aws.nodeclass.objects import FULL, an_object

CHANGES: dict[str, Any] = {
    "userData": "other",
    "instanceProfile": "other",
    "tags": {"team": "web"},
    "kubelet": {"maxPods": 21},
    "blockDeviceMappings": [],
    "instanceStorePolicy": None,
    "networkInterfaces": [],
    "metadataOptions": {},
    "connectionTracking": None,
    "cpuOptions": {"nestedVirtualization": "disabled"},
    "associatePublicIPAddress": None,
    "detailedMonitoring": False,
    "context": None,
    "amiFamily": "Custom",
}
SELECTIONS: dict[str, Any] = {
    "amiSelectorTerms": [{"id": "ami-2"}],
    "subnetSelectorTerms": [{"id": "subnet-2"}],
    "securityGroupSelectorTerms": [{"id": "sg-2"}],
    "capacityReservationSelectorTerms": None,
    "placementGroupSelector": {"id": "pg-1"},
    "ipPrefixCount": 5,
}


def of(**spec: Any) -> str:
    """The digest of the object of every field, with some changed."""
    return digest(decode(an_object(**{**FULL, **spec})))


def test_each_field_that_shapes_a_node_changes_the_digest() -> None:
    """And no two of these changes give the same."""
    found = {name: of(**{name: value}) for name, value in CHANGES.items()}

    assert len({of(), *found.values()}) == len(CHANGES) + 1


@pytest.mark.parametrize("name", list(SELECTIONS))
def test_what_is_selected_drifts_by_itself(name: str) -> None:
    """Another term that selects the same subnets replaces no node."""
    assert of() == of(**{name: SELECTIONS[name]})


def test_every_field_of_the_spec_either_counts_or_is_selected() -> None:
    """Role stands for instanceProfile in the object of every field."""
    assert set(FULL) - {"role"} == CHANGES.keys() | SELECTIONS.keys()


def test_an_alias_counts_as_its_family() -> None:
    """`amiFamily: AL2023` beside `al2023@latest` says nothing new."""
    assert digest(decode(an_object())) == digest(decode(an_object(amiFamily="AL2023")))


def test_neither_order_nor_defaults_count() -> None:
    """Nor a size that comes to the same GiB."""
    devices = [{"deviceName": name, "ebs": {"volumeSize": "100Gi"}} for name in ("a", "b")]
    other = [{"deviceName": name, "ebs": {"volumeSize": "107G"}} for name in ("b", "a")]
    plain = an_object(blockDeviceMappings=devices)
    said = an_object(blockDeviceMappings=other, detailedMonitoring=False, metadataOptions={"httpTokens": "required"})

    assert digest(decode(plain)) == digest(decode(said))


def test_the_authority_of_the_cluster_counts() -> None:
    """Nodes with the old one cannot join."""
    node_class = decode(an_object())

    assert digest(node_class, "old") != digest(node_class, "new")


def test_the_digest_of_a_version_stays() -> None:
    """Another digest of the same object replaces every node, so it needs another version word."""
    assert ("kerf-v1", "34094fc144d12fa6") == (HASH_VERSION, of())
