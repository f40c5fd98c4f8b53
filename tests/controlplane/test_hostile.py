"""What anybody may write into a cluster stops no decision about what others have written.

Annotations are text to the API server: a pod's owner, a device plugin or a mistake can put anything into those that
Kerf and HAMi read. The worst of it stands among good pods, nodes and pools here, all at once.
"""

from copy import deepcopy
from typing import Any

import pytest

from kerf.kube.crds import crds
from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.installation import Replica
from tools.controlplane.server import Binaries

Object = dict[str, Any]
GARBAGE = (
    "", "null", "true", "-1", "1e999", "NaN", "9" * 500, "[]", "{}", "[1", "[" * 5000, '{"a": 1}', '[{"id": null}]',
    '"text"', '{"default/good": "x"}', "GPU-1,NVIDIA,-5,-5:;", ":" * 3000, "\u202e\U0001f600\u0000".rstrip("\0"),
    "x" * 10_000,
)  # fmt: skip
"""No JSON, JSON of wrong types, numbers that are none, nests, marks that turn the text around."""
ON_PODS = (
    "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated", "hami.io/vgpu-node", "hami.io/vgpu-time",
    "hami.io/bind-phase", "hami.io/bind-time", "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy",
    "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid", "nvidia.com/use-gputype", "nvidia.com/nouse-gputype",
    "nvidia.com/vgpu-mode", "nvidia.com/numa-bind", "kerf.dev/pinned", "karpenter.sh/do-not-disrupt",
)  # fmt: skip
ON_NODES = (
    "hami.io/node-nvidia-register", "hami.io/node-nvidia-score", "hami.io/node-handshake", "hami.io/mutex.lock",
    "hami.io/device-cordon", "hami.io/device-scoring-weights", "kerf.dev/cordoned", "kerf.dev/interrupt",
    "kerf.dev/gpu-sharing", "karpenter.sh/do-not-disrupt",
)  # fmt: skip
ON_CLAIMS = (
    "kerf.dev/planned-pods", "kerf.dev/planned-offering", "kerf.dev/predicted-devices", "kerf.dev/pods-seen",
    "kerf.dev/follow", "kerf.dev/overloaded-by",
)  # fmt: skip
ON_POOLS = ("kerf.dev/observed-devices", "kerf.dev/gpu-sharing", "karpenter.sh/nodepool-hash")
KEYS = {"pods": ON_PODS, "nodes": ON_NODES, "nodeclaims": ON_CLAIMS, "nodepools": ON_POOLS}
OBEYED = "kerf.dev/gpu-sharing"
"""Whatever it says is taken for a way of sharing that is none of HAMi's; as `true` is no garbage elsewhere."""
LARGE = 250_000
"""The API server lets through 256 KiB of annotations in all."""
POOLS = "/apis/karpenter.sh/v1/nodepools"
REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
SOLD = [
    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.2xlarge"]},
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
]


def bad(keys: tuple[str, ...], number: int) -> Object:
    """The metadata of victim `number`: every key with the same garbage; the last victim has one huge value."""
    values = dict.fromkeys(keys, GARBAGE[number]) if number < len(GARBAGE) else {keys[0]: "x" * LARGE}
    return {"name": f"bad-{number}", "annotations": values}


def pool(metadata: Object, *, is_shared: bool = True, **spec: Any) -> Object:
    """A pool of g5.2xlarge, for HAMi where it is shared; the nodes of a good one have the label `tier: good`."""
    labels = {"tier": metadata["name"], **({"gpu": "on"} if is_shared else {})}
    template = {"metadata": {"labels": labels}, "spec": {"nodeClassRef": REFERENCE, "requirements": SOLD}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


GOOD_POOL = pool({"name": "good"}, disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})


