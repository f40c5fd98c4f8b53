"""`kerf doctor` names each state in which GPU plugins show no card, or too many, and the command that ends it."""

import json
from typing import Any

import pytest

from tests.cli.plan.test_found_configuration import (
    HAMIS_NAME,
    SLICED,
    Json,
    config_map,
    hamis_map,
    hamis_plugin,
    hamis_scheduler,
    nvidias_plugin,
    policy,
    pool,
)
from tests.cli.program import kerf

GPU, COPY, SLICING = {"gpu": "on"}, "kerf-gpu-sharing", "time-slicing-config"
CARD = {"id": "GPU-0", "count": 10, "devmem": 22888, "devcore": 100, "type": "NVIDIA-A10G", "health": True}


def node(shown: int = 10, handshake: str = "", labels: dict[str, str] | None = None, *, healthy: bool = True) -> Json:
    """A node with one card of ten slots in HAMi's register, of which kubelet shows so many."""
    card = {**CARD, "health": healthy}
    annotations = {"hami.io/node-nvidia-register": json.dumps([card])}
    if handshake:
        annotations["hami.io/node-handshake"] = handshake
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58", "nvidia.com/gpu": str(shown)}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": "n1", "labels": GPU if labels is None else labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


NOW = "2026-11-28T12:00:00Z"


def bare_node(since: str = "2026-11-28T11:50:00Z", shown: int = 10, kind: str = "g5.xlarge") -> Json:
    """A ready node with HAMi's label and no register, that came then."""
    made = node(shown, labels={**GPU, "node.kubernetes.io/instance-type": kind})
    made["metadata"]["annotations"], made["metadata"]["creationTimestamp"] = {}, since
    return made


