"""A tenant with all rights in one namespace, who means harm: no other waits, nothing is bought above its quota."""

import time
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kerf.model.promises import read
from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.group_definitions import definitions
from tests.controlplane.test_crashes import deployment, short_lived
from tests.controlplane.test_gangs import ATOMIC
from tests.controlplane.test_live_commands import Reader
from tools.controlplane.installation import NAMESPACE
from tools.controlplane.server import Binaries

Json = dict[str, Any]
MEAN = "mean"
GPU = {"nvidia.com/gpu": "1"}
ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202edrawkcab\x9b2J\r\n\ttail"
ALIASES = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))])
READ = (
    "kerf.dev/gpu-sharing", "kerf.dev/run-for", "kerf.dev/opportunistic", "hami.io/vgpu-devices-allocated",
    "hami.io/vgpu-node", "nvidia.com/use-gpuuuid", "nvidia.com/use-gputype",
    "autoscaling.x-k8s.io/consume-provisioning-request", "gpu-memory", "gpu-fraction",
)  # fmt: skip


def mine(kind: str, name: str, version: str = "v1", **fields: Any) -> Json:
    """An object in the tenant's own namespace."""
    metadata = {"name": name, "namespace": MEAN, **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def pod_spec(limits: dict[str, str], **fields: Any) -> Json:
    """One container."""
    return {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}], **fields}


def config_maps() -> list[Json]:
    """Under the names that are read where the plugins are installed: another form, a bomb, and no YAML."""
    texts = {"hami-scheduler-device": ALIASES, "device-plugin-config": "sharing: [", "kerf-kwok": "{launch: 9h}"}
    return [
        mine("ConfigMap", name, data={"device-config.yaml": text, "settings": text}) for name, text in texts.items()
    ]


def kept_room() -> list[Json]:
    """A run of twenty GPUs that is due in a while, and a request for fifty at once."""
    never_ends = pod_spec(GPU, restartPolicy="Never")
    job = {"parallelism": 20, "completions": 20, "template": {"spec": never_ends}}
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
    asked = {"provisioningClassName": ATOMIC, "podSets": [{"podTemplateRef": {"name": "fifty"}, "count": 50}]}
    return [
        mine("CronJob", "run", "batch/v1", metadata={"annotations": {"kerf.dev/prewarm": "9000h"}}, spec=cron),
        mine("PodTemplate", "fifty", template={"spec": pod_spec(GPU)}),
        mine("ProvisioningRequest", "fifty", "autoscaling.x-k8s.io/v1", spec=asked),
    ]


def flood(number: int) -> list[Json]:
    """Pods that all differ: some can be served, most never; what is read of them would turn a terminal around."""
    annotations = {"annotations": dict.fromkeys(READ, ESCAPES)}
    sizes = ({"cpu": "1" if each % 50 == 0 else "500", "memory": f"{each + 1}Mi"} for each in range(number))
    return [mine("Pod", f"p-{n}", metadata=annotations, spec=pod_spec(size)) for n, size in enumerate(sizes)]


def bought_for(site: Cluster, namespace: str) -> list[str]:
    """Whom of a namespace claims with GPUs were bought for."""
    claims = [claim for claim in site.plane.list("nodeclaims") if "gpus" in claim["metadata"]["name"]]
    planned = [read(claim["metadata"]["annotations"]).pods for claim in claims]
    return sorted(key for pods in planned for key in pods if key.startswith(f"{namespace}/"))


def turns_the_terminal(text: str) -> set[str]:
    """Characters that move, colour, hide or turn around."""
    return {each for each in text if each != "\n" and unicodedata.category(each) in ("Cc", "Cf")}


