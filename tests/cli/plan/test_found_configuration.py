"""The configuration of GPU plugins is found as the plugins find it: by what they mount and name, else by its form."""

import json
from typing import Any

import pytest

from tests.cli.program import Result, kerf

Json = dict[str, Any]
HAMIS_NAME = "hami-scheduler-device"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
SLICED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


def pool(labels: dict[str, str] | None = None, taint: str = "") -> Json:
    """A NodePool that buys g5.xlarge, which has one card, on demand."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    spec: Json = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": requirements,
    }
    if taint:
        spec["taints"] = [{"key": taint, "effect": "NoSchedule"}]
    template = {"metadata": {"labels": labels or {}}, "spec": spec}
    metadata = {"name": "gpu"}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": {"template": template}}


def pods(number: int, taint: str = "", **limits: int) -> list[Json]:
    """That many pods with these limits of `nvidia.com`."""
    spec: Json = {
        "containers": [
            {"name": "c", "image": "x", "resources": {"limits": {f"nvidia.com/{k}": str(v) for k, v in limits.items()}}}
        ]
    }
    if taint:
        spec["tolerations"] = [{"key": taint, "operator": "Exists"}]
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": spec} for i in range(number)]


def config_map(name: str, namespace: str, **data: str) -> Json:
    """A ConfigMap with these texts."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def hamis_map(name: str = HAMIS_NAME, namespace: str = "kube-system", slots: int = 1) -> Json:
    """HAMi's device configuration, with so many slots a card."""
    return config_map(name, namespace, **{"device-config.yaml": f"nvidia: {{deviceSplitCount: {slots}}}"})


def hamis_plugin(
    mounts: str = "", name: str = "hami-device-plugin", namespace: str = "kube-system", tolerates: str = ""
) -> Json:
    """HAMi's DaemonSet, as its chart makes it; with the ConfigMap that it mounts, where that is given."""
    container: Json = {"name": "device-plugin", "image": "docker.io/projecthami/hami:v2.10.0"}
    spec: Json = {"nodeSelector": {"gpu": "on"}, "containers": [container]}
    if mounts:
        path = "device-config.yaml"
        container["volumeMounts"] = [{"name": "device-config", "mountPath": f"/{path}", "subPath": path}]
        spec["volumes"] = [{"name": "device-config", "configMap": {"name": mounts}}]
    if tolerates:
        spec["tolerations"] = [{"key": tolerates, "operator": "Exists"}]
    return _workload("DaemonSet", name, namespace, "hami-device-plugin", spec)


def hamis_scheduler(
    mounts: str, namespace: str = "kube-system", name: str = "hami-scheduler", replicas: int = 1
) -> Json:
    """The Deployment of HAMi's scheduler, as its chart makes it."""
    path = "device-config.yaml"
    extender = {
        "name": "vgpu-scheduler-extender",
        "image": "projecthami/hami:v2.10.0",
        "volumeMounts": [{"name": "device-config", "mountPath": f"/{path}", "subPath": path}],
    }
    spec = {"containers": [extender], "volumes": [{"name": "device-config", "configMap": {"name": mounts}}]}
    made = _workload("Deployment", name, namespace, "hami-scheduler", spec)
    made["spec"]["replicas"] = replicas
    return made


