"""Figures of `kerf run` on a real API server, with more nodes than could be made there by requests.

Kerf first buys one node for one ReplicaSet, with the real control plane and the acted-out cloud. Then all of it, node,
NodeClaim, instance and pods, is stored as often as wanted under other names, so that what is read has the form that
the server and Kerf gave it. Run as `python -m benchmarks.bench_server response`, `... start`, `... commands`, `...
long-plan` or `... notice`: a process of its own for each set, which prints its figures as JSON. Needs the programs of
`make controlplane`.
"""

import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from benchmarks import live_objects
from benchmarks.bench_commands import measured
from benchmarks.bench_openb import loop_s
from benchmarks.long_plans import LongPlans, p99
from kerf.clouds.kwok.machines import INTERRUPT
from kerf.controllers.conditions import digest
from kerf.model.nodeclaim import CONSOLIDATABLE, PLANNED_PODS, PODS_SEEN
from tools.controlplane.installation import NAMESPACE, Installation, Replica
from tools.controlplane.server import ControlPlane
from tools.playground import HURRIED, hosted, install, programs

Json = dict[str, Any]

_TYPE = "m5.4xlarge"
_GENERAL = {"karpenter.k8s.aws/instance-category": ["c", "m", "r"]}
_CPU_OF_PODS_M = 15_500  # of 16 cpus, so that no pod of another node fits
_FOLLOWERS = ("kwok", "kube-scheduler", "kube-controller-manager")
_KEYS = {
    "Node": "minions",
    "NodeClaim": "karpenter.sh/nodeclaims",
    "ConfigMap": f"configmaps/{NAMESPACE}",
    "ReplicaSet": "replicasets/default",
    "Pod": "pods/default",
}
_PREFIXES = {"Node": "node", "NodeClaim": "all", "ReplicaSet": "service"}
_WARM_UP, _ROUNDS, _MOST_AT_ONCE = 5, 40, 5
"""Rounds that do not count, because everything has just started; all rounds; and pods in a round."""
_BATCH_IDLE_S = 1.0
_LOOK_S = 1.0  # a look takes all NodeClaims, and so time from the server that is measured
_QUIET_S = 60.0
_HEARTBEAT_S = 300.0
_FILLED_READY_S = 300.0
"""An API server reads all of 100,000 pods before it is ready."""
_LEAST_PROBES = 100


@contextmanager
def filled(nodes: int, pods: int) -> Iterator[Installation]:
    """A control plane with that many nodes and that many pods on each; only etcd and the API server run."""
    with hosted(programs(), with_hami=False) as plane:
        installation = install(plane, HURRIED)
        bought = _bought(installation, pods)
        for name in (*_FOLLOWERS, "kube-apiserver"):
            plane.program(name).kill()
        plane.store(_copies(bought, nodes))
        plane.start_apiserver(_FILLED_READY_S)
        yield installation


def _bought(installation: Installation, pods: int) -> list[Json]:
    """What there is once Kerf has bought a node for a ReplicaSet that fills it."""
    plane = installation.plane
    plane.apply([_pool(_GENERAL), _replica_set(pods)])
    replica = installation.start()
    plane.wait_until(lambda: _is_settled(plane, pods), 180, "the first node, its pods and its NodeClaim to settle")
    replica.program.terminate(30)  # and so gives the lease back
    kinds = {"Node": "v1", "NodeClaim": "karpenter.sh/v1", "ReplicaSet": "apps/v1", "Pod": "v1"}
    found = [(kind, version, obj) for kind, version in kinds.items() for obj in plane.list(kind)]
    instances = plane.list("configmaps", NAMESPACE, selector="kerf.dev/kwok-instance=true")
    found += [("ConfigMap", "v1", obj) for obj in instances]
    return [{"apiVersion": version, "kind": kind, **obj} for kind, version, obj in found]


def _is_settled(plane: ControlPlane, pods: int) -> bool:
    claims, found = plane.list("nodeclaims"), plane.list("pods", "default")
    told = [each for claim in claims for each in claim.get("status", {}).get("conditions", ())]
    conditions = {each["type"]: each["status"] for each in told}
    are_running = len(found) == pods and all(pod["status"]["phase"] == "Running" for pod in found)
    return are_running and len(claims) == 1 and conditions.get(CONSOLIDATABLE) == "True"


