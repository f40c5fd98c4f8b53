"""Claims, volumes, classes, CSINodes, Namespaces, Services and RuntimeClasses: what is read of each."""

import json
from typing import Any

import pytest

from kerf.manifests.clusterdump.encode import dumped
from kerf.manifests.decode import decode
from kerf.manifests.live import decode_live
from kerf.manifests.read import parse
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements, Toleration
from kerf.model.namespaces import NAMESPACE_NAME, Namespace, Service
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import Upserted, Watched
from kerf.model.volumes import (
    ClaimTemplate,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeForm,
)
from kerf.state import ClusterState
from kerf.testing.builders import resources
from tests.manifests.texts import decoded, left_out, refusal

IN_A = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["a"]}
OBJECTS: dict[str, Any] = {
    "PersistentVolumeClaim": {
        "apiVersion": "v1",
        "metadata": {
            "name": "data-db-0",
            "namespace": "team",
            "uid": "u",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes", "example.com/note": "hunter2"},
        },
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast",
            "volumeName": "pv-1",
            "dataSource": {"name": "hunter2"},
        },
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
    },
    "PersistentVolume": {
        "apiVersion": "v1",
        "metadata": {"name": "pv-1", "uid": "u", "labels": {"failure-domain.beta.kubernetes.io/zone": "a__b"}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "claimRef": {"namespace": "team", "name": "data-db-0", "uid": "c"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "hunter2"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["a"]}
                            ]
                        }
                    ]
                }
            },
            "storageClassName": "fast",
        },
        "status": {"phase": "Bound"},
    },
    "StorageClass": {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": "fast",
            "uid": "u",
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"secret": "hunter2"},
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}]}
        ],
    },
    "CSINode": {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "n1", "uid": "u"},
        "spec": {
            "drivers": [
                {"name": "ebs.csi.aws.com", "nodeID": "i-1", "topologyKeys": ["z"], "allocatable": {"count": 25}},
                {"name": "efs.csi.aws.com", "nodeID": "i-1", "topologyKeys": None},
                {"name": "linstor.csi.linbit.com", "nodeID": "n1", "topologyKeys": ["linbit.com/hostname"]},
                {"name": "topolvm.io", "nodeID": "n1", "topologyKeys": ["topology.topolvm.io/node"]},
            ]
        },
    },
    "VolumeAttachment": {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "csi-1", "uid": "u", "annotations": {"csi.alpha.kubernetes.io/node-id": "hunter2"}},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        "status": {"attached": True, "attachmentMetadata": {"devicePath": "hunter2"}},
    },
    "Namespace": {
        "apiVersion": "v1",
        "metadata": {"name": "team", "uid": "u", "labels": {"tier": "gold"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    },
    "Service": {
        "apiVersion": "v1",
        "metadata": {"name": "web", "namespace": "team", "uid": "u"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], "clusterIP": "10.0.0.1"},
    },
    "RuntimeClass": {
        "apiVersion": "node.k8s.io/v1",
        "metadata": {"name": "gvisor", "uid": "u"},
        "handler": "runsc",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"sandbox": "true"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]},
    },
}
VALUES: dict[str, Watched] = {
    "PersistentVolumeClaim": PersistentVolumeClaim(
        "team", "data-db-0", "fast", "pv-1", is_bound=True, is_of_one_pod=True, requested_bytes=10 * 2**30
    ),
    "PersistentVolume": PersistentVolume(
        "pv-1",
        (Requirements([Requirement.of(ZONE, "In", ["a"])]),),
        Requirements([Requirement.of(ZONE, "In", ["a", "b"])]),
        "ebs.csi.aws.com",
        "fast",
        capacity_bytes=10 * 2**30,
    ),
    "StorageClass": StorageClass(
        "fast",
        "ebs.csi.aws.com",
        waits=True,
        topologies=(Requirements([Requirement.of(ZONE, "In", ["a", "b"])]),),
        is_default=True,
        created_s=1767600000,
    ),
    "CSINode": CSINode("n1", (("ebs.csi.aws.com", 25),), ("efs.csi.aws.com",), ("topolvm.io",)),
    "VolumeAttachment": VolumeAttachment("csi-1", "n1", "pv-1", is_attached=True),
    "Namespace": Namespace("team", {"tier": "gold", NAMESPACE_NAME: "team"}),
    "Service": Service("team", "web", Requirements.of_labels({"app": "web"})),
    "RuntimeClass": RuntimeClass(
        "gvisor",
        resources(cpu="250m"),
        Requirements.of_labels({"sandbox": "true"}),
        (Toleration("sandbox", "Exists"),),
    ),
}
kinds = pytest.mark.parametrize("kind", sorted(OBJECTS))


def read(raw: Any) -> Watched:
    """An object as an API sends it in a list."""
    found = decode_live(json.dumps(raw).encode(), raw["kind"], raw["apiVersion"])
    assert found is not None
    return found


