"""What a dump keeps of an object, and what it never holds."""

import json
from typing import Any

import pytest

from kerf.cli.inputs.live import READS
from kerf.kube.reader import WATCHED
from kerf.manifests.clusterdump.decode import cluster_dump_object, cluster_dump_of
from kerf.manifests.clusterdump.encode import MOST_BYTES, dumped, form_of
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.dispatch import _KINDS, FIRST
from kerf.manifests.read import parse
from kerf.model.causes import Quoted
from kerf.model.dump import DUMP, CatalogueSource, ClusterDump
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import BackOff, MovePause, PriceHistory, SoldOut, Withheld
from tests.manifests.texts import refusal

SECRET = "hunter2"


def pod(**container: Any) -> dict[str, Any]:
    """A pod as a server shows it, with all that decisions read and as much that they do not."""
    main = {
        "name": "main",
        "image": f"registry.example/{SECRET}",
        "args": [SECRET],
        "command": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "ports": [{"containerPort": 80, "hostPort": 80, "name": SECRET}],
        "securityContext": {"privileged": True, "runAsUser": 1},
        **container,
    }
    metadata = {
        "name": "a",
        "namespace": "team",
        "uid": "u",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "labels": {"app": "a"},
        "annotations": {
            "nvidia.com/use-gpuuuid": "GPU-1",
            "example.com/note": SECRET,
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        },
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "o", "controller": True, "apiVersion": "batch/v1"}],
        "managedFields": [{"manager": SECRET}],
    }
    spec = {
        "containers": [main],
        "initContainers": [{**main, "name": "init", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "token", "secret": {"secretName": SECRET}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ],
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "schedulingGates": [{"name": "kerf.dev/window"}],
        "terminationGracePeriodSeconds": 7,
        "serviceAccountName": SECRET,
    }
    status = {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes", "reason": "Unschedulable"},
            {"type": "Ready", "status": "False", "message": SECRET},
        ],
        "initContainerStatuses": [{"name": "init", "image": SECRET, "state": {"terminated": {"exitCode": 0}}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def decoded(raw: Any) -> Decoded:
    """The object as it is read."""
    return decode(parse(json.dumps(raw), "in.json"), 1_800_000_000)


def test_every_kind_that_kerf_follows_or_asks_for_is_in_a_dump() -> None:
    """A kind that is added to the reader, to a live command or to the decoders fails this until a dump has it."""
    followed = {each.listing.resource.kind for each in WATCHED} | {each.resource.kind for each in READS}
    known = (set(_KINDS) | set(FIRST)) - {DUMP}

    assert set() == {kind for kind in followed | known if form_of(kind) is None}


def test_what_decides_is_kept_and_nothing_else() -> None:
    """The pod decodes to the same value; names of images, arguments, values and other people's annotations are gone."""
    raw = pod()
    kept, _ = dumped(raw)

    assert decoded(raw).pods == decoded(kept).pods
    assert SECRET not in str(kept)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_dump_says_how_a_device_plugin_was_started(is_full: bool) -> None:
    """C1: its image and version, MIG strategy and configuration; of what else its DaemonSet holds nothing is in it."""
    container = {
        "name": "plugin",
        "image": "registry.example/nvidia/k8s-device-plugin:v0.17.4",
        "args": ["--mig-strategy", "single"],
        "env": [{"name": "DEFAULT_CONFIG", "value": "any"}, {"name": "PASSWORD", "value": SECRET}],
    }
    spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}}
    raw = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nvidia-device-plugin"}, "spec": spec}
    kept, _ = dumped(raw, is_full=is_full)

    assert decoded(raw).daemon_sets == decoded(kept).daemon_sets
    assert [("nvidia/k8s-device-plugin:v0.17.4", ("--mig-strategy=single",), (("DEFAULT_CONFIG", "any"),))] == [
        (program.image, program.arguments, program.environment)
        for daemon_set in decoded(kept).daemon_sets
        for program in daemon_set.programs
    ]
    assert SECRET not in str(kept)


def test_a_full_dump_has_arguments_and_no_values() -> None:
    """The names of variables stay; their values, what was applied last, and who managed what are in no dump."""
    kept, _ = dumped(pod(env=[{"name": "PASSWORD", "value": "s3cret"}]), is_full=True)

    assert kept is not None
    assert [SECRET] == kept["spec"]["containers"][0]["args"]
    assert [{"name": "PASSWORD"}] == kept["spec"]["containers"][0]["env"]
    assert "managedFields" not in kept["metadata"]
    assert {"nvidia.com/use-gpuuuid", "example.com/note"} == set(kept["metadata"]["annotations"])


@pytest.mark.parametrize("is_full", [False, True])
def test_a_machines_start_up_script_is_in_no_dump(is_full: bool) -> None:
    """Tokens by which machines join a cluster stand there."""
    raw = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"userData": SECRET, "amiFamily": "AL2023"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no subnet"}]},
    }
    kept, _ = dumped(raw, is_full=is_full)

    assert decoded(raw).node_classes == decoded(kept).node_classes
    assert SECRET not in str(kept)


