"""An API and a cloud in virtual time, on which a test starts one controller and watches what it does.

Nobody else is there: no scheduler, no kubelet, no other controller. What those would do a test does by `put`,
`change` and `remove`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kerf.clouds.fake import FakeCloud, Latencies
from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import Controller, Ports, Runtime
from kerf.manifests.decode import decode_object
from kerf.manifests.encode import condition_list, node_claim_object, node_claim_status, node_merged, resource_texts
from kerf.model.market import Market
from kerf.model.nodeclaim import (
    INITIALIZED,
    LAUNCHED,
    READY,
    REGISTERED,
    TERMINATION_FINALIZER,
    TRUE,
    UNREGISTERED_TAINT,
    Condition,
    NodeClaim,
)
from kerf.model.nodes import Node
from kerf.model.plan import Launch, Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, Relisted, Synced
from kerf.model.violations import Violation
from kerf.sim.kubernetes.adapter import SimReader, SimRecorder, SimWriter
from kerf.sim.objects import Json
from kerf.state import ClusterState
from kerf.testing.builders import a_claim, a_node
from tests.clouds.market import MARKET
from tests.sim.world import START_S, World, node, workload

STAGES = (LAUNCHED, REGISTERED, INITIALIZED, READY)
REFUSED = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."

_T = TypeVar("_T")


class Feed:
    """Keeps the plans that were published, with the seconds since the start at which they were."""

    def __init__(self) -> None:
        self.plans: list[tuple[float, Plan]] = []
        self.refused: list[tuple[Violation, ...]] = []

    def launching(self, launches: Sequence[Launch]) -> None:
        """See PlanFeed."""

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Take note of a decision."""
        self.plans.append((snapshot.taken_at_s - START_S, plan))

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """Take note of what broke a rule."""
        self.refused.append(tuple(breaches))