def victim_pod(number: int) -> Object:
    """It waits, for a slice; nobody else's place depends on it."""
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]
    spec = {"containers": containers, "nodeSelector": {"tier": "nowhere"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": bad(ON_PODS, number), "spec": spec}


def victim_node(number: int) -> Object:
    """A node that is nobody's, closed to the pods of this test."""
    metadata = bad(ON_NODES, number)
    metadata["annotations"]["kwok.x-k8s.io/node"] = "fake"
    metadata["labels"] = {"gpu": "on"}
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "58"}
    status = {"capacity": capacity, "allocatable": capacity}
    spec = {"taints": [{"key": "closed", "effect": "NoSchedule"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def victim_claim(number: int) -> Object:
    """A claim that Kerf takes for its own, and launches."""
    metadata = {**bad(ON_CLAIMS, number), "labels": {"karpenter.sh/nodepool": "good"}}
    spec = {"nodeClassRef": REFERENCE, "requirements": SOLD}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}


def workload(replicas: int) -> Object:
    """Whole cards, on nodes of the good pool."""
    limits = {"nvidia.com/gpu": "1"}
    containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]
    template = {
        "metadata": {"labels": {"app": "good"}},
        "spec": {"containers": containers, "nodeSelector": {"tier": "good"}},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "good"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "good"}, "spec": spec}


def apply(site: Cluster, *objects: Object) -> None:
    """Server-side: the client's way keeps a copy of the whole object in an annotation."""
    site.plane.apply(objects, server_side=True)


def good(site: Cluster) -> list[Object]:
    """The pods of the workload that run."""
    return [pod for pod in site.pods("Running") if pod["metadata"]["name"].startswith("good-")]


def serves(site: Cluster, replicas: int) -> None:
    """The workload is scaled, and its pods run."""
    apply(site, workload(replicas))
    site.until(lambda: replicas == len(good(site)) == len(site.pods()) - len(victims(site)), f"{replicas} pods run")


def victims(site: Cluster) -> list[Object]:
    """The bad pods."""
    return [pod for pod in site.pods() if pod["metadata"]["name"].startswith("bad-")]


def is_well(replica: Replica) -> None:
    """No mistake of ours in the log, ready, and still the same process."""
    log = replica.program.log.read_text(encoding="utf-8")
    assert [] == [line for line in log.splitlines() if "level=error" in line or "Traceback" in line]
    assert (True, "ok\n") == replica.ready()


def test_hostile_annotations_stop_nothing(binaries: Binaries) -> None:
    """Garbage in every annotation that is read, on every kind; good pods come and go as if it were not there."""
    numbers = range(len(GARBAGE) + 1)
    with cluster(binaries, with_hami=True) as site:
        apply(site, GOOD_POOL, *(pool(bad(ON_POOLS, n), limits={"nodes": 0}) for n in numbers))
        apply(site, *map(victim_node, numbers))
        replica = site.start()
        for n in numbers:
            site.plane.request("POST", "/api/v1/namespaces/default/pods", victim_pod(n))
        apply(site, *map(victim_claim, numbers))

        serves(site, 3)
        serves(site, 5)
        serves(site, 1)
        site.until(lambda: 1 == len(site.names("nodeclaims")), "the claims of others have ended too")
        site.until(lambda: 1 == len(site.instances()), "their machines have ended")
        unread = "Kerf cannot read the GPUs of this node"
        site.until(lambda: [t for t in site.events("NotUnderstood") if t.startswith(unread)], "the nodes say it")
        is_well(replica)


@pytest.mark.long
def test_good_objects_that_turn_bad_break_no_other(binaries: Binaries) -> None:
    """The annotations of running pods, of their nodes, claims and pool are overwritten one value after the other."""
    with cluster(binaries, with_hami=True) as site:
        apply(site, GOOD_POOL)
        replica = site.start()
        serves(site, 2)
        for value in (each for each in GARBAGE if each != "true"):
            for kind, keys in KEYS.items():
                for name in site.names(kind):
                    overwrite(site, kind, name, dict.fromkeys(set(keys) - {OBEYED}, value))
        serves(site, 3)
        serves(site, 1)
        is_well(replica)


PLACES = {
    "pods": "/api/v1/namespaces/default/pods",
    "nodes": "/api/v1/nodes",
    "nodeclaims": "/apis/karpenter.sh/v1/nodeclaims",
    "nodepools": POOLS,
}


def overwrite(site: Cluster, kind: str, name: str, annotations: dict[str, str]) -> None:
    """As an administrator, who may do that."""
    patch = {"metadata": {"annotations": annotations}}
    path = f"{PLACES[kind]}/{name}"
    site.plane.request("PATCH", path, patch, content_type="application/merge-patch+json").good(f"overwrite {path}")


def test_a_broken_config_map_is_named_and_its_last_form_counts(binaries: Binaries) -> None:
    """HAMi's own configuration, and that of the acted-out cloud; also for a replica that starts with both broken."""
    name = {"name": "hami-scheduler-device", "namespace": "kube-system"}
    broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"device-config.yaml": "nvidia: ["}}
    # Without HAMi, whose own device plugins are at a loss with it.
    with cluster(binaries) as site:
        apply(site, pool({"name": "good"}, is_shared=False))
        replica = site.start()
        serves(site, 1)
        apply(site, broken)
        site.control_cloud(faults="[" * 5000, stockOuts=["never"])
        site.until(lambda: misread(site, "ConfigMap", "kube-system"), "an event on the ConfigMap")
        serves(site, 2)
        is_well(replica)

        assert 0 == replica.program.terminate(10)
        site.plane.request("DELETE", "/api/v1/namespaces/kube-system/events")
        again = site.start()
        site.until(lambda: misread(site, "ConfigMap", "kube-system"), "an event by the new replica")
        serves(site, 3)
        is_well(again)


