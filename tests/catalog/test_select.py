"""Which catalogue a run uses."""

from pathlib import Path

import pytest

from kerf.catalog import is_known, known_types, load_market, provider_of, why_not_sold
from kerf.errors import InputError
from kerf.model.constraints import ANYTHING
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.nodepool import NodePool


def pool(group: str, name: str = "default") -> NodePool:
    """A pool whose NodeClass is of that API group."""
    return NodePool(name=name, node_class=NodeClassRef(group, "NodeClass", "default"), requirements=ANYTHING)


@pytest.mark.parametrize(
    "group, provider",
    [
        ("karpenter.k8s.aws", "aws"),
        ("karpenter.alibabacloud.com", "alibaba"),
        ("karpenter.k8s.alibabacloud", "alibaba"),
        ("karpenter.kwok.sh", "kwok"),
        ("example.com", "aws"),
    ],
)
def test_node_class_group_implies_the_provider(group: str, provider: str) -> None:
    """Both Karpenter providers of Alibaba Cloud mean its catalogue; an unknown group says nothing."""
    assert provider == provider_of([pool(group)])


@pytest.mark.parametrize(
    ("group", "expected"), [("karpenter.k8s.aws", True), ("eks.amazonaws.com", True), ("karpenter.azure.com", False)]
)
def test_a_pool_of_a_provider_without_a_catalogue_is_not_known(group: str, expected: bool) -> None:
    """It is planned all the same, and the plan says with what."""
    assert expected == is_known(pool(group))


def test_no_pool_means_aws() -> None:
    """Something has to be the default."""
    assert "aws" == provider_of([])


def test_pools_of_two_clouds_are_refused() -> None:
    """Their prices have different currencies."""
    with pytest.raises(InputError, match=r"NodePool b \(karpenter.k8s.alibabacloud\) is of alibaba and NodePool a "):
        provider_of([pool("karpenter.k8s.aws", "a"), pool("karpenter.k8s.alibabacloud", "b")])


@pytest.mark.parametrize(
    "spec, default, region, expected",
    [
        (None, "aws", None, ("aws", "us-east-1")),
        (None, "alibaba", "cn-beijing", ("alibaba", "cn-beijing")),
        ("aws:us-west-2", "alibaba", None, ("aws", "us-west-2")),
        ("aws", "kwok", "us-west-2", ("aws", "us-west-2")),
        ("alibaba", "aws", None, ("alibaba", "cn-shanghai")),
        ("kwok", "aws", None, ("kwok", "")),
    ],
)
def test_catalogue_text_picks_provider_and_region(
    spec: str | None, default: str, region: str | None, expected: tuple[str, str]
) -> None:
    """`--catalog` before the default, its region before `--region`, the provider's default region last."""
    market = load_market(spec, default, region)

    assert expected == (market.provider, market.region)


@pytest.mark.parametrize(
    "spec, region, message",
    [
        ("aws:us-east-1", "us-west-2", "--catalog aws:us-east-1 and --region us-west-2: expected one region, got two"),
        ("kwok:here", None, "region 'here': the kwok catalogue has no regions"),
        ("azure", None, "--catalog azure: expected aws[:REGION], alibaba[:REGION], kwok or a file that can be read"),
        ("rack.json", "us-east-1", "--region us-east-1: a catalogue file has no regions"),
    ],
)
def test_wrong_choice_says_what_was_expected(spec: str, region: str | None, message: str) -> None:
    """Every wrong `--catalog` or `--region` is the user's mistake, not a traceback."""
    with pytest.raises(InputError) as error:
        load_market(spec, "aws", region)

    assert str(error.value).startswith(message)


def test_file_is_read_from_its_path(tmp_path: Path) -> None:
    """Anything else than a provider's name is a path."""
    (tmp_path / "rack.json").write_text("[]", encoding="utf-8")

    assert () == load_market(str(tmp_path / "rack.json"), "aws").types


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are told as such."""
    (tmp_path / "rack.json").write_bytes(b"\xff\xfe")

    with pytest.raises(InputError, match="it is not UTF-8 text"):
        load_market(str(tmp_path / "rack.json"), "aws")


def test_known_types_include_those_that_are_not_sold() -> None:
    """So that a message can tell a misspelt type from one that is no longer sold."""
    assert "p3.2xlarge" in known_types("aws")
    assert "ecs.gn8is.2xlarge" in known_types("alibaba")
    assert "c-4x-amd64-linux" in known_types("kwok")


def test_why_not_sold_asks_the_right_catalogue() -> None:
    """KWOK sells all it knows."""
    assert "AWS does not sell p3.2xlarge in us-west-2" == why_not_sold("aws", "us-west-2", "p3.2xlarge")
    assert why_not_sold("alibaba", "cn-shanghai", "ecs.gn7i-c8g1.2xlarge") is None
    assert why_not_sold("kwok", "", "c-4x-amd64-linux") is None
