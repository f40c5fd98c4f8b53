"""`kerf explain`: the verdict on each kind of object, and its exit code."""

import pytest

from tests.cli.program import (
    CLUSTER,
    POOL_000,
    POOL_003,
    POOL_004,
    ROOT,
    THREE,
    WORKLOAD_000,
    WORKLOAD_003,
    WORKLOAD_004,
    files,
    kerf,
)


def explained(*arguments: str, paths: tuple[str, ...] = (CLUSTER,)) -> dict[str, object]:
    """The one object that is explained, as data."""
    (item,) = kerf("explain", *arguments, *files(*paths), "-o", "json").data["items"]
    assert isinstance(item, dict)
    return item


def test_the_next_run_of_a_cron_job_needs_a_time() -> None:
    """Manifests that state none are not of 1970."""
    paths = ("examples/001-prewarm/nodepool.yaml", "examples/001-prewarm/cronjob.yaml")

    assert explained("cronjob/training", paths=paths)["nextRun"] is None
    assert "the input states no time: give --now TIME" in kerf("explain", "cronjob/training", *files(*paths)).stdout
    at = explained("cronjob/training", "--now", "2026-01-04T23:45:00Z", paths=paths)["nextRun"]
    assert "2026-01-05T00:00:00Z" == at


def test_a_conflicting_label_shows_both_sides_and_the_patch() -> None:
    """004 with the affinity value NVIDIA-L20: the pod's key and value beside the pool's, and the patch."""
    text = (ROOT / WORKLOAD_004).read_text(encoding="utf-8").replace("NVIDIA-A10", "NVIDIA-L20")
    done = kerf("explain", "pod/gpu-auto-scaler-1", "-f", "-", *files(POOL_004), stdin=text)

    assert 3 == done.returncode
    assert "gpu-spec In [NVIDIA-L20]" in done.stdout
    assert "gpu-spec In [NVIDIA-A10]" in done.stdout
    assert "  kubectl patch deployment gpu-auto-scaler -n default --type strategic -p '{" in done.stdout


def test_a_pod_without_a_place_has_every_near_miss() -> None:
    """Stage, missing quantity, hint and patch."""
    done = kerf("explain", "pod/train-0", *files(CLUSTER))
    lines = [line.split() for line in done.stdout.splitlines()]

    assert "Pod default/train-0 has no place, stage devices" == done.stdout.splitlines()[0]
    assert ["NodePool", "g5/g5.xlarge", "devices", "17112", "MiB", "CardInsufficientMemory"] in lines
    assert "hint: allow instance type g6e.xlarge (1.861 USD/h)" in done.stdout


def test_a_pod_that_gets_a_node_is_shown_its_card() -> None:
    """The launch, why it is bought, and the slice."""
    done = kerf("explain", "pod", "gpu-inference-1", *files(POOL_003, WORKLOAD_003), *THREE)

    assert 0 == done.returncode
    assert "Pod default/gpu-inference-1 gets a new node, launch-0: g5.xlarge on-demand in us-east-1a\n" in done.stdout
    assert "  GPU 0: 1000 MiB and 50 cores for container inference\n" in done.stdout


def test_a_running_pod_is_shown_what_it_holds() -> None:
    """Node and share of each card, by HAMi's record on the pod."""
    item = explained("pod/chat-0")

    assert ("running", "ip-10-0-0-1") == (item["verdict"], item["node"])
    assert [{"index": 0, "id": "GPU-aaaa", "model": "NVIDIA A10G", "memoryMiB": 8000, "cores": 30, "slots": 1}] == item[
        "devices"
    ]


def test_a_workload_is_the_sum_of_its_pods() -> None:
    """Pods with a place, and those without by reason."""
    done = kerf("explain", "deploy/gpu-app", *files(POOL_000, WORKLOAD_000))

    assert 3 == done.returncode
    assert "Deployment default/gpu-app: 5 pods\n" in done.stdout
    assert "  default/gpu-app-0  new node launch-0: g5.2xlarge on-demand in us-east-1a" in done.stdout
    assert "  default/gpu-app-1 and 3 more  limits: limit cpu 10" in done.stdout


@pytest.mark.parametrize(
    "arguments, why, quiet_s",
    [
        (("node/ip-10-0-0-1",), "2 pods are on it and consolidationPolicy of NodePool g5 is WhenEmpty", 0),
        (
            ("nodeclaim/g5-quiet",),
            "consolidateAfter is 10m: it may go in 4m30s, unless a pod comes or goes on it",
            270,
        ),
        (("nodeclaim/g5-starting",), "it is still starting; a node may go once it is initialised", None),
        (("node/ip-10-0-0-2", "--now", "2026-01-05T10:04:30Z"), "empty for 10m, saves 1.006 USD/h", None),
    ],
)
def test_a_node_says_why_it_stays_or_goes(arguments: tuple[str, ...], why: str, quiet_s: int | None) -> None:
    """The first rule that applies, and the countdown of consolidateAfter while it runs."""
    item = explained(*arguments)

    assert (why, quiet_s) == (item["why"], item["quietSecondsLeft"])
    assert ("goes" if "empty" in why else "stays") == item["verdict"]


