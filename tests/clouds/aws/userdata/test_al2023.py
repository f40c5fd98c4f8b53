"""User data of AL2023, read back by the standard library: the NodeConfig, and the user's parts before it."""

from email import message_from_string
from email.message import Message
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kerf.clouds.aws.nodeclass.model import AL2023
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import NodeFacts
from kerf.clouds.aws.userdata.mime import archive, parts_of
from kerf.clouds.aws.userdata.render import render
from tests.clouds.aws.userdata.nodes import CLUSTER, KUBELET, a_node

OWN_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 5}}}\n"
ARCHIVE = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"
Content-Transfer-Encoding: base64

ZWNobyBoaQ==
--BOUNDARY
Content-Type: application/node.eks.aws

spec: {}
--BOUNDARY--
"""


def parts(text: str) -> list[Message]:
    """The parts of an archive."""
    payload = message_from_string(text).get_payload()
    assert isinstance(payload, list)
    return [each for each in payload if isinstance(each, Message)]


def node_config(facts: NodeFacts) -> Any:
    """The last part, which must be ours."""
    last = parts(render(AL2023, facts))[-1]
    assert "application/node.eks.aws" == last.get_content_type()
    return yaml.safe_load(str(last.get_payload()))


def test_the_node_config_has_all_that_joining_takes() -> None:
    """Cluster, kubelet with taints, labels as a flag, and the local disks."""
    assert {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": "demo",
                "apiServerEndpoint": "https://ABC.eks.amazonaws.com",
                "certificateAuthority": "Q0E=",
                "cidr": "10.100.0.0/16",
            },
            "kubelet": {
                "config": {
                    "clusterDNS": ["10.100.0.10"],
                    "maxPods": 58,
                    "podsPerCore": 4,
                    "systemReserved": {"cpu": "100m"},
                    "kubeReserved": {"memory": "893Mi"},
                    "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
                    "evictionSoft": {"memory.available": "1Gi"},
                    "evictionSoftGracePeriod": {"memory.available": "2m"},
                    "evictionMaxPodGracePeriod": 60,
                    "imageGCHighThresholdPercent": 85,
                    "imageGCLowThresholdPercent": 80,
                    "cpuCFSQuota": False,
                    "topologyManagerPolicy": "single-numa-node",
                    "registerWithTaints": [
                        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
                        {"key": "team", "effect": "NoExecute"},
                        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
                    ],
                },
                "flags": ['--node-labels="karpenter.sh/nodepool=gpu,team=ml"'],
            },
            "instance": {"localStorage": {"strategy": "RAID0"}},
        },
    } == node_config(a_node())


def test_what_is_not_said_is_not_there() -> None:
    """nodeadm has its own defaults."""
    got = node_config(NodeFacts(CLUSTER))["spec"]

    assert {"registerWithTaints": []} == got["kubelet"]["config"]
    assert ({"config"}, {"cluster", "kubelet"}) == (got["kubelet"].keys(), got.keys())


@pytest.mark.parametrize(
    ("custom", "kind"),
    [
        (OWN_CONFIG, "application/node.eks.aws"),
        (f"# ours\n{OWN_CONFIG}", "application/node.eks.aws"),
        ("#!/bin/bash\necho hi", "text/x-shellscript"),
        ("#!/bin/bash\ncurl -H 'X-A: b' http://x\n", "text/x-shellscript"),
        ("\n#!/bin/bash\necho status: ok\n", "text/x-shellscript"),
        ('#!/bin/bash\necho "status: ok"\n', "text/x-shellscript"),
        ("#!/usr/bin/env python3\nwait: int = 3\n", "text/x-shellscript"),
        ("#cloud-config\npackages: [jq]\n", "text/cloud-config"),
        ("", None),
    ],
)
def test_a_text_is_what_its_first_line_says_or_a_node_config(custom: str, kind: str | None) -> None:
    """Else a mapping in YAML is a NodeConfig; it stands before ours, which wins."""
    got = parts(render(AL2023, a_node(custom=custom)))

    assert ([kind] if kind else []) == [each.get_content_type() for each in got[:-1]]
    assert ([custom] if kind else []) == [each.get_payload() for each in got[:-1]]


def test_parts_of_the_user_arrive_as_they_are() -> None:
    """With their encoding, without which a script in base64 would run as text."""
    script, config, _ = parts(render(AL2023, a_node(custom=ARCHIVE.replace("\n", "\r\n"))))

    assert ("ZWNobyBoaQ==", "base64") == (script.get_payload(), script["Content-Transfer-Encoding"])
    assert b"echo hi" == script.get_payload(decode=True)
    assert "spec: {}" == config.get_payload()


def test_archives_inside_archives_arrive() -> None:
    """cloud-init reads them."""
    outer = f'Content-Type: multipart/mixed; boundary="OUTER"\n\n--OUTER\n{ARCHIVE}\n--OUTER--\n'

    inner, _ = parts(render(AL2023, a_node(custom=outer)))

    assert ["ZWNobyBoaQ==", "spec: {}"] == [str(each.get_payload()) for each in inner.walk() if not each.is_multipart()]


def test_a_script_may_have_lines_like_our_boundary() -> None:
    """The boundary gives way."""
    script = "#!/bin/bash\n--//\necho hi\n--///--"

    assert script == parts(render(AL2023, a_node(custom=script)))[0].get_payload()


@pytest.mark.parametrize(
    "custom",
    [
        "MIME-Version: 1.0\n\nplain",
        'Content-Type: multipart/mixed; boundary="A"\n\nno boundary comes',
        "a: " + "[" * 5000,
        "[" * 65 + "]" * 65,
        "- " * 5000,
    ],
)
def test_what_cannot_be_read_is_refused(custom: str) -> None:
    """With a reason, before anything is launched."""
    with pytest.raises(Unusable, match=r"spec.userData") as raised:
        render(AL2023, a_node(custom=custom))

    assert "UserDataInvalid" == raised.value.reason


def test_brackets_within_brackets_are_read_up_to_a_depth() -> None:
    """Sixty-four: eight thousand would hold up the loop for a second at each look before they are refused."""
    deep = f"a: {'[' * 64}{']' * 64}"

    assert deep == parts(render(AL2023, a_node(custom=deep)))[0].get_payload()


def test_a_text_of_merge_keys_costs_no_more_than_another() -> None:
    """Constructed, each line would cost nine times the one before it: the loop would stand, and the lease be lost."""
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 60)]
    config, _ = parts(render(AL2023, a_node(custom="\n".join(lines))))

    assert "application/node.eks.aws" == config.get_content_type()


def test_without_the_cidr_of_the_services_nothing_is_launched() -> None:
    """nodeadm needs it, so the node would not join."""
    with pytest.raises(Unusable, match="eks:DescribeCluster"):
        render(AL2023, NodeFacts(CLUSTER.__class__("demo", "https://x")))


def test_the_same_facts_give_the_same_bytes() -> None:
    """The name of a launch template is a digest of them."""
    turned = a_node(labels={"team": "ml", "karpenter.sh/nodepool": "gpu"}, kubelet=KUBELET)

    assert render(AL2023, a_node()) == render(AL2023, turned)


TEXTS = st.text(st.characters(codec="ascii", exclude_characters="\r"), max_size=60)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_parts_come_back_from_an_archive(texts: list[str]) -> None:
    """Whatever their lines are."""
    made = parts_of(archive(tuple(parts_of(ARCHIVE)[0].of("text/plain", text) for text in texts)))

    assert texts == [part.text for part in made]