def _copies(bought: Sequence[Json], nodes: int) -> Iterator[tuple[str, Json]]:
    """(key in etcd, object) for each of `nodes` but the first; names and uids are new, all else is as it was."""
    for obj in bought:
        del obj["metadata"]["resourceVersion"]
    texts = [(_KEYS[obj["kind"]], json.dumps(obj)) for obj in bought]
    prefixes = {obj["metadata"]["name"]: _PREFIXES[obj["kind"]] for obj in bought if obj["kind"] in _PREFIXES}
    uids = [obj["metadata"]["uid"] for obj in bought]
    pods = [obj["metadata"]["uid"] for obj in bought if obj["kind"] == "Pod"]
    renamed = re.compile("|".join(map(re.escape, [*uids, *prefixes])))
    for number in range(1, nodes):
        new = {name: f"{prefix}-{number:05}" for name, prefix in prefixes.items()}
        new |= {uid: str(uuid5(NAMESPACE_OID, f"{uid}/{number}")) for uid in uids}
        for key, text in texts:
            obj = json.loads(renamed.sub(partial(_replaced, new), text))
            if obj["kind"] == "NodeClaim":
                obj["metadata"]["annotations"][PODS_SEEN] = digest(new[uid] for uid in pods)
            yield f"/registry/{key}/{obj['metadata']['name']}", obj


def _replaced(new: Mapping[str, str], found: re.Match[str]) -> str:
    return new[found[0]]


def _pool(types: Mapping[str, list[str]], labels: Mapping[str, str] | None = None) -> Json:
    """Types with these labels, on demand; disrupted as Karpenter's defaults have it. Its nodes carry `labels`."""
    allowed = {"karpenter.sh/capacity-type": ["on-demand"], "kubernetes.io/arch": ["amd64"], **types}
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in allowed.items()]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"nodeClassRef": reference, "requirements": requirements, "expireAfter": "Never"},
    }
    spec = {"template": template, "disruption": {"consolidateAfter": "5s"}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "all"}, "spec": spec}


