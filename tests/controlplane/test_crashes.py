"""kill -9 of Kerf at every kind of write, before the server has heard of it and before Kerf has heard the answer.

Its next life finds what is there and ends where an undisturbed one ends: every pod runs, nothing is bought twice,
nothing is left behind. The kinds are those of a scale-up and a scale-down; a kind that is new fails the first test.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import FAST, Cluster, cluster
from tests.controlplane.interposer import AFTER, BEFORE, Interposer, Kill
from tests.controlplane.test_following_plans import pool
from tools.controlplane.installation import NAMESPACE
from tools.controlplane.server import Binaries

Json = dict[str, Any]
# Pods that come over a second are one batch all the same: bought one by one, no node would need to be reserved.
FLAGS = (*FAST, "--batch-idle=2500ms", "--batch-max=15s", "--no-leader-elect")
"""A killed leader's lease outlives it by seconds, which `test_replicas.py` waits for and nobody here."""
GROUPS = {
    "buying": (
        "create nodeclaims",
        "patch nodepools/status: status.resources",
        "patch nodeclaims/status: Launched=Unknown",
        "create configmaps",
        "patch nodeclaims: node.kubernetes.io/instance-type",
        "patch nodeclaims/status: Launched=True status.providerID",
        "patch nodeclaims/status: Registered=Unknown",
    ),
    "joining": (
        "create nodes",
        "patch configmaps: data.node",
        "patch nodes: karpenter.sh/registered",
        "patch nodeclaims/status: Registered=True status.nodeName",
        "patch nodeclaims/status: Initialized=Unknown",
        "patch configmaps: data.pluginStarted",
        "patch nodes: hami.io/node-nvidia-register",
        "patch nodes/status: nvidia.com/gpu",
        "patch configmaps: data.registered",
    ),
    "following": (
        "patch pods: nvidia.com/use-gpuuuid",
        "patch pods: test=/metadata/uid add=/spec/tolerations/-",
        "patch nodes: kerf.dev/cordoned=null spec.unschedulable=null",
        "patch nodes: kerf.dev/cordoned=null spec.unschedulable=null kerf.dev/reserved-for",
        "patch nodes: spec.taints=null",
        "patch nodes: karpenter.sh/initialized",
        "patch nodeclaims/status: Initialized=True ConsistentStateFound=True",
        "patch nodes: hami.io/mutex.lock=null",
        "patch pods: hami.io/bind-phase",
    ),
    "watching": (
        "patch pods: kerf.dev/pinned=null nvidia.com/use-gpuuuid=null",
        "patch nodeclaims/status: status.lastPodEventTime",
        "patch nodeclaims: kerf.dev/pods-seen",
        "patch nodeclaims/status: Consolidatable=True",
        "create events",
    ),
    "draining": (
        "patch nodes: karpenter.sh/disrupted",
        "patch nodes: node.kubernetes.io/exclude-from-external-load-balancers",
        "patch nodeclaims/status: Drained=Unknown",
        "create pods/eviction",
        "patch nodeclaims/status: Drained=True VolumesDetached=True",
        "patch nodeclaims/status: InstanceTerminating=True",
        "patch configmaps: data.terminating",
        "patch leases: spec.holderIdentity",
        "patch nodes/status: Ready=Unknown",
        "delete configmaps",
    ),
    "ending": (
        "patch nodeclaims/status: DisruptionReason=True",
        "delete nodeclaims",
        "patch nodes: metadata.finalizers=null",
        "delete nodes",
        "patch nodeclaims: metadata.finalizers=null",
    ),
}
UNTRIED = (
    "create selfsubjectaccessreviews",
    "patch nodes: hami.io/node-handshake",
    "patch nodepools/status: NodeRegistrationHealthy=True",
    "patch nodepools: karpenter.sh/nodepool-hash",
)
"""The first changes nothing, the second is HAMi's device plugin saying every half a minute that it is alive, and the
others are written once for each pool, of which all tests here have the same."""


