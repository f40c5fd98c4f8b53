"""What a machine makes of its user data, without Kerf's own code for it."""

import pytest

from tests.machineroom.documents import CA, CLUSTER, ENDPOINT, UNREGISTERED, mime, node_config
from tools.controlplane.machineroom.userdata import Joining, NeverJoins, read_user_data


def test_a_mime_message_joins_by_its_node_config() -> None:
    """Shell parts say nothing about the cluster; labels are a flag, taints a list."""
    text = mime("#!/bin/sh\necho hello\n", node_config("team=a,karpenter.sh/nodepool=gpu"))

    expected = Joining(
        CLUSTER, ENDPOINT, CA, {"team": "a", "karpenter.sh/nodepool": "gpu"}, (UNREGISTERED,), max_pods=58
    )
    assert expected == read_user_data(text, is_bottlerocket=False)


def test_a_later_node_config_goes_over_an_earlier_one() -> None:
    """Fields of mappings one by one; flags of both count."""
    first = node_config("team=b,own=1", name="other")
    first["spec"]["kubelet"]["config"]["maxPods"] = 10

    joining = read_user_data(mime(first, node_config()), is_bottlerocket=False)
    assert (CLUSTER, 58, {"team": "a", "own": "1"}) == (joining.cluster, joining.max_pods, joining.labels)


def test_bottlerocket_joins_by_its_settings() -> None:
    """TOML: a taint is a key with values `value:effect`."""
    text = f"""
[settings.kubernetes]
cluster-name = "{CLUSTER}"
api-server = "{ENDPOINT}"
cluster-certificate = "{CA}"
max-pods = 29
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "gpu"
[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
dedicated = ["a:NoSchedule"]
"""
    taints = (UNREGISTERED, {"key": "dedicated", "value": "a", "effect": "NoSchedule"})
    expected = Joining(CLUSTER, ENDPOINT, CA, {"karpenter.sh/nodepool": "gpu"}, taints, 29)
    assert expected == read_user_data(text, is_bottlerocket=True)


@pytest.mark.parametrize(
    "text, is_bottlerocket, why",
    [
        ("", False, "no mapping"),
        ("#!/bin/bash\n/etc/eks/bootstrap.sh prod\n", False, "no YAML|no mapping"),
        (mime("#!/bin/sh\n"), False, "no NodeConfig"),
        (mime(node_config()).replace("MIME-Version", "X", 1).replace("boundary", "border", 1), False, "malformed MIME"),
        ("MIME-Version: 1.0\n\nkind: NodeConfig", False, "malformed MIME"),
        (mime({**node_config(), "apiVersion": "node.eks.aws/v2"}), False, "expected node.eks.aws/v1alpha1"),
        (mime(node_config(name="")), False, "without cluster"),
        (mime(node_config("node-role.kubernetes.io/worker=")), False, "kubelet may not set"),
        (mime(node_config()), True, "no TOML"),
        ('[settings.kubernetes]\ncluster-name = "prod"\n', True, "without endpoint, ca"),
    ],
)
def test_user_data_that_is_wrong_never_joins(text: str, is_bottlerocket: bool, why: str) -> None:
    """Whatever is wrong with it: the reason is what the console of the machine would show."""
    with pytest.raises(NeverJoins, match=why):
        read_user_data(text, is_bottlerocket)