def doctor(*objects: Json) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the lines that are to be looked at and not ok by what these objects say of plugins."""
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in objects)
    done = kerf("doctor", "-f", "-", "-o", "json", "--now", NOW, stdin=stdin)
    names = ("configuration", "plugins", "hami", "pools")
    return done.returncode, [i for i in done.data["items"] if i["status"] == "check" and i["check"] in names]


MAP = config_map("mine", "gpu-operator", any=SLICED)
PATCH = "kubectl patch clusterpolicies.nvidia.com cluster-policy --type merge -p "
RESTART = (
    "kubectl delete pod -n kube-system -l app.kubernetes.io/component=hami-device-plugin "
    "--field-selector spec.nodeName=n1"
)
BROKEN: dict[str, tuple[list[Json], str]] = {
    "policy's map is missing": (
        [policy("missing", "any"), config_map("other", "kube-system", a="b")],
        "kubectl create configmap missing -n gpu-operator --from-file=any=FILE",
    ),
    "policy's map has another name": (
        [policy("missing", "any"), MAP],
        PATCH + '\'{"spec":{"devicePlugin":{"config":{"name":"mine"}}}}\'',
    ),
    "policy's map is in another namespace": (
        [policy("mine", "any"), config_map("mine", "kube-system", any=SLICED)],
        "kubectl get configmap mine -n kube-system -o json | jq '{apiVersion, kind, data, metadata: "
        '{name: "mine", namespace: "gpu-operator"}}\' | kubectl apply -f -',
    ),
    "policy's default is no key of its map": (
        [policy("mine", "quarter"), MAP],
        PATCH + '\'{"spec":{"devicePlugin":{"config":{"default":"any"}}}}\'',
    ),
    "plugin's map is missing": (
        [nvidias_plugin("mine")],
        "kubectl create configmap mine -n nvidia-device-plugin --from-file=any=FILE",
    ),
    "HAMi's map is missing": (
        [hamis_plugin("mine")],
        "kubectl create configmap mine -n kube-system --from-file=device-config.yaml=FILE",
    ),
    "HAMi's scheduler's map is in another namespace": (
        [hamis_plugin(), hamis_scheduler("mine"), hamis_map("mine", "hami-system")],
        "kubectl get configmap mine -n hami-system -o json | jq '{apiVersion, kind, data, metadata: "
        '{name: "mine", namespace: "kube-system"}}\' | kubectl apply -f -',
    ),
    "HAMi's maps differ": (
        [hamis_map(slots=1), hamis_map(namespace="hami-system", slots=2)],
        "kubectl delete configmap hami-scheduler-device -n kube-system",
    ),
    "a key of the policy's map is no configuration": (
        [policy("mine", "any"), config_map("mine", "gpu-operator", any=SLICED, notes="hello")],
        "kubectl edit configmap mine -n gpu-operator",
    ),
    "a name that a shell would run": (
        [policy("x; rm -rf /$(id)'")],
        "kubectl create configmap 'x; rm -rf /$(id)'\"'\"'' -n gpu-operator --from-file=any=FILE",
    ),
    "a name of two lines": (
        [policy("a\nb")],
        r"kubectl create configmap 'a\nb' -n gpu-operator --from-file=any=FILE",
    ),
    "HAMi names a resource that no server takes": (
        [config_map(HAMIS_NAME, "kube-system", **{"device-config.yaml": "nvidia: {resourceCountName: a b}"})],
        "kubectl edit configmap hami-scheduler-device -n kube-system",
    ),
    "a map cannot be read": (
        [config_map("mine", "gpu-operator", any=SLICED, bad=SLICED.replace("4", "1"))],
        "kubectl edit configmap mine -n gpu-operator",
    ),
    "HAMi and the operator's plugin on a pool": (
        [hamis_plugin(), policy("")],
        'kubectl patch nodepool gpu --type merge -p \'{"spec":{"template":{"metadata":{"labels":'
        '{"nvidia.com/gpu.deploy.device-plugin":"false"}}}}}\'',
    ),
    "HAMi and NVIDIA's own plugin on a pool": (
        [hamis_plugin(), nvidias_plugin()],
        "kubectl delete daemonset nvdp-nvidia-device-plugin -n nvidia-device-plugin",
    ),
    "kubelet shows fewer slots than HAMi": ([hamis_plugin(), node(1)], RESTART),
    "HAMi's scheduler has given up a node": (
        [hamis_plugin(), node(10, "Deleted_2026.11.01 10:00:00")],
        f"kubectl annotate node n1 hami.io/node-handshake- && {RESTART}",
    ),
    "HAMi's scheduler has no replicas": (
        [hamis_plugin(HAMIS_NAME), hamis_map(), hamis_scheduler(HAMIS_NAME, replicas=0)],
        "kubectl scale deployment hami-scheduler -n kube-system --replicas=1",
    ),
    "a node has registered nothing for ten minutes": ([hamis_plugin(), bare_node()], RESTART),
    "and shows kubelet no GPU": ([hamis_plugin(), bare_node(shown=0)], RESTART),
    "kerf run may not read HAMi's map by its name": (
        [hamis_plugin("mine"), hamis_map("mine")],
        "kubectl get configmap mine -n kube-system -o json | jq '{apiVersion, kind, data, metadata: "
        '{name: "kerf-gpu-sharing", namespace: "kube-system"}}\' | kubectl apply -f -',
    ),
    "a taint keeps the plugin off": ([hamis_plugin(), pool(GPU, "nvidia.com/gpu")], "kubectl edit nodepool gpu"),
    "a pool names a configuration that is not there": (
        [policy("mine"), MAP, pool({"nvidia.com/device-plugin.config": "other"})],
        "kubectl edit nodepool gpu",
    ),
}


@pytest.mark.parametrize(("objects", "command"), BROKEN.values(), ids=list(BROKEN))
def test_each_broken_state_is_named_with_the_command_that_ends_it(objects: list[Json], command: str) -> None:
    """Exit 3 instead of `all is ok`."""
    pools = [] if any(each["kind"] == "NodePool" for each in objects) else [pool(GPU)]
    code, found = doctor(*pools, *objects)

    assert 3 == code
    assert any(each["hint"].startswith(command) for each in found), found


SOUND: dict[str, list[Json]] = {
    "policy and its map": [policy(SLICING, "any"), config_map(SLICING, "gpu-operator", any=SLICED)],
    "policy of an operator elsewhere": [
        policy(SLICING, "any", "kube-system"),
        config_map(SLICING, "kube-system", any=SLICED),
    ],
    "HAMi and its map": [hamis_plugin(HAMIS_NAME), hamis_scheduler(HAMIS_NAME), hamis_map(), node()],
    "HAMi, its map of another name, and the copy": [hamis_plugin("mine"), hamis_map("mine"), hamis_map(COPY)],
    "the copy alone": [hamis_plugin("mine"), hamis_map(COPY)],
    "HAMi beside the operator's plugin, on nodes of their own": [
        hamis_plugin(),
        policy(""),
        pool({**GPU, "nvidia.com/gpu.deploy.device-plugin": "false"}),
        node(labels={**GPU, "nvidia.com/gpu.deploy.device-plugin": "false"}),
    ],
    "a broken card shows no slots": [hamis_plugin(), node(0, healthy=False)],
    "a node of another plugin with an old handshake": [nvidias_plugin(), pool(), node(10, "Deleted_1", labels={})],
    "a node that has just come": [hamis_plugin(), bare_node("2026-11-28T11:51:00Z")],
    "a node without cards that has HAMi's label": [hamis_plugin(), bare_node(kind="m5.large")],
    "an old scheduler without replicas": [
        hamis_plugin(HAMIS_NAME),
        hamis_map(),
        hamis_scheduler(HAMIS_NAME),
        hamis_scheduler("old", name="old", replicas=0),
    ],
    "a tolerated taint": [hamis_plugin(tolerates="nvidia.com/gpu"), pool(GPU, "nvidia.com/gpu")],
}


@pytest.mark.parametrize("objects", SOUND.values(), ids=list(SOUND))
def test_what_runs_well_is_not_named(objects: list[Json]) -> None:
    """The same objects, and nothing to look at."""
    pools = [] if any(each["kind"] == "NodePool" for each in objects) else [pool(GPU)]

    assert [] == doctor(*pools, *objects)[1]


DEFAULTS = "gpu-operator,hami-system,kerf-system,kube-system,nvidia-device-plugin,nvidia-gpu-operator"
FOREIGN: dict[str, tuple[list[Json], str, bool]] = {
    "HAMi's plugin": ([hamis_plugin(namespace="ai"), hamis_map(namespace="ai")], "ai", True),
    "HAMi's scheduler alone": ([hamis_scheduler("mine", "ai")], "ai", True),
    "NVIDIA's plugin": ([nvidias_plugin("mine", "ai"), config_map("mine", "ai", any=SLICED)], "ai", True),
    "programs in two namespaces": ([hamis_scheduler("a", "a"), hamis_scheduler("b", "b")], "a,b", True),
    "a program, and a map elsewhere": ([hamis_plugin(namespace="ai"), hamis_map("x", "team")], "ai", True),
    "a map alone": ([hamis_map(namespace="ai")], "ai", False),
    "a map beside one that is read": ([hamis_map(), hamis_map("other", "ai", 2)], "ai", False),
}


@pytest.mark.parametrize(("objects", "added", "runs"), FOREIGN.values(), ids=list(FOREIGN))
def test_what_looks_like_a_plugins_where_none_is_read_is_named_with_the_variable(
    objects: list[Json], added: str, *, runs: bool
) -> None:
    """With it, nothing of that namespace is passed over any more."""
    code, found = doctor(pool(GPU), *objects)
    command = f"export KERF_PLUGIN_NAMESPACES={DEFAULTS},{added}; kerf run takes the same by --plugin-namespaces"
    hint = command if runs else f"where a plugin reads it, {command}"

    assert 3 == code
    assert hint in [each["hint"] for each in found]
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in (pool(GPU), *objects))
    variable = {"KERF_PLUGIN_NAMESPACES": f"{DEFAULTS},{added}"}
    done = kerf("doctor", "-f", "-", stdin=stdin, environment=variable)
    assert not any(f"{place}/" in line for line in done.stderr.splitlines() for place in added.split(","))


def test_a_tenants_map_is_nothing_to_look_at_where_the_plugin_is_seen() -> None:
    """Any user may write one; it is said, and that is all."""
    assert [] == doctor(pool(GPU), hamis_plugin(HAMIS_NAME), hamis_map(), node(), hamis_map("x", "tenant", 2))[1]


def test_a_plugin_elsewhere_is_not_said_to_be_missing() -> None:
    """It is not installed where it is looked for."""
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in (pool(GPU), hamis_scheduler("mine", "ai")))
    items = kerf("doctor", "-f", "-", "-o", "json", stdin=stdin).data["items"]

    assert "HAMi is not installed where it is looked for, but in ai" in [each["found"] for each in items]


def test_of_files_without_daemon_sets_it_is_not_said_that_a_plugin_is_missing() -> None:
    """A dump of some kinds has none, whatever runs; with another DaemonSet it would have the plugin's."""
    other = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "logs", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {
                "metadata": {"labels": {"app": "logs"}},
                "spec": {"containers": [{"name": "main", "image": "logs:1"}]},
            },
        },
    }
    said = []
    for objects in ([pool(GPU)], [pool(GPU), other]):
        stdin = "\n".join(f"---\n{json.dumps(each)}" for each in objects)
        items = kerf("doctor", "-f", "-", "-o", "json", stdin=stdin).data["items"]
        said.append([each["found"] for each in items if each["check"] == "hami"])

    unknown = "HAMi is not seen: the input has no DaemonSet, so whether it is installed is not known"
    assert [[unknown], ["HAMi is not installed"]] == said


