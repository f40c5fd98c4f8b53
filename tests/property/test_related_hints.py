"""Hints on random refusals for the sake of other pods and of volumes: applied, each of them places its pods."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.explain.plan import plan
from kerf.manifests.decode import decode
from kerf.manifests.read import parse
from kerf.manifests.workloads.expansion import expand
from kerf.model.constraints import Taint
from kerf.model.market import Market
from kerf.model.nodes import Node
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import Upserted
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_market, a_node, a_pod, an_instance_type
from tests.patches import Object
from tests.property.test_hints import Draw, applied, left_of, losses_are_said, placed_as_said, sometimes

ZONE, HOSTNAME, TYPE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "node.kubernetes.io/instance-type"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MARKET: Market = a_market(
    an_instance_type("m5.xlarge", price="0.192", zones=ZONES),
    an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384", zones=ZONES),
)
QUICK = settings(max_examples=25, derandomize=True)
LONG = settings(QUICK, max_examples=500)
Cluster = tuple[list[Object], list[Node], list[Pod]]


@st.composite
def pools(draw: Draw) -> Object:
    """A pool that allows some zones and types, has a limit, a taint or a label, or none of them."""
    zones = draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=3, unique=True))
    types = draw(st.sampled_from([["m5.xlarge"], ["m5.xlarge", "m5.2xlarge"]]))
    requirements = [
        {"key": ZONE, "operator": "In", "values": sorted(zones)},
        {"key": TYPE, "operator": "In", "values": types},
    ]
    taints = draw(sometimes(st.just([{"key": "team", "value": "a", "effect": "NoSchedule"}]), []))
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template: Object = {"spec": {"nodeClassRef": reference, "requirements": requirements, "taints": taints}}
    template["metadata"] = {"labels": draw(st.sampled_from([{}, {"rack": "r1"}]))}
    spec: Object = {"template": template}
    limits = draw(sometimes(st.sampled_from([{"cpu": "4"}, {"nodes": "1"}, {"nodes": "2"}]), None))
    if limits:
        spec["limits"] = limits
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "blue"}, "spec": spec}


@st.composite
def spreads(draw: Draw, app: str) -> Object:
    """A constraint that counts the Deployment's own pods."""
    found: Object = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from([ZONE, ZONE, HOSTNAME, "rack"])),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    least = draw(sometimes(st.integers(2, 4), None))
    return {**found, "minDomains": least} if least else found


@st.composite
def terms(draw: Draw) -> Object:
    """An affinity term for pods of a Deployment, one that runs, or one that a slip of the pen names."""
    app = draw(st.sampled_from(["web", "etl", "db", "dbb"]))
    found: Object = {
        "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME, "rack"])),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {**found, "namespaces": ["other"]} if draw(sometimes(st.just(True), False)) else found


@st.composite
def deployments(draw: Draw, name: str) -> Object:
    """One to four pods that are spread, seek others, keep away from others, or have a volume."""
    container: Object = {"name": "main", "image": "x", "resources": {"requests": {"cpu": draw(st.sampled_from("13"))}}}
    port = draw(sometimes(sometimes(st.just(80), None), None))
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    affinity = {
        kind: {REQUIRED: [draw(terms())]}
        for kind in ("podAffinity", "podAntiAffinity")
        if draw(sometimes(st.just(True), False))
    }
    spec: Object = {"containers": [container], "affinity": affinity}
    stated = draw(st.lists(spreads(name), max_size=2, unique_by=lambda each: str(each["topologyKey"])))
    if stated:
        spec["topologySpreadConstraints"] = stated
    claim = draw(sometimes(sometimes(st.sampled_from(["here", "there", "nowhere"]), None), None))
    if claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    zone = draw(sometimes(sometimes(st.sampled_from(ZONES), None), None))
    if zone:
        spec["nodeSelector"] = {ZONE: zone}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    whole = {"replicas": draw(st.integers(1, 4)), "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def volumes(zone: str, claim: str) -> list[Object]:
    """A volume in a zone, and the claim that has it."""
    held = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume: Object = {
        "capacity": size,
        "accessModes": modes,
        "csi": {"driver": "efs.csi.aws.com", "volumeHandle": claim},
        "claimRef": {"namespace": "default", "name": claim},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [held]}},
    }
    asked: Object = {"accessModes": modes, "volumeName": f"pv-{claim}", "resources": {"requests": size}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{claim}"}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "default"},
            "spec": asked,
            "status": {"phase": "Bound"},
        },
    ]


@st.composite
def clusters(draw: Draw) -> Cluster:
    """One pool, up to three Deployments, and up to three nodes with pods on them."""
    names = ("web", "etl", "db")[: draw(st.integers(1, 3))]
    objects = [
        draw(pools()),
        *volumes(ZONES[0], "here"),
        *volumes(ZONES[2], "there"),
        *map(draw, map(deployments, names)),
    ]
    nodes: list[Node] = []
    running: list[Pod] = []
    for number in range(draw(st.integers(0, 3))):
        taints = draw(sometimes(st.just((Taint("control", "", "NoSchedule"),)), ()))
        labels = {ZONE: draw(st.sampled_from(ZONES)), **draw(st.sampled_from([{}, {"rack": "r1"}, {"rack": "r2"}]))}
        nodes.append(a_node(f"node-{number}", labels=labels, taints=taints))
        for app in draw(st.lists(st.sampled_from(["web", "db", "etl"]), max_size=2)):
            where = {"node_name": f"node-{number}", "phase": "Running", "labels": {"app": app}}
            running.append(
                a_pod(f"{app}-{len(running)}x", namespace=draw(st.sampled_from(["default", "other"])), **where)
            )
    return objects, nodes, running


def planned(objects: list[Object], nodes: list[Node], running: list[Pod]) -> Plan:
    """The plan for these manifests, which must be valid, beside the nodes and pods that there are."""
    decoded = decode(parse("\n---\n".join(map(json.dumps, objects))))
    assert not any(pool.invalid for pool in decoded.node_pools)
    state = ClusterState(assume_node_classes=True)
    found: list[Any] = [
        *decoded.node_pools,
        *decoded.volume_claims,
        *decoded.volumes,
        *nodes,
        *running,
        *expand(decoded),
    ]
    for value in found:
        state.apply(Upserted(value))
    return plan(state.snapshot(NOON_S), MARKET)


def keeps_its_word(cluster: Cluster) -> None:
    """What the property says, of each hint of a plan once."""
    objects, nodes, running = cluster
    unplaced = planned(objects, nodes, running).unplaced
    for one in {(each.hint, str(each.patches)): each for each in unplaced if each.patches}.values():
        left = left_of(planned(applied(objects, one), nodes, running), one.hint)
        placed_as_said(one, unplaced, left)
        losses_are_said(one, unplaced, left)


@QUICK
@given(clusters())
def test_every_hint_beside_other_pods_places_its_pods(cluster: Cluster) -> None:
    """Planned again with its patch."""
    keeps_its_word(cluster)


@pytest.mark.long
@LONG
@given(clusters())
def test_five_hundred_random_neighbours_keep_their_word(cluster: Cluster) -> None:
    """The same, oftener."""
    keeps_its_word(cluster)