def reads(volume: Json, *arguments: str, path: str = "/device-config.yaml", **mount: str) -> Json:
    """HAMi's scheduler with this volume there."""
    made = hamis_scheduler("")
    spec = made["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "device-config", **volume}]
    spec["containers"][0]["volumeMounts"] = [{"name": "device-config", "mountPath": path, **mount}]
    spec["containers"][0]["command"] = ["scheduler", *arguments]
    return made


def nvidias_plugin(
    mounts: str = "", namespace: str = "nvidia-device-plugin", tag: str = "v0.17.4", tolerates: str = ""
) -> Json:
    """The DaemonSet of the chart of NVIDIA's plugin; with its configuration manager where a ConfigMap is given."""
    image = f"nvcr.io/nvidia/k8s-device-plugin:{tag}"
    container: Json = {"name": "nvidia-device-plugin-ctr", "image": image}
    spec: Json = {"containers": [container]}
    if mounts:
        variables = {"DEFAULT_CONFIG": "", "FALLBACK_STRATEGIES": "named,single", "CONFIG_FILE": "/config/config.yaml"}
        container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
        container["volumeMounts"] = [
            {"name": "available-configs", "mountPath": "/available-configs"},
            {"name": "config", "mountPath": "/config"},
        ]
        spec["volumes"] = [
            {"name": "available-configs", "configMap": {"name": mounts}},
            {"name": "config", "emptyDir": {}},
        ]
    if tolerates:
        spec["tolerations"] = [{"key": tolerates, "operator": "Exists"}]
    return _workload("DaemonSet", "nvdp-nvidia-device-plugin", namespace, "", spec)


def _workload(kind: str, name: str, namespace: str, component: str, spec: Json) -> Json:
    labels = {"app.kubernetes.io/component": component} if component else {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def policy(name: str, default: str = "", namespace: str = "", version: str = "") -> Json:
    """The GPU operator's ClusterPolicy, whose plugin reads that ConfigMap."""
    plugin: Json = {"enabled": True, "config": {"name": name, "default": default}}
    if version:
        plugin["version"] = version
    raw = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    return {**raw, "spec": {"devicePlugin": plugin}, "status": {"namespace": namespace}}


def plan(*objects: Json, command: str = "plan") -> Result:
    """The plan for these objects."""
    return kerf(command, "-f", "-", stdin="\n".join(f"---\n{json.dumps(each)}" for each in objects))


def nodes(result: Result) -> int:
    """How many nodes a plan buys."""
    launches = [line for line in result.stdout.splitlines() if " launch " in line]
    return sum(int(line.split()[2]) if line.split()[2].isdigit() else 1 for line in launches)


VOLCANOS = "nvidia: {resourceCountName: volcano.sh/vgpu-number, deviceSplitCount: 1}"
SLICES = pods(4, gpu=1, gpumem=2000)
HAMIS_POOL = pool({"gpu": "on"})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ((hamis_map("gpu-hami-scheduler-device"), hamis_plugin(name="gpu-hami-device-plugin")), 4),
        ((hamis_map("any-name"), hamis_plugin()), 4),
        ((hamis_map("any-name"),), 4),
        ((hamis_map("mine"), hamis_map(slots=10), hamis_plugin("mine")), 4),
        ((hamis_map("mine"), hamis_map(slots=10), hamis_scheduler("mine")), 4),
        ((hamis_map("gpu-scheduler-device"), hamis_map(slots=10), hamis_plugin(name="gpu-device-plugin")), 4),
        ((hamis_map(namespace="hami-system"), hamis_map(slots=10), hamis_plugin(namespace="hami-system")), 4),
        ((hamis_map(), hamis_map("old", slots=10)), 4),
        ((hamis_map("kerf-gpu-sharing"), hamis_plugin("mine")), 4),
        ((hamis_map(namespace="hami-system"), hamis_plugin(HAMIS_NAME)), 1),
        ((hamis_map("any-name", namespace="tenant"), hamis_plugin()), 1),
        ((config_map("volcanos", "kube-system", **{"device-config.yaml": VOLCANOS}), hamis_plugin()), 1),
    ],
    ids=[
        "release",
        "form",
        "form-alone",
        "mounted",
        "scheduler-mounts",
        "release-of-several",
        "namespace-of-plugin",
        "charts-name",
        "copy",
        "not-where-it-is-mounted",
        "a-tenants",
        "volcanos",
    ],
)
def test_hamis_config_map_is_the_one_that_its_programs_mount_else_one_of_its_form(
    objects: tuple[Json, ...], expected: int
) -> None:
    """Whatever the release is called. One slot a card needs four cards; ten slots, as by default, need one."""
    assert expected == nodes(plan(HAMIS_POOL, *objects, *SLICES))


