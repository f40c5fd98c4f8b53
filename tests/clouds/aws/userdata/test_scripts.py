"""User data that is a script: AL2, Windows, and a user's own; and what EC2 takes at most."""

import shlex
from email import message_from_string
from typing import Any

import pytest

from kerf.clouds.aws.nodeclass.model import (
    AL2,
    AL2023,
    CUSTOM,
    FAMILIES,
    WINDOWS_2022,
    KubeletConfiguration,
)
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import NodeFacts, node_kubelet, node_labels, node_taints
from kerf.clouds.aws.userdata.render import MOST_BYTES, render
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import UNREGISTERED_TAINT
from tests.clouds.aws.userdata.nodes import CLUSTER, a_node

FLAGS = [
    "--node-labels=karpenter.sh/nodepool=gpu,team=ml",
    "--register-with-taints=nvidia.com/gpu=true:NoSchedule,team:NoExecute,karpenter.sh/unregistered:NoExecute",
    "--system-reserved=cpu=100m",
    "--kube-reserved=memory=893Mi",
    "--eviction-hard=memory.available<5%,nodefs.available<10%",
    "--eviction-soft=memory.available<1Gi",
    "--eviction-soft-grace-period=memory.available=2m",
    "--max-pods=58",
    "--pods-per-core=4",
    "--eviction-max-pod-grace-period=60",
    "--image-gc-high-threshold=85",
    "--image-gc-low-threshold=80",
    "--cpu-cfs-quota=false",
]


def bootstrap(facts: NodeFacts) -> list[str]:
    """The words of the call of AL2's script, as a shell reads them."""
    message = message_from_string(render(AL2, facts))
    payload: Any = message.get_payload()
    script = str(payload[-1].get_payload())
    return shlex.split(script[script.index("/etc/eks") :].replace("\\\n", " "))


def test_al2_calls_the_script_of_the_image() -> None:
    """`bootstrap.sh` takes its arguments without equal signs; kubelet's flags are one of them."""
    words = bootstrap(a_node())

    at = words.index("--kubelet-extra-args")
    assert ["/etc/eks/bootstrap.sh", "demo", "--apiserver-endpoint", "https://ABC.eks.amazonaws.com"] == words[:4]
    assert ["--b64-cluster-ca", "Q0E=", "--dns-cluster-ip", "10.100.0.10", "--use-max-pods", "false"] == words[4:at]
    assert FLAGS == shlex.split(words[at + 1])
    assert ["--local-disks", "raid0"] == words[at + 2 :]


def test_al2_says_so_in_a_cluster_of_ipv6() -> None:
    """By the address of the DNS."""
    kubelet = KubeletConfiguration(cluster_dns=("fd00::a",))

    assert "--ip-family ipv6 --dns-cluster-ip fd00::a" in " ".join(bootstrap(NodeFacts(CLUSTER, kubelet)))


def test_al2_runs_the_users_script_first() -> None:
    """Each is a part of its own."""
    payload: Any = message_from_string(render(AL2, a_node(custom="echo first"))).get_payload()

    assert ("echo first", True) == (payload[0].get_payload(), "bootstrap.sh" in payload[1].get_payload())


def test_windows_calls_the_script_of_the_image() -> None:
    """After the user's commands, in the brackets that EC2 looks for."""
    lines = render(WINDOWS_2022, a_node(custom="Write-Host first")).splitlines()

    assert ["<powershell>", "Write-Host first"] == lines[:2]
    assert "</powershell>" == lines[-1]
    assert lines[3].startswith(
        "& $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://ABC.eks.amazonaws.com'"
        " -Base64ClusterCA 'Q0E=' -KubeletExtraArgs '--node-labels="
    )
    assert lines[3].endswith("--cpu-cfs-quota=false' -DNSClusterIP '10.100.0.10'")


def test_a_custom_image_gets_the_users_text_alone() -> None:
    """Byte for byte."""
    assert "any\r\ntext" == render(CUSTOM, a_node(custom="any\r\ntext"))


@pytest.mark.parametrize("family", [AL2, WINDOWS_2022, AL2023])
def test_no_value_ends_its_quotes(family: str) -> None:
    """A label is checked by the server; what is not is refused."""
    with pytest.raises(Unusable, match="without quotes"):
        render(family, a_node(labels={"team": "'; rm -rf /; '"}))


@pytest.mark.parametrize("family", FAMILIES)
def test_user_data_over_the_limit_is_refused_with_figures(family: str) -> None:
    """16,384 bytes before they are encoded."""
    with pytest.raises(Unusable, match=r"spec.userData has 17,000; EC2 takes 16,384: shorten it by 616") as raised:
        render(family, a_node(custom="#" * 17_000))

    assert "UserDataSizeLimitExceeded" == raised.value.reason


@pytest.mark.parametrize("family", [AL2023, AL2])
def test_what_is_added_counts(family: str) -> None:
    """The user's text fits by itself."""
    with pytest.raises(Unusable, match=r"spec.userData has 16,000"):
        render(family, a_node(custom=("# " + "x" * 97 + "\n") * 160))


def test_a_text_of_the_limit_is_taken() -> None:
    """The last byte counts, and bytes count, not letters."""
    assert MOST_BYTES == len(render(CUSTOM, a_node(custom="é" * 8192)).encode())


def test_a_node_gives_itself_no_label_that_the_server_refuses() -> None:
    """NodeRestriction refuses the Node otherwise. A custom image may drop the taints."""
    labels = {"team": "ml", "kubernetes.io/os": "linux", "a.k8s.io/x": "y", "mykubernetes.io/x": "y", "k8s.io": "bare"}
    kept = {"team": "ml", "mykubernetes.io/x": "y", "k8s.io": "bare"}

    assert {**kept, "karpenter.sh/do-not-sync-taints": "true"} == node_labels(labels)
    assert kept == node_labels(labels, is_custom=True)


def test_a_node_begins_with_the_taint_that_keeps_pods_off() -> None:
    """Once, after those of the claim."""
    team, startup = Taint("team"), Taint("startup", "", "NoExecute")

    assert (team, startup, UNREGISTERED_TAINT) == node_taints((team,), (startup,))
    assert (UNREGISTERED_TAINT,) == node_taints((), (UNREGISTERED_TAINT,))


def test_kubelet_gets_what_is_left_open() -> None:
    """Pods that the type takes, and the DNS of the cluster; what is said stays."""
    assert KubeletConfiguration(max_pods=58, cluster_dns=("10.100.0.10",)) == node_kubelet(
        KubeletConfiguration(), 58, "10.100.0.10"
    )
    said = KubeletConfiguration(max_pods=0, cluster_dns=("169.254.20.10",))
    assert said == node_kubelet(said, 58, "10.100.0.10")


def test_a_dns_that_is_no_address_is_refused() -> None:
    """It would go into a shell."""
    with pytest.raises(Unusable, match=r"spec.kubelet.clusterDNS: expected an IP address") as raised:
        node_kubelet(KubeletConfiguration(cluster_dns=("$(reboot)",)), 58, "")

    assert "InvalidKubeletConfiguration" == raised.value.reason