@kinds
def test_an_object_of_the_api_is_what_a_decision_reads_of_it(kind: str) -> None:
    """And nothing more: the labels of a namespace are equal too."""
    found = read({"kind": kind, **OBJECTS[kind]})

    assert VALUES[kind] == found
    assert getattr(VALUES[kind], "labels", None) == getattr(found, "labels", None)


@kinds
def test_a_dump_keeps_what_is_read_and_no_secret(kind: str) -> None:
    """The same value comes back; notes, handles and parameters are gone."""
    kept, _ = dumped({"kind": kind, **OBJECTS[kind]})

    assert VALUES[kind] == read(kept)
    assert "hunter2" not in str(kept)


@kinds
def test_the_state_holds_it_in_its_snapshot_until_it_is_gone(kind: str) -> None:
    """By name, or by namespace and name."""
    names = {
        "PersistentVolumeClaim": ("volume_claims", "team/data-db-0"),
        "PersistentVolume": ("volumes", "pv-1"),
        "StorageClass": ("storage_classes", "fast"),
        "CSINode": ("csi_nodes", "n1"),
        "VolumeAttachment": ("volume_attachments", "csi-1"),
        "Namespace": ("namespaces", "team"),
        "RuntimeClass": ("runtime_classes", "gvisor"),
    }
    state = ClusterState()
    state.apply(Upserted(VALUES[kind]))
    snapshot = state.snapshot(0)

    if kind == "Service":
        assert (VALUES[kind],) == snapshot.services
    else:
        field, key = names[kind]
        assert [key] == list(getattr(snapshot, field))


@kinds
def test_an_object_that_only_has_another_version_changes_nothing(kind: str) -> None:
    """Controllers of volumes write on them all day."""
    state = ClusterState()
    state.apply(Upserted(VALUES[kind]))
    version = state.version
    state.apply(Upserted(read({"kind": kind, **OBJECTS[kind]})))

    assert version == state.version


@pytest.mark.parametrize(
    "source, driver, is_local",
    [
        ("awsElasticBlockStore: {volumeID: v}", "ebs.csi.aws.com", False),
        ("gcePersistentDisk: {pdName: v}", "pd.csi.storage.gke.io", False),
        ("local: {path: /mnt}", "", True),
        ("hostPath: {path: /mnt}", "", True),
        ("nfs: {server: s, path: /}", "", False),
    ],
)
def test_the_source_of_a_volume_says_who_attaches_it_and_whether_it_is_local(
    source: str, driver: str, is_local: bool
) -> None:
    """Retired built-in kinds are served by CSI drivers."""
    (volume,) = decoded(f"""
        apiVersion: v1
        kind: PersistentVolume
        metadata: {{name: pv}}
        spec: {{{source}}}
        """).volumes

    assert (driver, is_local) == (volume.driver, volume.is_local)


@pytest.mark.parametrize(
    "status, annotations, is_bound",
    [
        ("{}", "{}", False),
        ("{phase: Bound}", "{}", True),
        ("{}", '{pv.kubernetes.io/bind-completed: "yes"}', True),
    ],
)
def test_a_live_claim_is_bound_once_both_sides_say_so(status: str, annotations: str, is_bound: bool) -> None:
    """`spec.volumeName` alone is a wish (binder.go, isPVCBound)."""
    (claim,) = decoded(f"""
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {{name: data, uid: u, annotations: {annotations}}}
        spec: {{volumeName: pv}}
        status: {status}
        """).volume_claims

    assert is_bound is claim.is_bound


def test_a_claim_of_a_manifest_that_names_a_volume_is_bound_to_it() -> None:
    """Its author means so, and no server has seen it."""
    (claim,) = decoded(
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {volumeName: pv}}"
    ).volume_claims

    assert claim.is_bound


def test_a_volume_on_one_host_keeps_its_name() -> None:
    """The engine decides where that counts."""
    expression = "{key: kubernetes.io/hostname, operator: In, values: [n1]}"
    (volume,) = decoded(f"""
        apiVersion: v1
        kind: PersistentVolume
        metadata: {{name: pv}}
        spec:
          local: {{path: /mnt}}
          nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{expression}]}}]}}}}
        """).volumes

    assert (Requirements([Requirement.of(HOSTNAME, "In", ["n1"])]),) == volume.terms


STORAGE = "storage.k8s.io/v1"


@pytest.mark.parametrize(
    "version, kind, rest, said",
    [
        (
            "v1",
            "PersistentVolumeClaim",
            "spec: {accessModes: [Rwo]}",
            "spec.accessModes[0]: expected one of ReadWriteOnce,",
        ),
        ("v1", "PersistentVolume", "spec: {csi: {}}", "spec.csi.driver: expected a value, got <nothing>"),
        (
            STORAGE,
            "StorageClass",
            "provisioner: x, volumeBindingMode: y",
            "volumeBindingMode: expected one of Immediate,",
        ),
        ("node.k8s.io/v1", "RuntimeClass", "overhead: {podFixed: {cpu: x}}", "overhead.podFixed.cpu: expected"),
    ],
)
def test_a_faulty_object_is_left_out_with_its_place(version: str, kind: str, rest: str, said: str) -> None:
    """What was expected, and what came. No server has it, so the others are planned without it."""
    assert said in left_out(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: d}}, {rest}}}")


