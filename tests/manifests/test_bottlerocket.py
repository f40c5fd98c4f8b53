"""How a Bottlerocket image shares GPUs, as the user data of an EC2NodeClass says; nothing else of it is kept."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.manifests.clusterdump.encode import dumped
from kerf.manifests.karpenter.bottlerocket import image_sharing, kept_user_data
from kerf.model.evidence import ImageSharing

SECRET = "t0ken"
HEAD = "[settings.kubelet-device-plugins.nvidia]\n"


def node_class(user_data: object, **spec: object) -> dict[str, Any]:
    """An EC2NodeClass with Bottlerocket's images, unless it has others."""
    stated = {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "userData": user_data, **spec}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "c"}, "spec": stated}


def settings(strategy: str, section: str = "", **values: object) -> str:
    """User data with a strategy and one section."""
    lines = [f"{key.replace('_', '-')} = {str(value).lower()}" for key, value in values.items()]
    table = f"[settings.kubelet-device-plugins.nvidia.{section}]\n" if section else ""
    return f'{HEAD}device-sharing-strategy = "{strategy}"\n{table}' + "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (settings("time-slicing"), ImageSharing("time-slicing", 2, renames=True, fails_above_one=True)),
        (
            settings("time-slicing", "time-slicing", replicas=10, rename_by_default=False),
            ImageSharing("time-slicing", 10, renames=False, fails_above_one=True),
        ),
        (
            settings("time-slicing", "time-slicing", fail_requests_greater_than_one=False),
            ImageSharing("time-slicing", 2, renames=True, fails_above_one=False),
        ),
        (settings("mps"), ImageSharing("mps", 2, renames=True, fails_above_one=True)),
        (
            settings("mps", "mps", replicas=4, rename_by_default=False),
            ImageSharing("mps", 4, renames=False, fails_above_one=True),
        ),
        (settings("none"), ImageSharing()),
        (settings("none", "time-slicing", replicas=4), ImageSharing(idle=("time-slicing",))),
        (settings("mps", "time-slicing", replicas=4), ImageSharing("mps", 2, True, True, idle=("time-slicing",))),
        (HEAD + 'device-partitioning-strategy = "mig"', ImageSharing(cuts=True)),
        (
            HEAD + '[settings.kubelet-device-plugins.nvidia.mig.profile]\n"a100.40gb" = "1g.5gb"',
            ImageSharing(idle=("mig",)),
        ),
        (HEAD + 'device-list-strategy = "cdi-cri"', None),
        ("[settings.kubernetes]\nmax-pods = 20\n# kubelet-device-plugins", None),
        ("", None),
    ],
)
def test_settings_are_read_with_bottlerockets_own_defaults(text: str, expected: ImageSharing | None) -> None:
    """Cards are shown twice and renamed where nothing else is said, and a section alone does nothing."""
    assert expected == image_sharing(node_class(text))
    assert expected == image_sharing(node_class(text.replace("\n", "\r\n"), amiFamily="Bottlerocket"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "[", "expected TOML"),
        (settings("timeslicing"), "device-sharing-strategy: expected none, time-slicing or mps, got 'timeslicing'"),
        (settings("mps", "mps", replicas=1), "mps.replicas: expected a whole number from 2, got 1"),
        (settings("mps", "time-slicing", replicas='"4"'), "time-slicing.replicas: expected a whole number from 2"),
        (settings("mps", "mps", rename_by_default='"yes"'), "mps.rename-by-default: expected true or false"),
        (
            settings("mps") + '\ndevice-partitioning-strategy = "mig"',
            "device-partitioning-strategy: expected none beside",
        ),
        ("settings.kubelet-device-plugins = 3", "kubelet-device-plugins: expected a table, got 3"),
        (HEAD + "a = " + "[" * 5000 + "]" * 5000, "expected TOML"),
        (HEAD + "#" * 70_000, "expected at most 65536 characters"),
    ],
)
def test_settings_that_bottlerocket_refuses_are_said(text: str, words: str) -> None:
    """The node would not start; a dump of them is refused as well."""
    raw = node_class(text)
    found, kept = image_sharing(raw), dumped(raw)[0]

    assert found is not None
    assert words in found.problem
    assert kept is not None
    again = image_sharing(kept)
    assert again is not None
    assert again.problem


@pytest.mark.parametrize(
    "spec",
    [
        {"amiSelectorTerms": [{"alias": "al2023@latest"}]},
        {"amiSelectorTerms": [{"id": "ami-0"}], "amiFamily": "AL2023"},
        {"amiSelectorTerms": None},
        {"amiSelectorTerms": "x"},
        {"userData": 3},
        {"userData": None},
    ],
)
def test_user_data_of_other_images_says_nothing(spec: dict[str, object]) -> None:
    """Whatever stands there, and whatever form it has."""
    raw = node_class(settings("time-slicing"), **spec)

    assert image_sharing(raw) is None
    assert "" == kept_user_data(raw)


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "device-sharing-strategy": st.sampled_from(["none", "time-slicing", "mps", SECRET]),
        "device-partitioning-strategy": st.sampled_from(["none", "mig"]),
        "time-slicing": st.dictionaries(
            st.sampled_from(["replicas", "rename-by-default", "fail-requests-greater-than-one", "other"]),
            st.sampled_from([True, False, 1, 2, 7, SECRET]),
        ),
        "mps": st.dictionaries(st.sampled_from(["replicas", "rename-by-default"]), st.sampled_from([True, 3, SECRET])),
        "mig": st.just({"profile": {"a100.40gb": "1g.5gb"}}),
        "other": st.just(SECRET),
    },
)


def toml(table: dict[str, Any], path: str) -> str:
    """A table as TOML."""
    plain = "".join(
        f'"{key}" = {str(value).lower() if not isinstance(value, str) else repr(value)}\n'
        for key, value in table.items()
        if not isinstance(value, dict)
    )
    inner = "".join(toml(value, f'{path}."{key}"') for key, value in table.items() if isinstance(value, dict))
    return f"[{path}]\n{plain}{inner}"


@pytest.mark.parametrize("is_full", [False, True])
@given(nvidia=VALUES)
def test_a_dump_has_these_settings_and_no_other_word_of_user_data(nvidia: dict[str, Any], is_full: bool) -> None:
    """They are read from it as from the cluster, but for what a refused value was."""
    secrets = f'[settings.host-containers.admin]\nuser-data = "{SECRET}"\n'
    raw = node_class(secrets + toml(nvidia, "settings.kubelet-device-plugins.nvidia"), amiFamily="Bottlerocket")
    kept, _ = dumped(raw, is_full=is_full)
    before, after = image_sharing(raw), image_sharing(kept or {})

    assert SECRET not in str(kept)
    assert before == after or (before is not None and after is not None and bool(before.problem and after.problem))
    assert tomllib.loads((kept or {})["spec"]["userData"])["settings"]["kubelet-device-plugins"]["nvidia"].keys() <= {
        "device-sharing-strategy",
        "device-partitioning-strategy",
        "time-slicing",
        "mps",
        "mig",
    }