def test_kinds_that_a_plan_misses_are_named() -> None:
    """As the notes of a plan name them: where a claim's volume is, is not known."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x"}], "volumes": volumes},
    }
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in (pool(GPU), waiting))
    items = kerf("doctor", "-f", "-", "-o", "json", stdin=stdin).data["items"]

    assert 1 == sum("and the input has no PersistentVolumeClaim" in each["found"] for each in items)


def test_a_claim_that_missed_its_deadline_is_to_be_looked_at() -> None:
    """With what its node lacks, and the command that says more."""
    since = "2026-11-28T10:00:00Z"
    claim: Json = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "c", "uid": "u", "creationTimestamp": since, "labels": {"karpenter.sh/nodepool": "gpu"}},
        "spec": {"nodeClassRef": pool()["spec"]["template"]["spec"]["nodeClassRef"], "requirements": []},
        "status": {
            "providerID": "aws:///a/i",
            "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": since}],
        },
    }
    stdin = "\n".join(f"---\n{json.dumps(each)}" for each in (pool(GPU), claim))
    items = kerf("doctor", "-f", "-", "-o", "json", "--now", NOW, stdin=stdin).data["items"]
    (found,) = [each for each in items if each["check"] == "nodes"]

    assert "check" == found["status"]
    assert found["found"].startswith("NodeClaim c: a deadline was missed, and the node is given up: ")
    assert "kerf explain nodeclaim/c says more" == found["hint"]
    assert 0 == kerf("explain", "nodeclaim/c", "-f", "-", "--now", NOW, stdin=stdin).returncode