class Cluster(World):
    """Launches take no time unless a test says so, terminations 5 s."""

    def __init__(self, launch_s: float = 0) -> None:
        super().__init__()
        self.settings = Settings()
        self.cloud = FakeCloud(MARKET, self.clock, latencies=Latencies(launch_s, 5))
        self.recorder, self.feed = SimRecorder(self.api, self.clock), Feed()
        self.ports = Ports(self.clock, SimReader(self.api), SimWriter(self.api), self.recorder, self.cloud, self.feed)
        self._begin()

    def _begin(self) -> None:
        self.state = ClusterState(assume_node_classes=True)
        self.book = MarketBook(self.cloud, self.clock, self.settings)
        self.actuator = Actuator(self.state, self.ports.writer, self.recorder, self.clock, self.settings.one_age_s)
        self.runtime = Runtime(self.ports, self.state, tuple)

    def use(self, cloud: FakeCloud) -> None:
        """Another cloud; before anything is started."""
        self.cloud, self.ports = cloud, replace(self.ports, cloud=cloud)
        self._begin()

    def crash(self) -> None:
        """Kerf dies and forgets all it knew; the cluster goes on."""
        self.at(self.now_s, self.runtime.stop)
        self._begin()

    # Time.

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self.clock.now_s() - START_S

    def at(self, after_s: float, act: Callable[[], object] = lambda: None) -> Any:
        """What `act` gives at that time, once everybody has done what there was to do then."""

        async def wait() -> object:
            await self.clock.sleep_until(START_S + after_s)
            result = act()
            for _ in range(300):
                await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(wait())

    def done(self, call: Coroutine[Any, Any, _T]) -> _T:
        """What a call gives when it returns; others have their turn afterwards."""
        result = self.loop.run_until_complete(call)
        self.at(self.now_s)
        return result

    def start(self, *controllers: Controller) -> None:
        """Begin with these controllers, which use our `state`."""
        self.runtime = Runtime(self.ports, self.state, lambda: controllers)
        self.runtime.lead()
        self.at(self.now_s, self.runtime.start)

    def read(self) -> ClusterSnapshot:
        """What exists, taken into the state as a reader would tell it; for a test without a runtime."""

        async def fill() -> None:
            async for event in SimReader(self.api).events():
                assert not isinstance(event, Relisted)
                self.state.apply(event)
                if isinstance(event, Synced):
                    return

        self.done(fill())
        return self.state.snapshot(self.clock.now_s())

    def close(self) -> None:
        """Stop everything; nothing may be left."""
        self.at(self.now_s, self.runtime.stop)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    # What others do.

    def put(self, *objects: Json) -> None:
        """Create objects, with the status that they state, and first the owners that they name."""

        def create() -> None:
            for obj in objects:
                for reference in obj["metadata"].get("ownerReferences", ()):
                    reference["uid"] = self._owner(reference["kind"])["metadata"]["uid"]
                made = self.api.create(obj)["metadata"]
                status = {"status": obj.get("status", {})}
                self.api.patch(obj["kind"], made.get("namespace", ""), made["name"], status, subresource="status")

        self.at(self.now_s, create)

    def _owner(self, kind: str) -> Json:
        # The API would take away what an owner that does not exist has left behind.
        owner = node("web") if kind == "Node" else workload(kind)
        return self.api.get(kind, owner["metadata"].get("namespace", ""), "web") or self.api.create(owner)

    def change(self, kind: str, name: str, *, status: Json | None = None, **patch: Any) -> None:
        """Merge something into an object; pods are those of the default namespace."""
        namespace = "default" if kind == "Pod" else ""
        if patch:
            self.at(self.now_s, lambda: self.api.patch(kind, namespace, name, patch))
        if status is not None:
            wanted = {"status": status}
            self.at(self.now_s, lambda: self.api.patch(kind, namespace, name, wanted, subresource="status"))

    def remove(self, kind: str, name: str) -> None:
        """Delete an object; a pod ends at once."""
        if kind == "Pod":
            self.at(self.now_s, lambda: self.api.remove_pod("default", name))
        else:
            self.at(self.now_s, lambda: self.api.delete(kind, "", name))

    def claimed(self, name: str = "gpu-1", *, reached: Sequence[str] = STAGES, **given: Any) -> NodeClaim:
        """A claim in the API and, when it was launched, its instance; conditions are as old as the test's clock."""
        now = self.clock.now_s()
        held = given.pop("conditions", tuple(Condition(stage, TRUE, stage, since_s=now) for stage in sorted(reached)))
        asked = {"pool": "gpu", "instance_type": "g5.xlarge", "finalizers": (TERMINATION_FINALIZER,), **given}
        claim = a_claim(name, conditions=held, **asked)
        made = self.api.create(node_claim_object(claim))
        claim = replace(claim, uid=made["metadata"]["uid"])
        if claim.is_true(LAUNCHED):
            instance = self.loop.run_until_complete(self.cloud.create(claim))
            claim = replace(claim, provider_id=instance.provider_id, capacity=instance.capacity)
        status = {"status": node_claim_status(claim)}
        if held:
            self.api.patch("NodeClaim", "", name, status, subresource="status")
        self.at(self.now_s)
        return claim

    def joined(self, claim: NodeClaim, name: str = "node-1", **given: Any) -> None:
        """The node of a claim's instance, as its kubelet announces it."""
        told = {"pool": claim.node_pool, "instance_type": claim.instance_type, "provider_id": claim.provider_id}
        self.put(node_object(a_node(name, **{**told, **given}), self.clock.now_s()))

    def running(self, number: int = 1, *, node: Mapping[str, Any] | None = None, **given: Any) -> NodeClaim:
        """Claim `gpu-N` with all stages reached, and its node `node-N`."""
        name = f"node-{number}"
        claim = self.claimed(f"gpu-{number}", node_name=name, **given)
        self.joined(claim, name, **{"finalizers": (TERMINATION_FINALIZER,), **(node or {})})
        return claim

    # What there is now.

    def claim(self, name: str = "gpu-1") -> NodeClaim:
        """A claim that is there."""
        value = self._read("NodeClaim", "", name)
        assert isinstance(value, NodeClaim)
        return value

    def node(self, name: str = "node-1") -> Node:
        """A node that is there."""
        value = self._read("Node", "", name)
        assert isinstance(value, Node)
        return value

    def pod(self, name: str = "p") -> Pod:
        """A pod of the default namespace that is there."""
        value = self._read("Pod", "default", name)
        assert isinstance(value, Pod)
        return value

    def names(self, kind: str) -> list[str]:
        """The names of all objects of a kind."""
        return [obj["metadata"]["name"] for obj in self.api.list(kind)]

    def is_ending(self, name: str = "gpu-1") -> bool:
        """Whether the cloud was asked to terminate a claim's instance, or has."""
        claim = self.claim(name)
        return self.cloud.is_terminating(claim.provider_id)

    def said(self, reason: str) -> list[str]:
        """The messages of the events for people with that reason, in order."""
        return [held.occurrence.message for held in self.recorder.posted if held.occurrence.reason == reason]

    def condition(self, kind: str, name: str = "gpu-1") -> tuple[str, str, str]:
        """Status, reason and message of a claim's condition."""
        held = self.claim(name).condition(kind)
        assert held is not None
        return held.status, held.reason, held.message

    def _read(self, kind: str, namespace: str, name: str) -> object:
        obj = self.api.get(kind, namespace, name)
        assert obj is not None, f"{kind} {name} is gone"
        return decode_object(obj)