def test_maps_that_hami_does_not_read_are_named() -> None:
    """One that is passed over, and one that is mounted and not there."""
    several = plan(HAMIS_POOL, hamis_map("mine"), hamis_map(slots=10), hamis_plugin("mine"), *SLICES).stdout
    absent = plan(HAMIS_POOL, hamis_map(namespace="hami-system"), hamis_plugin(HAMIS_NAME), *SLICES).stdout

    assert "ConfigMap kube-system/hami-scheduler-device: passed over, because HAMi reads kube-system/mine" in several
    reads = (
        "DaemonSet kube-system/hami-device-plugin reads the ConfigMap hami-scheduler-device of namespace kube-system"
    )
    assert f"{reads}, and none was read there; the one of namespace hami-system is not mounted" in absent


@pytest.mark.parametrize(
    "off",
    ["version: v1\n", "", "{}", '{"version": "v1"}', "resources: {gpus: [{pattern: '*', name: gpu}]}", "flags: {}"],
)
@pytest.mark.parametrize("by", ["policy", "plugin", "form"])
def test_every_key_of_the_map_that_a_plugin_reads_is_a_configuration(off: str, by: str) -> None:
    """`version: v1` alone switches sharing off; so does whatever says nothing of it, in any style."""
    place = "nvidia-device-plugin" if by == "plugin" else "gpu-operator"
    held = config_map("mine", place, default=SLICED, off=off)
    reader = {"policy": [policy("mine", "default")], "plugin": [nvidias_plugin("mine")], "form": []}[by]
    asked = pods(4, gpu=1)

    assert 4 == nodes(plan(pool({CONFIG_LABEL: "off"}), held, *reader, *asked))
    assert 1 == nodes(plan(pool({CONFIG_LABEL: "default"}), held, *reader, *asked))
    linted = plan(pool({CONFIG_LABEL: "off"}), held, *reader, command="lint").stdout
    assert "KL037" not in linted