def _replica_set(pods: int) -> Json:
    """As many pods as wanted, of 8 KB each, that fill a node of one type."""
    labels = {"app.kubernetes.io/name": "service-first"}
    sample = live_objects.pod(0)
    containers = [
        {name: value for name, value in container.items() if name != "volumeMounts"}
        for container in sample["spec"]["containers"]
    ]
    for container in containers:
        container["resources"] = {"requests": {"cpu": f"{_CPU_OF_PODS_M // pods // len(containers)}m"}}
    metadata = {"labels": labels, "annotations": sample["metadata"]["annotations"]}
    spec = {"nodeSelector": {"node.kubernetes.io/instance-type": _TYPE}, "containers": containers}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "service-first", "namespace": "default"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def response(nodes: int = 1_000, pods: int = 30) -> dict[str, float]:
    """Seconds beyond the batch window from a pod to the NodeClaim it needs, by the API server's clock.

    Some pods at once, in turn; each round ends when all that wait have their NodeClaim.
    """
    chance = random.Random(1)
    with filled(nodes, pods) as installation:
        plane = installation.plane
        for name in reversed(_FOLLOWERS):
            plane.program(name).start()
        installation.start()
        plane.wait_until(lambda: len(plane.list("leases", "kube-node-lease")) >= nodes, 300, "kwok to hold all nodes")
        for number in range(_ROUNDS):
            created = [_lone_pod(f"lone-{number}-{n}", chance) for n in range(chance.randint(1, _MOST_AT_ONCE))]
            for pod in created:
                plane.request("POST", "/api/v1/namespaces/default/pods", pod).good("create a pod")
            while not _is_answered(plane, created):
                time.sleep(_LOOK_S)
        times = sorted(_responses(plane))
    print(f"{len(times)} pods, median {times[len(times) // 2]:.2f} s", file=sys.stderr)
    return {"server_pod_to_claim_p99_s": times[len(times) * 99 // 100]}


def _lone_pod(name: str, chance: random.Random) -> Json:
    requests = {"cpu": f"{chance.choice((3_500, 7_500, 15_500))}m", "memory": f"{chance.randint(1, 24)}Gi"}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"lone": "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _is_answered(plane: ControlPlane, pods: Sequence[Json]) -> bool:
    return {f"default/{pod['metadata']['name']}" for pod in pods} <= _planned(plane).keys() | _bound(plane)


def _planned(plane: ControlPlane) -> dict[str, list[str]]:
    """By `namespace/name` of each lone pod the NodeClaims that were created for it: the first, and any after it.

    Others follow where kube-scheduler has given its place to another pod.
    """
    found: dict[str, list[str]] = {}
    for claim in plane.list("nodeclaims"):
        for pod in json.loads(claim["metadata"]["annotations"][PLANNED_PODS]):
            if pod.startswith("default/lone-"):
                found.setdefault(pod, []).append(claim["metadata"]["name"])
    return found


def _bound(plane: ControlPlane) -> set[str]:
    """Pods that found room on a node that there was."""
    lone = plane.list("pods", "default", selector="lone=true")
    return {f"default/{pod['metadata']['name']}" for pod in lone if pod["spec"].get("nodeName")}


def _responses(plane: ControlPlane) -> Iterator[float]:
    planned_for = _planned(plane)
    claims, pods = _times(plane, "nodeclaims"), _times(plane, "pods")
    for pod, planned in planned_for.items():
        batch = pod.rpartition("-")[0].removeprefix("default/")
        if int(batch.rpartition("-")[2]) < _WARM_UP:
            continue
        last_s = max(at_s for name, at_s in pods.items() if name.startswith(f"{batch}-"))
        yield min(claims[claim] for claim in planned) - last_s - _BATCH_IDLE_S


def _times(plane: ControlPlane, resource: str, verb: str = "create") -> dict[str, float]:
    """By name when each object of a resource was created, or last had what `verb` says."""
    return {
        event["objectRef"].get("name", ""): datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        for event in plane.audit_events()
        if event["verb"] == verb
        and event["objectRef"].get("resource") == resource
        and not event["objectRef"].get("subresource")
        and event["responseStatus"].get("code") in (200, 201)
    }


def start(nodes: int = 5_000, pods: int = 20) -> dict[str, float]:
    """Seconds until a new process is ready, MiB it has taken at most, and what it takes after: percent of a core, and
    loops of ten million steps a minute, which another machine takes as well.

    It is quiet but for each node's status once in five minutes, as kubelet sends it.
    """
    with filled(nodes, pods) as installation:
        began = time.monotonic()
        replica = installation.run()
        installation.plane.wait_until(lambda: replica.ready()[0], 300, "Kerf to be ready")
        started_s = time.monotonic() - began
        _beat(installation.plane, nodes, _QUIET_S / 2)
        before_s, began = _cpu_s(replica), time.monotonic()
        _beat(installation.plane, nodes, _QUIET_S)
        idle_s, loop = (_cpu_s(replica) - before_s) / (time.monotonic() - began) * 60, loop_s()
        return {
            "server_start_s": started_s,
            "server_peak_rss_mib": _peak_rss_mib(replica),
            "server_idle_percent": idle_s / 60 * 100,
            "server_idle_loops_a_minute": idle_s / loop,
        }


def _beat(plane: ControlPlane, nodes: int, for_s: float) -> None:
    names = [node["metadata"]["name"] for node in plane.list("nodes")]
    began, beats = time.monotonic(), 0
    while (now := time.monotonic()) < began + for_s:
        path = f"/api/v1/nodes/{names[beats % nodes]}/status"
        told = datetime.now().astimezone().isoformat(timespec="seconds")
        patch = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": told}]}}
        content_type = "application/strategic-merge-patch+json"
        plane.request("PATCH", path, patch, content_type=content_type).good(path)
        beats += 1
        time.sleep(max(0.0, began + beats * _HEARTBEAT_S / nodes - now))


def commands(nodes: int = 1_000, pods: int = 20) -> dict[str, float]:
    """CPU in loops of `bench_openb` and MiB that commands take to look at a cluster of so many nodes with so many pods
    of 8 KB on each."""
    figures: dict[str, float] = {}
    with filled(nodes, pods) as installation:
        plane = installation.plane
        (pod, *_) = (each["metadata"]["name"] for each in plane.list("pods", "default"))
        for command in (("plan",), ("nodes",), ("explain", f"pod/{pod}"), ("lint",)):
            seconds, mib = measured([*command, f"--kubeconfig={plane.kubeconfig()}"])
            figures |= {f"server_{command[0]}_loops": seconds / loop_s(), f"server_{command[0]}_mib": mib}
    return figures


def long_plan(for_s: int = 15) -> dict[str, float]:
    """Seconds in which 99 of 100 probes of /readyz are answered while one plan is made, for 500 pods."""
    with TemporaryDirectory() as folder, hosted(programs(), with_hami=False) as plane:
        plans = LongPlans(Path(folder))
        install(plane, HURRIED)
        replica = Installation(plane, plans.program).start()
        plane.apply([_pool(_GENERAL)])
        plans.lengthen("decide", for_s)
        chance = random.Random(1)
        for number in range(500):
            pod = _lone_pod(f"lone-{number}", chance)
            plane.request("POST", "/api/v1/namespaces/default/pods", pod).good("create a pod")
        plane.wait_until(lambda: plans.has_begun, 60, "the plan to begin")
        answers = plans.probed(replica)
    if len(answers) < _LEAST_PROBES:
        raise SystemExit(f"expected {_LEAST_PROBES} answers while the plan was made, got {len(answers)}")
    print(f"{len(answers)} probes, median {sorted(answers)[len(answers) // 2]:.3f} s", file=sys.stderr)
    return {"server_readyz_during_plan_p99_s": p99(answers)}


def notice() -> dict[str, float]:
    """Seconds from a spot notice for four nodes with twenty pods in slices to the last NodeClaim in their place.

    It has come when Kerf ends the first of their NodeClaims, once its reason is noted. Times are the API server's.
    """
    with hosted(programs(), with_hami=True) as plane:
        installation = install(plane, HURRIED)
        plane.apply([_pool({"node.kubernetes.io/instance-type": ["g5.xlarge"]}, {"gpu": "on"}), _sliced(20)])
        installation.start()
        plane.wait_until(lambda: _running(plane) == 20, 300, "twenty pods to run")
        before = _times(plane, "nodeclaims")
        nodes = [node["metadata"]["name"] for node in plane.list("nodes")]
        plane.kubectl("annotate", "node", *nodes, f"{INTERRUPT}=true")
        plane.wait_until(lambda: not {*nodes} & {node["metadata"]["name"] for node in plane.list("nodes")}, 300, "ends")
        plane.wait_until(lambda: _running(plane) == 20, 300, "twenty pods to run again")
        ended_s = min(_times(plane, "nodeclaims", "delete").values())
        new_s = [at_s for name, at_s in _times(plane, "nodeclaims").items() if name not in before]
    print(f"{len(nodes)} nodes, {len(new_s)} NodeClaims in their place", file=sys.stderr)
    return {"server_notice_to_claims_s": max(new_s) - ended_s}


def _sliced(pods: int) -> Json:
    """A Deployment of pods with 4,500 MiB of a card each: a card of 24 GB holds five."""
    resources = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4500"}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"limits": resources}}
    template = {
        "metadata": {"labels": {"app": "sliced"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "sliced", "namespace": "default"},
        "spec": {"replicas": pods, "selector": {"matchLabels": {"app": "sliced"}}, "template": template},
    }


def _running(plane: ControlPlane) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in plane.list("pods", "default"))


def _cpu_s(replica: Replica) -> float:
    fields = Path(f"/proc/{replica.program.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_rss_mib(replica: Replica) -> float:
    status = Path(f"/proc/{replica.program.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    sets: dict[str, Callable[..., dict[str, float]]]
    sets = {"response": response, "start": start, "commands": commands, "long-plan": long_plan, "notice": notice}
    print(json.dumps(sets[sys.argv[1]](*map(int, sys.argv[2:]))))