def test_an_object_over_the_bound_is_cut_to_what_kerf_reads() -> None:
    """Only a full dump can hold such a one; whoever writes it says so."""
    large = pod(args=["x" * MOST_BYTES])

    assert (dumped(large)[0], True) == dumped(large, is_full=True)
    assert not dumped(large)[1]


def test_a_secret_is_in_no_dump() -> None:
    """Nor is any other kind that Kerf does not read."""
    raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"password": SECRET}}

    assert (None, False) == dumped(raw, is_full=True)


def test_a_header_is_read_as_it_was_written() -> None:
    """With microseconds: a plan says how long things have lasted."""
    header = ClusterDump(
        taken_at_s=1_800_000_000.123456,
        version="1",
        place="input",
        namespace="team",
        is_full=True,
        strategy="first-fit",
        follow="pin",
        preference_policy="Ignore",
        plugin_namespaces=("gpus", "team"),
        catalogue=CatalogueSource("aws", "eu-central-1", "{}", "sha256:0", ("prices of yesterday",)),
        withheld=Withheld(
            (
                SoldOut(OfferingKey("g5.xlarge", "a", "spot"), 1_800_000_060.5, "no"),
                SoldOut(OfferingKey("p5.48xlarge", "a", "reserved", "cr-1", "pg-1"), 1_800_000_060.5, "full"),
            ),
            (
                BackOff("pool", "g5.xlarge", 1_800_000_090.25, Quoted("never joined")),
                BackOff("pool", "g6.xlarge", 1_800_000_090.25, Quoted("never joined"), is_tried=True),
            ),
            frozenset({("pool", "g4dn.xlarge"), ("other", "g5.xlarge")}),
            (BackOff("pool", "g5.2xlarge", 1_800_000_090.25),),
            (MovePause(("team", "Deployment", "web"), 1_800_000_090.25),),
            (PriceHistory(OfferingKey("g5.xlarge", "a", "spot"), 2, 1, 3, 86_400, 4, 1_799_999_090.25, 1, 5),),
        ),
        decisions=({"at": "2026-01-05T08:00:00Z"},),
        missing=("usage",),
    )

    assert header == cluster_dump_of(cluster_dump_object(header))


DECISION: dict[str, Any] = {
    "at": "2026-01-05T11:59:00.000000Z",
    "stateVersion": 7,
    "launches": [{"nodePool": "a", "instanceType": "m5.large", "zone": "z", "capacityType": "spot", "pods": 3}],
    "launchesCount": 1,
    "deletions": [{"node": "n", "nodePool": "a", "reason": "Empty"}],
    "deletionsCount": 1,
    "relabels": 0,
    "placedOnNodes": 0,
    "unplaced": {"limits": 2},
}


def with_decisions(*decisions: Any) -> str:
    """A dump with these."""
    head = {"apiVersion": "kerf.dev/v1alpha1", "kind": DUMP, "metadata": {"name": "dump"}}
    return json.dumps({**head, "decisions": list(decisions)})


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (7, "decisions[0]: expected a mapping, got 7"),
        ({**DECISION, "at": "soon"}, "decisions[0].at: expected an RFC 3339 instant such as"),
        (
            {**DECISION, "launchesCount": -1},
            "decisions[0].launchesCount: expected a whole number of at least 0, got -1",
        ),
        ({**DECISION, "unplaced": {"limits": "two"}}, "decisions[0].unplaced.limits: expected a whole number"),
        ({**DECISION, "launches": [7]}, "decisions[0].launches[0]: expected a mapping, got 7"),
        (
            {**DECISION, "launches": DECISION["launches"] * 51},
            "decisions[0].launches: expected a list of 0 to 50, got <a list of 51>",
        ),
        (
            {**DECISION, "deletions": [{**DECISION["deletions"][0], "reason": "x" * 1_000_000}]},
            "decisions[0].deletions[0].reason: expected text of at most 120 characters, got <'xxx",
        ),
        (
            {name: held for name, held in DECISION.items() if name != "relabels"},
            "decisions[0].relabels: expected a value, got <nothing>",
        ),
    ],
)
def test_a_decision_of_another_form_is_refused(decision: Any, said: str) -> None:
    """With its place: a dump that is damaged there is damaged elsewhere, too."""
    error = refusal(with_decisions(decision), name="d.json")

    assert error.startswith("d.json:1:")
    assert said in error
    assert len(error) < 1_000


def test_decisions_of_a_leader_are_read_as_they_are() -> None:
    """At most as many as a leader keeps."""
    dump = decode(parse(with_decisions(DECISION), "d.json")).dump

    assert dump is not None
    assert (DECISION,) == dump.decisions
    assert "decisions: expected a list of 0 to 20, got <a list of 21>" in refusal(with_decisions(*[DECISION] * 21))