def misread(site: Cluster, kind: str, namespace: str = "default") -> set[str]:
    """The objects of a kind of which an event says that they cannot be read."""
    events = site.plane.list("events", namespace)
    about = [event["involvedObject"] for event in events if event["reason"] == "NotUnderstood"]
    return {each["name"] for each in about if each["kind"] == kind}


def test_pools_that_cannot_be_used_are_named_and_the_others_serve(binaries: Binaries) -> None:
    """A server whose definitions check nothing lets everything in: an event or a condition on each, and no more."""
    node = {"nodeClassRef": REFERENCE, "requirements": SOLD}
    twice = [{"key": "a", "effect": "NoSchedule"}] * 2
    specs: list[Any] = [
        "text", {}, {"template": []}, {"template": {"spec": {**node, "requirements": "all"}}},
        {"template": {"spec": {**node, "requirements": [{"key": "a", "operator": "Like"}]}}},
        {"template": {"spec": node}, "limits": {"cpu": {"a": 1}}}, {"template": {"spec": node}, "limits": {"cpu": "x"}},
        {"template": {"spec": node}, "weight": "heavy"}, {"template": {"spec": {**node, "expireAfter": "soon"}}},
        {"template": {"spec": node}, "disruption": {"budgets": [{"nodes": "many"}]}},
        {"template": {"spec": node}, "disruption": {"budgets": [{"schedule": "99 99 * * *", "duration": "1h"}]}},
        {"template": {"spec": {**node, "taints": twice}}}, {"template": {"spec": node, "metadata": {"labels": ["a"]}}},
    ]  # fmt: skip
    with cluster(binaries, with_hami=True) as site:
        site.plane.apply([unchecked("NodePool")], server_side=True)
        site.until(lambda: accepts(site, specs[0]), "the server checks nothing")
        for n, spec in enumerate(specs):
            made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": f"bad-{n}"}, "spec": spec}
            site.plane.request("POST", POOLS, made).good("create a pool")
        apply(site, GOOD_POOL)
        replica = site.start()
        serves(site, 2)

        site.until(lambda: {f"bad-{n}" for n in range(len(specs))} == complained(site), "a word on each of them")
        serves(site, 3)
        is_well(replica)


def unchecked(kind: str) -> Object:
    """The definition of a kind without any rule of form."""
    made: Object = deepcopy(next(each for each in crds() if each["spec"]["names"]["kind"] == kind))
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    made["spec"]["versions"][0] |= {"schema": {"openAPIV3Schema": anything}, "subresources": {"status": {}}}
    return made


def accepts(site: Cluster, spec: object) -> bool:
    """Whether such a pool would be taken; none is made."""
    made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "bad"}, "spec": spec}
    return 201 == site.plane.request("POST", f"{POOLS}?dryRun=All", made).status


def complained(site: Cluster) -> set[str]:
    """The pools that bear an event or a condition against them."""
    names = set(site.names("nodepools"))
    return misread(site, "NodePool") | {
        name for name in names if "False" == site.condition("NodePool", name, "ValidationSucceeded").get("status")
    }
