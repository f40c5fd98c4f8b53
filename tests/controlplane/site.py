"""A service account of its own for each test, with exactly the role that Kerf generates, and what it may write to."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kerf.kube.client import ClusterTarget, Forbidden, KubeClient
from kerf.kube.rbac import roles
from kerf.kube.writer import GET_POOL, KubeWriter
from kerf.manifests.decode import decode_object
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.ports import Conflict
from kerf.testing.builders import a_claim
from tests.controlplane.chart import token_kubeconfig
from tools.controlplane.server import ControlPlane

_T = TypeVar("_T")
Object = dict[str, Any]


class Site:
    """A service account with Kerf's role, and a pool, an overlay and a node that bear the name of the namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.name = plane, namespace
        self.user = f"system:serviceaccount:{namespace}:{namespace}"
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        template = {"spec": {"nodeClassRef": reference, "requirements": []}}
        plane.apply([*roles(namespace, namespace)])
        plane.apply(
            [
                self.object("karpenter.sh/v1", "NodePool", spec={"template": template}),
                self.object("karpenter.sh/v1alpha1", "NodeOverlay", spec={"requirements": []}),
                self.object("v1", "Node", annotations={"kwok.x-k8s.io/node": "fake"}),
            ]
        )
        self._kubeconfig = token_kubeconfig(plane, namespace, namespace)

    def object(self, version: str, kind: str, *, spec: Object | None = None, **metadata: Any) -> Object:
        """An object that bears our name."""
        return {"apiVersion": version, "kind": kind, "metadata": {"name": self.name, **metadata}, "spec": spec or {}}

    def run(self, act: Callable[[KubeClient], Awaitable[_T]]) -> _T:
        """What `act` gives with a connection of the service account."""

        async def connected() -> _T:
            client = await KubeClient.connect(ClusterTarget(str(self._kubeconfig)))
            try:
                async with asyncio.timeout(60):
                    await self._until_allowed(client)
                    return await act(client)
            finally:
                await client.close()

        return asyncio.run(connected())

    async def _until_allowed(self, client: KubeClient) -> None:
        # The authoriser follows the roles with a delay of its own.
        while True:
            try:
                await client.call(GET_POOL, name=self.name)
                return
            except Forbidden:
                await asyncio.sleep(0.05)

    def write(self, act: Callable[[KubeWriter], Awaitable[_T]]) -> _T:
        """What `act` gives with a writer."""
        return self.run(lambda client: act(KubeWriter(client)))

    async def settled(self, writer: KubeWriter, change: Callable[[Node], Node]) -> Node:
        """Write the node, whose controllers write it as well: on a conflict look again, as ours do."""
        while True:
            try:
                return await writer.update_node(change(self.node()))
            except Conflict:
                await asyncio.sleep(0.05)

    def patch_node(self, patch: Object) -> None:
        """Write the node as an administrator."""
        kind = "application/merge-patch+json"
        self.plane.request("PATCH", f"/api/v1/nodes/{self.name}", patch, content_type=kind).good("patch node")

    def raw(self, kind: str) -> Object:
        """The object of a kind that bears our name."""
        found = self.plane.get(kind, self.name, self.name)
        assert found is not None
        return found

    def claim(self) -> NodeClaim:
        """A claim that does not exist yet."""
        return a_claim(self.name, pool=self.name, reached=())

    def node(self) -> Node:
        """The node as a controller knows it."""
        value = decode_object(self.raw("Node"))
        assert isinstance(value, Node)
        return value

    def pod(self, *, runs: bool = False) -> Pod:
        """A new pod of our name that no scheduler touches; one that `runs` is on the node, and ready."""
        spec: Object = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"}
        if runs:
            spec["nodeName"] = self.name
        self.plane.apply([self.object("v1", "Pod", spec=spec, namespace=self.name, labels={"app": "web"})])
        if runs:
            self.plane.wait_until(lambda: "True" in conditions(self.raw("Pod"), "Ready"), 30, "the pod is ready")
        value = decode_object(self.raw("Pod"))
        assert isinstance(value, Pod)
        return value

    def close(self) -> None:
        """Take away what is not in the namespace."""
        for kind in ("NodeClaim", "NodeOverlay", "NodePool", "Node", "ClusterRoleBinding", "ClusterRole"):
            resource = kind.lower()
            self.plane.kubectl("delete", resource, self.name, "--ignore-not-found", "--wait=false")
            if self.plane.get(kind, self.name) is not None:
                free = '{"metadata": {"finalizers": null}}'
                self.plane.kubectl("patch", resource, self.name, "--type=merge", "-p", free, check=False)


def conditions(obj: Object, kind: str) -> list[str]:
    """The statuses of the conditions of a type: one, or none."""
    return [c["status"] for c in obj["status"].get("conditions", ()) if c["type"] == kind]