def test_json_is_a_configuration_too() -> None:
    """The plugin's reader takes either; without a version it takes the first."""
    text = json.dumps({"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}})
    held = config_map("mine", "gpu-operator", any=text)

    assert 1 == nodes(plan(pool({CONFIG_LABEL: "any"}), held, *pods(4, gpu=1)))


@pytest.mark.parametrize(
    ("held_in", "operators", "expected"),
    [
        ("kube-system", "", 4),
        ("gpu-operator", "", 1),
        ("nvidia-gpu-operator", "", 1),
        ("kube-system", "kube-system", 1),
        ("gpu-operator", "nvidia-gpu-operator", 4),
    ],
)
def test_the_operator_reads_the_config_map_of_its_own_namespace(held_in: str, operators: str, expected: int) -> None:
    """As its status says; where that is not known, one of the namespaces that its documentation installs it in."""
    held = config_map("mine", held_in, any=SLICED)
    found = plan(pool(), held, policy("mine", "any", operators), *pods(4, gpu=1))

    assert expected == nodes(found)
    assert ("is not mounted" in found.stdout) is (expected == 4)


def test_each_plugin_has_the_configurations_of_the_map_that_it_mounts() -> None:
    """Two charts of one plugin on two kinds of nodes: a name is looked up in the map of the plugin that runs there."""
    two = nvidias_plugin("two", "kube-system")
    two["spec"]["template"]["spec"]["nodeSelector"] = {"half": "2"}
    four = nvidias_plugin("four")
    four["spec"]["template"]["spec"]["nodeSelector"] = {"half": "4"}
    maps = [
        config_map("two", "kube-system", any=SLICED.replace("4", "2")),
        config_map("four", "nvidia-device-plugin", any=SLICED),
    ]

    assert [2, 1] == [
        nodes(plan(pool({"half": half, CONFIG_LABEL: "any"}), two, four, *maps, *pods(4, gpu=1))) for half in "24"
    ]


@pytest.mark.parametrize("tolerates", ["", "nvidia.com/gpu"])
@pytest.mark.parametrize("whose", ["hami", "nvidia"])
def test_a_taint_that_the_plugin_does_not_tolerate_keeps_its_cards_away(whose: str, tolerates: str) -> None:
    """What its DaemonSet says is read: with the toleration nodes are bought, without it the pods have the reason."""
    taint = "nvidia.com/gpu"
    plugin = hamis_plugin(tolerates=tolerates) if whose == "hami" else nvidias_plugin(tolerates=tolerates)
    asked = pods(1, taint, gpu=1, gpumem=2000) if whose == "hami" else pods(1, taint, gpu=1)
    found = plan(pool({"gpu": "on"}, taint) if whose == "hami" else pool(taint=taint), plugin, *asked)

    assert (1 if tolerates else 0) == nodes(found)
    assert ("does not tolerate the taint nvidia.com/gpu:NoSchedule" in found.stdout) is not bool(tolerates)
    assert "unless HAMi's device plugin was installed with a toleration" not in found.stdout


def test_the_operators_plugin_tolerates_what_its_policy_states() -> None:
    """`spec.daemonsets.tolerations`; where a policy states none the operator's own hold, of nvidia.com/gpu."""
    stated = policy("")
    stated["spec"]["daemonsets"] = {"tolerations": [{"key": "mine", "operator": "Exists"}]}
    counts = [
        nodes(plan(pool(taint=taint), asked, *pods(1, taint, gpu=1)))
        for asked in (policy(""), stated)
        for taint in ("nvidia.com/gpu", "mine")
    ]

    assert [1, 0, 0, 1] == counts


MPS = "version: v1\nsharing: {mps: {%sresources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


@pytest.mark.parametrize(
    ("stated", "tag", "expected"),
    [
        ("failRequestsGreaterThanOne: false, ", "v0.20.0", 1),
        ("failRequestsGreaterThanOne: false, ", "v1.2-ubi9", 1),
        ("failRequestsGreaterThanOne: false, ", "v0.19.3", 0),
        ("failRequestsGreaterThanOne: false, ", "", 1),
        ("failRequestsGreaterThanOne: true, ", "v0.20.0", 0),
        ("", "v0.20.0", 0),
    ],
)
def test_mps_gives_a_container_several_replicas_from_020_on_where_configured_so(
    stated: str, tag: str, expected: int
) -> None:
    """By the version of the plugin's image; where none says it, that is said, and a version that heeds it assumed."""
    reader = policy("mine", "any", "gpu-operator", tag)
    found = plan(pool(), config_map("mine", "gpu-operator", any=MPS % stated), reader, *pods(1, gpu=4))
    by_image = plan(
        pool(),
        config_map("mine", "nvidia-device-plugin", any=MPS % stated),
        nvidias_plugin("mine", tag=tag),
        *pods(1, gpu=4),
    )

    assert [expected, expected] == [nodes(found), nodes(by_image)]
    assert ("from version 0.20 on" in found.stdout) is (not tag)


@pytest.mark.parametrize(
    ("label", "expected", "said"),
    [
        ("good", 1, "left out: ConfigMap gpu-operator/mine"),
        ("bad", 0, 'data["bad"].sharing.timeSlicing.resources[0].replicas: expected a whole number from 2, got 1'),
    ],
)
def test_a_bad_configuration_is_left_out_and_stops_only_who_uses_it(label: str, expected: int, said: str) -> None:
    """Whoever names another configuration of the same map has the plan of before."""
    held = config_map("mine", "gpu-operator", good=SLICED, bad=SLICED.replace("4", "1"))
    found = plan(pool({CONFIG_LABEL: label}), held, policy("mine"), *pods(4, gpu=1))

    assert expected == nodes(found)
    assert (0 if expected else 3) == found.returncode
    assert said in found.stdout + found.stderr


@pytest.mark.parametrize("text", ["nvidia: {deviceSplitCount: many}", "nvidia: ["])
def test_a_bad_map_of_hami_stops_only_hamis_pools(text: str) -> None:
    """Pods of other pools have their nodes; those of HAMi's have the reason."""
    bad = config_map(HAMIS_NAME, "kube-system", **{"device-config.yaml": text})
    others, own = plan(pool(), bad, *pods(1, gpu=1)), plan(HAMIS_POOL, bad, *SLICES)

    assert [1, 0] == [nodes(others), nodes(own)]
    assert f"ConfigMap kube-system/{HAMIS_NAME}" in own.stdout
    assert "left out: ConfigMap kube-system/" in others.stderr


def test_two_maps_that_could_be_hamis_are_an_open_question() -> None:
    """Where nothing says which of them it reads, HAMi's pools get no node, and both maps are named."""
    maps = [hamis_map(namespace=place, slots=slots) for place, slots in (("kube-system", 1), ("hami-system", 2))]
    found = plan(HAMIS_POOL, *maps, *SLICES)

    assert 0 == nodes(found)
    assert f"hami-system/{HAMIS_NAME}, kube-system/{HAMIS_NAME}" in found.stdout


def test_a_dump_decides_as_its_objects_do() -> None:
    """What is read of DaemonSets, Deployments and the policy is in a dump; what else they mount is not."""
    secret = hamis_plugin("mine")
    secret["spec"]["template"]["spec"]["volumes"].append({"name": "s", "configMap": {"name": "very-secret"}})
    objects = (HAMIS_POOL, hamis_map("mine"), hamis_map(slots=10), secret, hamis_scheduler("mine"), *SLICES)
    dumped = plan(*objects, command="snapshot").stdout

    assert "very-secret" not in dumped
    assert 4 == nodes(kerf("plan", "-f", "-", stdin=dumped))
    mps = (pool(), config_map("m", "gpu-operator", any=MPS % "failRequestsGreaterThanOne: false, "), *pods(1, gpu=4))
    old = plan(*mps, policy("m", "any", "gpu-operator", "v0.17.1"), command="snapshot").stdout
    assert 0 == nodes(kerf("plan", "-f", "-", stdin=old))


FLAG = "--device-config-file"
ONE_SLOT, ITEMS = "nvidia: {deviceSplitCount: 1}", [{"key": "dc.yml", "path": "device-config.yaml"}]
KEYED = config_map("zzz", "kube-system", **{"dc.yml": ONE_SLOT})
FILE = {"subPath": "device-config.yaml"}
MOUNTS: dict[str, tuple[Json, Json]] = {
    "projected": (
        reads({"projected": {"sources": [{"configMap": {"name": "zzz"}}]}}, **FILE),
        hamis_map("zzz"),
    ),
    "another key": (reads({"configMap": {"name": "zzz", "items": ITEMS}}, **FILE), KEYED),
    "another key, projected": (
        reads({"projected": {"sources": [{"secret": {}}, {"configMap": {"name": "zzz", "items": ITEMS}}]}}, **FILE),
        KEYED,
    ),
    "another key by the path in the volume": (
        reads({"configMap": {"name": "zzz"}}, subPath="dc.yml"),
        KEYED,
    ),
    "a folder, by the flag": (
        reads({"configMap": {"name": "zzz"}}, "--device-config-file=/etc/hami/dc.yml", path="/etc/hami"),
        KEYED,
    ),
    "a folder, by the flag and its value": (
        reads({"configMap": {"name": "zzz", "items": ITEMS}}, FLAG, "/c/device-config.yaml", path="/c/"),
        KEYED,
    ),
}


@pytest.mark.parametrize(("scheduler", "read"), MOUNTS.values(), ids=list(MOUNTS))
def test_hamis_file_is_found_however_a_configmap_is_mounted(scheduler: Json, read: Json) -> None:
    """One slot a card, as that map says; the one with the chart's name is passed over."""
    done = plan(HAMIS_POOL, scheduler, read, hamis_map(slots=10), *SLICES)

    assert "GPUs: 4 paid, 4 allocated" in done.stdout
    assert "hami-scheduler-device: passed over, because HAMi reads kube-system/zzz" in done.stdout


def test_a_copy_of_a_map_with_another_key_is_read_by_that_key() -> None:
    """As `kerf run` sees it, which reads by name."""
    copy = config_map("kerf-gpu-sharing", "kube-system", **KEYED["data"])

    assert 4 == nodes(plan(HAMIS_POOL, MOUNTS["another key"][0], copy, *SLICES))


def test_a_mounted_map_without_hamis_file_is_named() -> None:
    """HAMi does not start with it."""
    done = plan(HAMIS_POOL, MOUNTS["another key"][0], config_map("zzz", "kube-system", other="x"), *SLICES)

    assert 'kube-system/zzz: data["dc.yml"]: expected HAMi\'s device configuration, got <nothing>' in done.stdout


@pytest.mark.parametrize(("scheduler", "read"), MOUNTS.values(), ids=list(MOUNTS))
def test_a_dump_has_the_map_that_is_mounted(scheduler: Json, read: Json) -> None:
    """And plans as its cluster."""
    dump = plan(HAMIS_POOL, scheduler, read, hamis_map(slots=10), *SLICES, command="snapshot").stdout

    assert "GPUs: 4 paid, 4 allocated" in kerf("plan", "-f", "-", stdin=dump).stdout


OLD, NEW = hamis_map("old", slots=10), hamis_map("new", "hami-system")


@pytest.mark.parametrize("replicas", [0, 1])
def test_the_scheduler_that_runs_says_which_map_counts(replicas: int) -> None:
    """An old one without replicas reads nothing; with two that run nothing says which."""
    schedulers = hamis_scheduler("old", name="old", replicas=replicas), hamis_scheduler("new", "hami-system")
    done = plan(HAMIS_POOL, *schedulers, OLD, NEW, *SLICES)

    assert (replicas == 0) == ("5 pods placed, 0 not" in done.stdout)
    assert (replicas == 1) == ("have different device configurations of HAMi" in done.stdout)
    assert 4 == nodes(plan(HAMIS_POOL, hamis_scheduler("new", "hami-system", replicas=0), NEW, *SLICES))


def test_the_charts_name_is_a_guess_where_no_program_is_seen() -> None:
    """It is said as one where the others say something else, and no longer where a program is seen."""
    guess = "on the guess that HAMi reads kube-system/hami-scheduler-device"

    assert guess in plan(HAMIS_POOL, hamis_map(), NEW_DIFFERS, *SLICES).stdout
    assert guess not in plan(HAMIS_POOL, hamis_map(), NEW, *SLICES).stdout
    assert guess not in plan(HAMIS_POOL, hamis_map(), NEW_DIFFERS, hamis_plugin(HAMIS_NAME), *SLICES).stdout


NEW_DIFFERS = hamis_map("new", "hami-system", 2)


def test_each_key_of_the_map_that_a_policy_names_must_be_a_configuration() -> None:
    """Plan and lint name one that is none, whatever its form; of a map that no plugin names it is nothing."""
    maps = config_map("mine", "gpu-operator", any=SLICED, notes="hello")
    text = "data[\"notes\"]: expected a mapping, got 'hello'; NVIDIA's device plugin does not start on a node that has"
    asked = pods(1, gpu=1)

    assert f"note: ConfigMap gpu-operator/mine: {text}" in plan(pool(), policy("mine", "any"), maps, *asked).stdout
    linted = plan(pool(), policy("mine", "any"), maps, command="lint").stdout
    assert [text in line for line in linted.splitlines() if "KL006" in line] == [True]
    assert text not in plan(pool(), maps, *asked).stdout