@pytest.mark.parametrize(
    "version, kind, rest, said",
    [
        (STORAGE, "CSINode", "spec: {drivers: [{}]}", "spec.drivers[0].name: expected a value, got <nothing>"),
        (
            STORAGE,
            "VolumeAttachment",
            "spec: {attacher: x, source: {}}",
            "spec.nodeName: expected a value, got <nothing>",
        ),
        ("v1", "StorageClass", "provisioner: x", "apiVersion: expected storage.k8s.io/v1"),
    ],
)
def test_what_no_tenant_writes_is_refused_with_its_place(version: str, kind: str, rest: str, said: str) -> None:
    """A kind of the cluster itself, and a version that there is not."""
    assert said in refusal(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: d}}, {rest}}}")


def test_a_faulty_object_leaves_the_others() -> None:
    """Of a live cluster, where one broken object must not hide the rest."""
    good = {"kind": "Namespace", **OBJECTS["Namespace"]}
    bad = {"kind": "Service", **OBJECTS["Service"], "spec": {"selector": 7}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [bad, good]})
    found = decode(parse(text, "in.json"), skips_broken=True)

    assert (VALUES["Namespace"],) == found.namespaces
    assert () == found.services


def test_of_a_free_volume_and_a_claim_without_one_is_read_what_they_must_agree_in() -> None:
    """Of all others it is left out: a cluster has as many as pods."""
    form = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "volumeAttributesClassName": "gold"}
    old = "failure-domain.beta.kubernetes.io/zone"
    labels = {old: "a", "tier": "x"}
    volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "pv", "uid": "u", "labels": labels}}
    claim = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {"name": "c", "namespace": "t", "uid": "u"},
    }
    kept = {"claimRef": {"namespace": "t", "name": "c"}, **form}
    selector = {"selector": {"matchLabels": {"tier": "x"}}}
    agreed = VolumeForm(frozenset(("ReadWriteOnce",)), True, "gold")
    tier = Requirements.of_labels({"tier": "x"})
    free, held = read({**volume, "spec": form}), read({**volume, "spec": kept})
    asked = read({**claim, "spec": {**form, **selector}})

    assert isinstance(free, PersistentVolume)
    assert isinstance(held, PersistentVolume)
    assert (True, "", agreed, ((old, "a"), ("tier", "x"))) == (free.is_free, free.kept_for, free.form, free.labels)
    assert (False, "t/c", agreed, ()) == (held.is_free, held.kept_for, held.form, held.labels)
    assert PersistentVolumeClaim("t", "c", form=agreed, selector=tier, attributes_classes=("gold",)) == asked


def test_of_a_claim_is_read_what_a_quota_counts() -> None:
    """What it asks or is given, the larger; new is what no API has seen and has no volume."""
    texts = (
        "{metadata: {name: a}, spec: {resources: {requests: {storage: 1Ki}}}}",
        "{metadata: {name: b, uid: u}, spec: {volumeName: pv, volumeAttributesClassName: gold, resources: {requests: "
        "{storage: 1Ki}}}, status: {allocatedResources: {storage: 2Ki}, currentVolumeAttributesClassName: plain}}",
        "{metadata: {name: c}, spec: {volumeName: pv}}",
    )
    read = decoded(*(f"{{apiVersion: v1, kind: PersistentVolumeClaim, {text[1:]}" for text in texts)).volume_claims

    assert [(1024, (), True), (2048, ("gold", "plain"), False), (0, (), False)] == [
        (each.requested_bytes, each.attributes_classes, each.is_new) for each in read
    ]


def test_of_a_template_is_read_what_a_quota_counts() -> None:
    """Of a StatefulSet and of an ephemeral volume."""
    spec = "{storageClassName: fast, volumeAttributesClassName: gold, resources: {requests: {storage: 1Ki}}}"
    ephemeral = f"volumes: [{{name: s, ephemeral: {{volumeClaimTemplate: {{spec: {spec}}}}}}}]"
    (found,) = decoded(f"""
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {{name: db}}
        spec:
          template: {{spec: {{containers: [{{name: a}}], {ephemeral}}}}}
          volumeClaimTemplates: [{{metadata: {{name: d}}, spec: {spec}}}]
        """).workloads

    assert (
        ClaimTemplate("s", "fast", is_ephemeral=True, requested_bytes=1024, attributes_class="gold"),
        ClaimTemplate("d", "fast", requested_bytes=1024, attributes_class="gold"),
    ) == found.template.spec.claim_templates
