"""Nodes of a Bottlerocket image share their GPUs as the user data of their NodeClass says, in every command."""

import json
from pathlib import Path

import pytest

from tests.cli.plan.test_found_configuration import SLICED, Json, config_map, nodes, plan, pods, pool
from tests.cli.program import kerf

HEAD = "[settings.kubelet-device-plugins.nvidia]\n"
SLICING = 'device-sharing-strategy = "time-slicing"\n[settings.kubelet-device-plugins.nvidia.time-slicing]\n'
RENAMED = f"{HEAD}{SLICING}replicas = 4\n"
PLAIN = f"{RENAMED}rename-by-default = false\n"
MPS = f'{HEAD}device-sharing-strategy = "mps"\n[settings.kubelet-device-plugins.nvidia.mps]\nreplicas = 4\n'


def bottlerocket(user_data: str, name: str = "default") -> Json:
    """An EC2NodeClass with these settings."""
    spec = {
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-0"}],
        "securityGroupSelectorTerms": [{"id": "sg-0"}],
        "userData": user_data,
    }
    head = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name}}
    return {**head, "spec": spec}


@pytest.mark.parametrize(
    ("user_data", "asked", "bought"),
    [
        (RENAMED, "gpu.shared", 2),
        (RENAMED, "gpu", 0),
        (PLAIN, "gpu", 2),
        (PLAIN, "gpu.shared", 0),
        (MPS, "gpu.shared", 2),
        (f'{HEAD}device-sharing-strategy = "none"\n', "gpu", 5),
        (f"{HEAD}[settings.kubelet-device-plugins.nvidia.time-slicing]\nreplicas = 4\n", "gpu", 5),
        ("[settings.kubernetes]\n", "gpu", 5),
        (f'{HEAD}device-sharing-strategy = "some"\n', "gpu", 0),
    ],
)
def test_new_nodes_show_gpus_as_user_data_says(user_data: str, asked: str, bought: int) -> None:
    """Five pods of one GPU each, on nodes with one card that is shown four times, by its own name or another."""
    assert bought == nodes(plan(pool(), bottlerocket(user_data), *pods(5, "", **{asked: 1})))


def test_one_class_says_nothing_of_another() -> None:
    """Nor does a ConfigMap that a chart's plugin reads of nodes whose image brings the plugin along."""
    assert 5 == nodes(plan(pool(), bottlerocket(RENAMED, "other"), *pods(5, gpu=1)))
    whole = bottlerocket(f'{HEAD}device-sharing-strategy = "none"\n')
    assert 5 == nodes(plan(pool(), whole, config_map("m", "gpu-operator", default=SLICED), *pods(5, gpu=1)))


def test_a_container_gets_one_replica_unless_user_data_says_otherwise() -> None:
    """Bottlerocket has the plugin fail others by default."""
    open_ = f"{RENAMED}fail-requests-greater-than-one = false\n"

    assert 0 == nodes(plan(pool(), bottlerocket(RENAMED), *pods(1, "", **{"gpu.shared": 2})))
    assert 1 == nodes(plan(pool(), bottlerocket(open_), *pods(1, "", **{"gpu.shared": 2})))


def node(shown: dict[str, str], name: str = "n1") -> Json:
    """A node of the class that is up."""
    labels = {"karpenter.k8s.aws/ec2nodeclass": "default", "node.kubernetes.io/instance-type": "g5.xlarge"}
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58", **shown}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def test_a_node_that_is_up_takes_as_many_pods_as_it_shows() -> None:
    """Also one that was launched before its class was changed."""
    for shown, asked in (("nvidia.com/gpu.shared", "gpu.shared"), ("nvidia.com/gpu", "gpu")):
        done = plan(pool(), bottlerocket(RENAMED), node({shown: "4"}), *pods(5, "", **{asked: 1}))
        assert 4 == done.stdout.count("go to n1") * 4
        assert (1 if asked == "gpu.shared" else 0) == nodes(done)


def test_what_is_not_read_and_what_does_nothing_is_said() -> None:
    """By the plan, by doctor and by lint."""
    cuts = bottlerocket(f'{HEAD}device-partitioning-strategy = "mig"\n')
    idle = bottlerocket(f"{HEAD}[settings.kubelet-device-plugins.nvidia.time-slicing]\nreplicas = 4\n")
    for node_class, words in (
        (cuts, "has Bottlerocket cut cards into MIG instances, which Kerf does not read"),
        (idle, "EC2NodeClass default: time-slicing in its user data does nothing"),
    ):
        assert words in plan(pool(), node_class, *pods(1, gpu=1)).stdout
        assert words in plan(pool(), node_class, *pods(1, gpu=1), command="doctor").stdout
        assert words in kerf("lint", "-", stdin=json.dumps(node_class)).stdout


def test_settings_that_bottlerocket_refuses_are_the_reason() -> None:
    """Nothing is bought in such a pool; others go on."""
    done = plan(pool(), bottlerocket(f'{HEAD}device-sharing-strategy = "some"\n'), *pods(1, gpu=1))

    assert "device-sharing-strategy: expected none, time-slicing or mps, got 'some'" in done.stdout


def test_a_dump_is_planned_like_the_cluster_and_holds_no_secret() -> None:
    """The settings that are read, and nothing else of user data."""
    secret = bottlerocket(f'[settings.host-containers.admin]\nuser-data = "t0ken"\n{RENAMED}')
    objects = [pool(), secret, *pods(5, "", **{"gpu.shared": 1})]
    dump = kerf("snapshot", "-f", "-", stdin="\n".join(f"---\n{json.dumps(each)}" for each in objects)).stdout

    assert "t0ken" not in dump
    assert 2 == nodes(kerf("plan", "-f", "-", stdin=dump))


def test_simulated_nodes_show_what_user_data_says(tmp_path: Path) -> None:
    """They register four replicas, so five pods run on two nodes, and none is taken for broken."""
    objects = [pool(), bottlerocket(RENAMED), *pods(5, "", **{"gpu.shared": 1})]
    expect = [
        {"at": "20m", "pods": {"pending": 0, "running": 5}},
        {"at": "20m", "nodes": {"nodePool": "gpu", "count": 2, "most": 2}},
    ]
    spec = {"duration": "20m", "objects": objects, "expect": expect}
    scenario = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "s"}, "spec": spec}
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))

    done = kerf("simulate", str(tmp_path / "s.yaml"))

    assert 0 == done.returncode, done
