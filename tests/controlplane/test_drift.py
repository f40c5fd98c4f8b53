"""A pool whose template changes, on a real server: its nodes are replaced one at a time, and its pods serve on."""

from typing import Any

from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.server import Binaries

Json = dict[str, Any]
NODES = 6


def pool(**labels: str) -> Json:
    """A pool of small nodes that may lose one at a time."""
    sold = {"node.kubernetes.io/instance-type": ["m5.xlarge"], "karpenter.sh/capacity-type": ["on-demand"]}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": key, "operator": "In", "values": values} for key, values in sold.items()],
        },
    }
    disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]}
    spec = {"template": template, "disruption": disruption}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "web"}, "spec": spec}


def workload() -> list[Json]:
    """A pod for each node, of which one may be down, and the budget that says so."""
    labels = {"app": "web"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": NODES, "selector": {"matchLabels": labels}, "template": template}
    named = {"metadata": {"name": "web", "namespace": "default"}}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", **named, "spec": spec},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **named, "spec": budget},
    ]


class Watched:
    """The worst that was seen while nodes were replaced."""

    def __init__(self, site: Cluster) -> None:
        self._site, self._old = site, set(site.names("nodes"))
        self.fewest_pods, self.most_nodes, self.most_going = NODES, 0, 0

    def look(self) -> bool:
        """Take note; whether all nodes are new."""
        site = self._site
        claims = site.plane.list("nodeclaims")
        going = [
            claim
            for claim in claims
            if "deletionTimestamp" in claim["metadata"]
            or "kerf.dev/replaced-by" in claim["metadata"].get("annotations", {})
        ]
        nodes = set(site.names("nodes"))
        self.most_going = max(self.most_going, len(going))
        self.most_nodes = max(self.most_nodes, len(nodes))
        self.fewest_pods = min(self.fewest_pods, len(site.pods("Running")))
        return len(nodes) == NODES and not nodes & self._old and not going


def test_six_drifted_nodes_are_replaced_one_at_a_time(binaries: Binaries) -> None:
    """The new node first; never two at once, never more than one pod down, and none is left over."""
    with cluster(binaries) as site:
        site.plane.apply([pool(), *workload()])
        site.start()
        site.until(lambda: len(site.pods("Running")) == NODES, "they run")
        assert len(site.names("nodes")) == NODES

        seen = Watched(site)
        site.plane.apply([pool(team="ml")])
        site.until(seen.look, "all nodes are new", 240)
        site.until(lambda: len(site.pods("Running")) == NODES, "they run again")

        assert (1, NODES + 1) == (seen.most_going, seen.most_nodes)
        assert seen.fewest_pods >= NODES - 1
        nodes = site.plane.list("nodes")
        assert {"ml"} == {node["metadata"]["labels"].get("team") for node in nodes}
        assert NODES == len(site.instances()) == len(site.events("Replacing"))
        assert not [taint for node in nodes for taint in node["spec"].get("taints", ())]