@pytest.mark.long
def test_one_tenant_neither_delays_nor_steers_another(binaries: Binaries, tmp_path: Path) -> None:
    """All of it at once; another tenant's pods, with GPUs and without, have their nodes within a minute."""
    with cluster(binaries) as site:
        site.plane.install_crds(definitions())
        site.plane.apply([short_lived("gpus", "g4dn.xlarge", {}), short_lived("plain", "c5.xlarge", {})])
        site.plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEAN}}])
        site.plane.apply([mine("ResourceQuota", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "1"}})])
        replica = site.start()
        site.plane.apply([*config_maps(), *kept_room()])
        for pod in flood(600):
            site.plane.request("POST", f"/api/v1/namespaces/{MEAN}/pods", pod).good("create a pod")

        site.plane.apply([deployment("web", "gpus", 2, GPU), deployment("api", "plain", 2, {"cpu": "2500m"})])
        site.until(lambda: 4 == len(site.pods("Running")), "the other tenant is served", 60)
        assert 1 >= len(bought_for(site, MEAN)), bought_for(site, MEAN)
        assert (True, "ok\n") == replica.ready()

        said = [
            event["message"] for event in site.plane.list("events", "") if event["source"].get("component") == "kerf"
        ]
        assert said
        assert [] == [text for text in said if "\n" in text or turns_the_terminal(text)]
        reader = Reader(site.plane, tmp_path)
        for command in (("plan",), ("nodes",), ("gpus",), ("lint",), ("explain", "pod/p-0", "-n", MEAN)):
            done = reader.kerf(*command)
            assert 2 != done.returncode, done.stderr
            assert set() == turns_the_terminal(done.stdout + done.stderr), command


def hostile(load: str) -> list[Json]:
    """Pods of a namespace that ask so much that a plan for all of them at once would take long."""

    def asking(name: str, affinity: Json) -> Json:
        return mine("Pod", name, spec=pod_spec({"cpu": "1"}, affinity=affinity))

    def averse(number: int) -> Json:
        selectors = ({"matchLabels": {"app": f"a-{number}-{term}"}} for term in range(1_000))
        terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": each} for each in selectors]
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    def choosy(number: int) -> Json:
        asked = ({"key": "team", "operator": "In", "values": [f"t-{number}-{term}"]} for term in range(1_000))
        terms = [{"matchExpressions": [each]} for each in asked]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    if load == "terms":
        return [asking(f"p-{number}", choosy(number)) for number in range(60)]
    if load == "apart":
        return [asking(f"p-{number}", averse(number)) for number in range(40)]
    sizes = ({"cpu": "1" if n % 50 == 0 else "5000", "memory": f"{n % 900 + 1}Mi"} for n in range(1_500))
    return [mine("Pod", f"p-{number}", spec=pod_spec(size)) for number, size in enumerate(sizes)]


@pytest.mark.long
@pytest.mark.parametrize("load", ["terms", "apart", "differing"])
def test_pods_that_ask_much_cost_another_tenant_nothing(binaries: Binaries, load: str) -> None:
    """Its pods have their nodes within the minute that a node takes, its events are all there, and no lease is lost."""
    with cluster(binaries) as site:
        site.plane.apply([short_lived("plain", "c5.xlarge", {})])
        site.plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEAN}}])
        site.start()
        waited = dict[str, float]()
        for name in ("alone", "beside"):
            if name == "beside":
                for pod in hostile(load):
                    site.plane.request("POST", f"/api/v1/namespaces/{MEAN}/pods", pod).good("create a pod")
            begun = time.monotonic()
            site.plane.apply([deployment(name, "plain", 3, {"cpu": "2500m"})])
            site.until(partial(all_run, site, name), f"{name} is served", 60)
            waited[name] = time.monotonic() - begun
        print(f"{load}: {waited}")

        told = {pod["metadata"]["name"]: "TriggeredScaleUp" for pod in running(site, "beside")}
        assert told == {name: reason for name, reason in told.items() if site.events(reason, name)}
        lease = site.plane.get("leases", "kerf-leader-election", NAMESPACE)
        assert lease is not None
        assert 1 >= lease["spec"].get("leaseTransitions", 0)


def all_run(site: Cluster, name: str) -> bool:
    """Whether all pods of that Deployment run."""
    return 3 == len(running(site, name))


def running(site: Cluster, name: str) -> list[Json]:
    """The pods of that Deployment that run."""
    return [pod for pod in site.pods("Running") if pod["metadata"]["labels"].get("app") == name]