class Lives:
    """Kerf behind an interposer: whenever it has died it is started again."""

    def __init__(self, site: Cluster, proxy: Interposer) -> None:
        self.site, self.proxy = site, proxy
        command = site.installation.run(*FLAGS, f"--kubeconfig={proxy.kubeconfig()}")
        self._program = command.program
        self._program.kill()
        self._before: tuple[int, int] = (0, 0)

    def begin(self, *kills: Kill) -> None:
        """The first life, and what it and those after it die of."""
        assert [] == self.site.names("nodeclaims"), "an earlier test has left something"
        self.proxy.faults.kills[:] = kills
        self._before = self._counts()
        self._revived()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until it holds, through as many lives as that takes."""
        self.site.until(lambda: self._revived() and holds(), what, 120)

    def end(self) -> None:
        """The last life ends, and nothing is at fault."""
        self._program.kill()
        self.proxy.faults.kills.clear()

    def bought(self) -> tuple[int, int]:
        """How many claims and instances were created since `begin`, by the audit log."""
        claims, instances = self._counts()
        return claims - self._before[0], instances - self._before[1]

    def _counts(self) -> tuple[int, int]:
        created = [
            (event["objectRef"]["resource"], event["objectRef"].get("namespace"))
            for event in self.site.plane.audit_events()
            if event["verb"] == "create" and event["responseStatus"].get("code") == 201
        ]
        return created.count(("nodeclaims", None)), created.count(("configmaps", NAMESPACE))

    def _revived(self) -> bool:
        if self._program.pid is None:
            self._program.start()
        self.proxy.pid = self._program.pid
        return True


@pytest.fixture(scope="module")
def cluster_of_all(binaries: Binaries) -> Iterator[Lives]:
    """Each test leaves it as empty as it was."""
    with cluster(binaries, with_hami=True) as site, Interposer(site.plane) as proxy:
        site.plane.apply([short_lived("slices", "g5.xlarge", {"gpu": "on"}), short_lived("plain", "c5.xlarge", {})])
        yield Lives(site, proxy)


@pytest.fixture
def lives(cluster_of_all: Lives) -> Iterator[Lives]:
    """Kerf, dead, on an empty cluster."""
    yield cluster_of_all
    cluster_of_all.end()


QUICK = ("buying",)
"""The groups that the gate runs; the others are long."""


def short_lived(name: str, instance_type: str, labels: dict[str, str]) -> Json:
    """A pool whose nodes go soon after their last pod."""
    made = pool(instance_type, labels)
    made["metadata"]["name"] = name
    made["spec"]["disruption"]["consolidateAfter"] = "1s"
    return made


def deployment(name: str, node_pool: str, replicas: int, resources: dict[str, str]) -> Json:
    """Pods that end at once when they are asked to."""
    spec = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"karpenter.sh/nodepool": node_pool},
        "containers": [{"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


WORKLOAD = (
    # A large slice and a small one fill a card, which HAMi alone would not find: their pods are pinned.
    deployment("large", "slices", 2, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12000"}),
    deployment("small", "slices", 2, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10500"}),
    # Two that differ and need a node each: their nodes are reserved for them.
    deployment("one", "plain", 1, {"cpu": "2500m"}),
    deployment("other", "plain", 1, {"cpu": "2600m"}),
)


def grow_and_shrink(lives: Lives) -> None:
    """Six pods come to four nodes; two nodes are deleted by hand and replaced; then all goes. Nothing goes wrong."""
    site = lives.site
    site.plane.apply(WORKLOAD)
    lives.until(lambda: 6 == len(site.pods("Running")), "six pods run")
    lives.until(lambda: all(settled(claim) for claim in site.plane.list("nodeclaims")), "four nodes are settled")
    assert (4, 4) == lives.bought()

    deleted = [next(n for n in site.names("nodeclaims") if n.startswith(name)) for name in ("plain", "slices")]
    kept = uids(site, without=deleted)
    for name in deleted:
        site.plane.delete("nodeclaim", name)
    lives.until(lambda: not set(deleted) & set(site.names("nodeclaims")), "the two are gone")
    lives.until(lambda: 6 == len(site.pods("Running")), "six pods run again")
    assert (6, 6) == lives.bought()
    assert kept <= uids(site)

    site.plane.kubectl("scale", "deployment", "--all", "--replicas=0")
    lives.until(lambda: [] == site.names("nodeclaims") == site.names("nodes") == site.instances(), "all is gone")
    assert (6, 6) == lives.bought()


def settled(claim: Json) -> bool:
    """Whether nothing more will be done about it while its pods stay."""
    return any(each["type"] == "Consolidatable" for each in claim.get("status", {}).get("conditions", ()))


def uids(site: Cluster, without: list[str] | None = None) -> set[str]:
    """Of the pods, less those on the nodes of some claims."""
    nodes = [
        c["status"].get("nodeName") for c in site.plane.list("nodeclaims") if c["metadata"]["name"] in (without or ())
    ]
    return {pod["metadata"]["uid"] for pod in site.pods() if pod["spec"].get("nodeName") not in nodes}


def test_every_kind_of_write_is_tried(lives: Lives) -> None:
    """An undisturbed run writes nothing that is not listed above, so that no kind is forgotten."""
    lives.begin()
    grow_and_shrink(lives)

    kinds = (*UNTRIED, *(kind for group in GROUPS.values() for kind in group))
    writes = {str(write): write for write in lives.proxy.seen if write.is_write}
    assert [] == sorted(text for text, write in writes.items() if not any(map(write.is_a, kinds)))
    assert [] == [kind for kind in kinds if not any(write.is_a(kind) for write in writes.values())]


@pytest.mark.parametrize(
    "group", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in GROUPS]
)
def test_a_kill_at_a_write_changes_nothing_that_counts(lives: Lives, group: str) -> None:
    """Each kind of the group, before and after, in as many lives: the same end, with as many claims and instances."""
    kills = [Kill(kind, when) for kind in GROUPS[group] for when in (BEFORE, AFTER)]
    lives.begin(*kills)
    grow_and_shrink(lives)

    assert [] == [f"{kill.when} {kill.kind}" for kill in kills if kill.struck is None]
