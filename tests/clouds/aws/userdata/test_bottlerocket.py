"""User data of Bottlerocket, read back by the standard library: ours over the user's, which stays otherwise."""

import tomllib
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.clouds.aws.nodeclass.model import BOTTLEROCKET
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.bottlerocket import image_version
from kerf.clouds.aws.userdata.facts import NodeFacts
from kerf.clouds.aws.userdata.render import render
from kerf.clouds.aws.userdata.toml import toml_text
from tests.clouds.aws.userdata.nodes import CLUSTER, a_node

CUSTOM = """\
[settings.kubernetes]
cluster-name = "wrong"
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kubernetes.node-labels]
team = "web"
mine = "yes"
[settings.kubernetes.node-taints]
mine = ["a:NoSchedule"]
[settings.host-containers.admin]
enabled = true
"""


def settings(facts: NodeFacts) -> Any:
    """The settings that an instance would read."""
    return tomllib.loads(render(BOTTLEROCKET, facts))["settings"]


def test_the_settings_have_all_that_joining_takes() -> None:
    """Percentages of image garbage collection are text there."""
    assert {
        "cluster-name": "demo",
        "api-server": "https://ABC.eks.amazonaws.com",
        "cluster-certificate": "Q0E=",
        "cluster-dns-ip": "10.100.0.10",
        "max-pods": 58,
        "system-reserved": {"cpu": "100m"},
        "kube-reserved": {"memory": "893Mi"},
        "eviction-hard": {"memory.available": "5%", "nodefs.available": "10%"},
        "eviction-soft": {"memory.available": "1Gi"},
        "eviction-soft-grace-period": {"memory.available": "2m"},
        "eviction-max-pod-grace-period": 60,
        "image-gc-high-threshold-percent": "85",
        "image-gc-low-threshold-percent": "80",
        "cpu-cfs-quota-enforced": False,
        "node-labels": {"karpenter.sh/nodepool": "gpu", "team": "ml"},
        "node-taints": {
            "nvidia.com/gpu": ["true:NoSchedule"],
            "team": [":NoExecute"],
            "karpenter.sh/unregistered": [":NoExecute"],
        },
    } == settings(a_node())["kubernetes"]


def test_the_users_settings_stay_except_ours() -> None:
    """Labels are merged; taints are the claim's alone, as in Karpenter."""
    got = settings(a_node(custom=CUSTOM))

    assert {"admin": {"enabled": True}} == got["host-containers"]
    assert "demo" == got["kubernetes"]["cluster-name"]
    assert ["net.core.somaxconn"] == got["kubernetes"]["allowed-unsafe-sysctls"]
    assert {"team": "ml", "mine": "yes", "karpenter.sh/nodepool": "gpu"} == got["kubernetes"]["node-labels"]
    assert "mine" not in got["kubernetes"]["node-taints"]


@pytest.mark.parametrize(
    ("version", "directories"),
    [("latest", False), ("v1.46.0", False), ("1.50.2", False), ("2.0.0", False), ("v1.45.0", True), ("", True)],
)
def test_local_disks_are_mounted_by_a_command(version: str, directories: bool) -> None:
    """From 1.46 on it knows the directories itself."""
    got = settings(a_node(image_version=version))["bootstrap-commands"]["000-mount-instance-storage"]

    assert ("always", True) == (got["mode"], got["essential"])
    assert ["apiclient", "ephemeral-storage", "init"] == got["commands"][0]
    dirs = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"] if directories else []
    assert ["apiclient", "ephemeral-storage", "bind", *dirs] == got["commands"][1]


def test_without_the_policy_there_is_no_command() -> None:
    """Local disks are left alone."""
    assert {"kubernetes"} == settings(NodeFacts(CLUSTER)).keys()


@pytest.mark.parametrize(
    ("alias", "name", "version"),
    [
        ("v1.40.0", "", "v1.40.0"),
        ("", "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a", "v1.46.0"),
        ("", "my-image", ""),
    ],
)
def test_the_version_is_that_of_the_alias_or_in_the_name(alias: str, name: str, version: str) -> None:
    """Images of a user's own have none."""
    assert version == image_version(alias, name)


@pytest.mark.parametrize(
    "custom", ["a = ", "settings = 3", "[settings]\nkubernetes = []", "a = " + "[" * 40 + "]" * 40]
)
def test_what_cannot_be_read_is_refused(custom: str) -> None:
    """A text that is no TOML, a value where a table is needed, and what is nested too deep."""
    with pytest.raises(Unusable, match=r"spec.userData"):
        render(BOTTLEROCKET, a_node(custom=custom))


SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.dates(min_value=date(1000, 1, 1))
    | st.times()
    | st.datetimes(min_value=datetime(1000, 1, 1))  # noqa: DTZ001  TOML has local instants
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), VALUES, max_size=4))
def test_what_is_written_is_read_again(document: dict[str, Any]) -> None:
    """Any keys and values that TOML has, in any nesting."""
    assert document == tomllib.loads(toml_text(document))


def test_every_kind_of_value_is_written() -> None:
    """In the order in which it came; a table inside a list stands in its line."""
    document = {"b": 1, "a": [{"x": time(7, 30)}, {}], "t": {"empty": {}, "n": {"d": date(2026, 11, 25)}}, "f": 1e30}

    assert "b = 1\na = [{x = 07:30:00}, {}]\nf = 1e+30\n\n[t.empty]\n\n[t.n]\nd = 2026-11-25\n" == toml_text(document)