def node_object(node: Node, now_s: float) -> Json:
    """A node in the API's form, ready since `now_s` or not ready."""
    ready = Condition("Ready", str(node.is_ready), since_s=now_s)
    amounts = {"capacity": resource_texts(node.capacity), "allocatable": resource_texts(node.allocatable)}
    status = {**amounts, "conditions": condition_list([ready])}
    spec = {"providerID": node.provider_id}
    return node_merged({"apiVersion": "v1", "kind": "Node", "spec": spec, "status": status}, node)


def pool(
    name: str = "gpu", *, types: Sequence[str] = ("g5.xlarge",), annotations: Json | None = None, **given: Any
) -> Json:
    """A NodePool of AWS for these types, on-demand; `given`: `labels` of its nodes, else fields of its spec."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    sold = {"node.kubernetes.io/instance-type": types, "karpenter.sh/capacity-type": ["on-demand"]}
    wanted = [{"key": key, "operator": "In", "values": list(values)} for key, values in sold.items()]
    template = {
        "metadata": {"labels": given.pop("labels", {})},
        "spec": {"nodeClassRef": reference, "requirements": wanted, **given.pop("template", {})},
    }
    metadata = {"name": name, "annotations": annotations or {}}
    spec = {"template": template, **given}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}


def pod(name: str = "p", *, node: str = "", refused: str | None = REFUSED, owner: str = "", **given: Any) -> Json:
    """A pod that a scheduler has refused, or one on `node`; it asks for a whole GPU.

    `owner` is the kind of its controller. `given`: `limits`, `annotations`, `labels`, `nominated`, else fields of spec.
    """
    limits = given.pop("limits", {"nvidia.com/gpu": "1"})
    metadata: Json = {"name": name, "annotations": given.pop("annotations", {}), "labels": given.pop("labels", {})}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "", "controller": True}
        metadata["ownerReferences"] = [reference]
    status: Json = {"phase": "Running" if node else "Pending"}
    if nominated := given.pop("nominated", ""):
        status["nominatedNodeName"] = nominated
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}], **given}
    if node:
        spec["nodeName"] = node
        status["conditions"] = [{"type": "Ready", "status": "True"}]
    elif refused is not None:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "message": refused}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


FRESH: Json = {"taints": (UNREGISTERED_TAINT,)}
"""A node as it joins."""