def test_a_claim_says_what_it_waits_for_and_until_when() -> None:
    """The named stage, since when, what is missing and the deadline."""
    item = explained("nodeclaim/g5-starting")

    assert "registering" == item["stage"]
    assert {
        "step": "Registered",
        "reason": "NodeNotFound",
        "message": "Node not registered with cluster; given up at 2026-01-05T10:10:40Z",
        "since": "2026-01-05T09:55:40Z",
    } == item["missing"]


def test_a_pool_shows_limits_use_and_prices() -> None:
    """What is in use, what the plan adds, and each type with its price."""
    item = explained("nodepool/gpu-pool-1", paths=(POOL_000, WORKLOAD_000))

    assert [{"resource": "cpu", "limit": "10", "used": "0", "planned": "8"}] == item["limits"]
    assert [
        {
            "instanceType": "g5.2xlarge",
            "capacityType": "on-demand",
            "zone": "us-east-1a",
            "perHour": 1.212,
            "gpus": 1,
        }
    ] == item["instanceTypes"]


def test_a_pool_counts_the_largest_type_that_a_launch_may_become() -> None:
    """The cloud may have only the alternative, so the limit is charged with it: 8 cores, not the 4 of the cheapest."""
    pool = (ROOT / POOL_000).read_text(encoding="utf-8").replace('"g5.2xlarge"', '"g5.xlarge", "g5.2xlarge"')
    workload = (ROOT / WORKLOAD_000).read_text(encoding="utf-8").replace("replicas: 5", "replicas: 1")
    done = kerf("explain", "nodepool/gpu-pool-1", "-f", "-", stdin=f"{pool}---\n{workload}")

    assert ["cpu", "10", "0", "8"] in [line.split() for line in done.stdout.splitlines()]


def test_a_selector_explains_all_its_pods() -> None:
    """-l in place of names; pods in the order of their names."""
    done = kerf("explain", "-l", "app in (chat,train)", *files(CLUSTER), "-o", "json")

    assert 3 == done.returncode
    assert [("chat-0", "running"), ("train-0", "no-place")] == [(i["name"], i["verdict"]) for i in done.data["items"]]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("pod/chat-1",), "error: pod/chat-1 not found; nearest known: default/chat-0\n"),
        (
            ("pod/chat-0", "-n", "other"),
            "error: pod/chat-0 not found in namespace other; nearest known: default/chat-0\n",
        ),
        (("pod/other/chat-0",), "error: pod/chat-0 not found in namespace other; nearest known: default/chat-0\n"),
        (("cronjob/x",), "error: cronjob/x not found; the input has no cronjob\n"),
        (("-l", "app=nothing"), "error: no pod of the input has these labels\n"),
    ],
)
def test_an_unknown_name_is_one(arguments: tuple[str, ...], told: str) -> None:
    """Exit 1 with the nearest known names."""
    done = kerf("explain", *arguments, *files(CLUSTER))

    assert (1, "", told) == (done.returncode, done.stdout, done.stderr)


def test_a_starting_node_says_what_is_missing_and_until_when() -> None:
    """003-5, 003-14: the stage, its cause and its deadline, also while the claim itself says nothing yet."""
    done = kerf(
        "explain", "nodeclaim/c1", *files("tests/data/cli/initialising.yaml", "examples/003-hami/nodepool.yaml")
    )

    assert "waits since 2026-01-05T07:02:00Z to be Initialized: 0 of 1 GPUs registered" in done.stdout
    assert "given up at 2026-01-05T07:12:30Z" in done.stdout


def test_a_claim_shows_the_promise_that_cannot_be_read() -> None:
    """A person broke the annotation: its name, the form that Kerf writes, and what is there."""
    text, name = (ROOT / CLUSTER).read_text(encoding="utf-8"), "  name: g5-starting\n"
    broken = text.replace(name, f"{name}  annotations: {{kerf.dev/planned-pods: '[1'}}\n")
    done = kerf("explain", "nodeclaim/g5-starting", "-f", "-", stdin=broken)

    why = """kerf.dev/planned-pods: expected JSON such as {"namespace/pod": [0]}, got '[1'"""
    shown = f"  its claim has an annotation that cannot be read, so it promises nothing: {why}"
    assert shown in done.stdout.splitlines()


FEW_TYPES = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: few}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, m5.2xlarge], minValues: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  containers: [{name: main, resources: {requests: {cpu: 6}}}]
"""


def test_the_policies_of_a_plan_are_those_of_its_explanation() -> None:
    """One of two types holds the pod, which a pool that asks for two allows where it may go below that."""
    asked = ("explain", "pod/large", "-f", "-")

    assert 3 == kerf(*asked, stdin=FEW_TYPES).returncode
    assert 0 == kerf(*asked, "--min-values-policy", "BestEffort", stdin=FEW_TYPES).returncode
