"""What must be true after every event of a simulation, whatever goes wrong in it.

No pod is lost, no instance is leaked or bought twice, no slice is larger than what its card has. Some of these can only
be broken for a while on purpose (an instance whose launch was cut off has no claim until it is collected), so they
have a time after which they count as broken.
"""

from collections.abc import Callable, Iterable

from kerf.clouds.fake import LAUNCHED, CloudEvent, FakeCloud
from kerf.engine.lifecycle import is_on_its_way
from kerf.errors import KerfError
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodes import Node
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.quantities import NOTHING, Resources
from kerf.model.times import instant_text
from kerf.ports import Clock
from kerf.sharing.hami.records import parse_allocation
from kerf.sim.course.books import Books
from kerf.sim.kubernetes.api import ADDED, DELETED, MODIFIED, InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json, JsonList, is_active, is_deleting, is_ready, key_of, name_of, shown, uid_of

LEAK_S = 300
"""How long an instance may exist without its claim: the time of a few rounds of garbage collection."""

STRAY_S = 60
"""How long a pod may stay bound to a node that is gone: the pod collector's quarantine, and a little."""


class InvariantBroken(KerfError):
    """Kerf, or a stand-in, has done what must never happen."""

    def __init__(self, at_s: float, regards: str, text: str) -> None:
        self.at_s, self.regards = at_s, regards
        super().__init__(f"{instant_text(at_s)}: {regards}: {text}")


class Invariants:
    """Looks at every event and raises InvariantBroken."""

    def __init__(self, api: InMemoryApi, clock: Clock, cloud: FakeCloud, books: Books) -> None:
        self._api, self._clock, self._cloud, self._books = api, clock, cloud, books
        self._claims: dict[str, NodeClaim] = {}
        self._orphans: dict[str, float] = {}
        self._strays: dict[str, float] = {}
        self._homes: dict[str, str] = {}
        self._running: dict[str, bool] = {}
        self._launched: set[str] = set()

    # After each event.

    def on_cloud(self, event: CloudEvent) -> None:
        """One claim, one instance."""
        if event.what == LAUNCHED and event.instance is not None:
            self._launched.add(event.instance.provider_id)
            uid = event.instance.claim_uid
            same = [i.provider_id for i in self._cloud.instances if i.claim_uid == uid]
            if len(same) > 1:
                self._break(f"NodeClaim {event.claim_name}", f"it has several instances: {', '.join(same)}")
        self._look_for_orphans()

    def on_event(self, type_: str, obj: Json) -> None:
        """After `books` has noted it."""
        kind = obj["kind"]
        if kind == "NodeClaim":
            if type_ != MODIFIED:
                self._look_for_orphans()
            self._claim(type_, obj)
        elif kind == "Node" and type_ == DELETED:
            now_s = self._clock.now_s()
            self._strays.update({pod.key: now_s for pod in self._books.pods_on(name_of(obj))})
        elif kind == "Pod":
            self._pod(type_, obj)
        self._overdue()

    def _break(self, regards: str, text: str) -> None:
        raise InvariantBroken(self._clock.now_s(), regards, text)

    def _look_for_orphans(self) -> None:
        claims = {uid_of(claim) for claim in self._api.list("NodeClaim")}
        now_s = self._clock.now_s()
        self._orphans = {
            instance.provider_id: self._orphans.get(instance.provider_id, now_s)
            for instance in self._cloud.instances
            if instance.claim_uid not in claims and not self._cloud.is_terminating(instance.provider_id)
        }

    def _claim(self, type_: str, obj: Json) -> None:
        claim = decoded(obj)
        if not isinstance(claim, NodeClaim):
            return
        if type_ == ADDED:
            self._bought_once(claim)
        self._claims[claim.name] = claim
        if type_ == DELETED:
            del self._claims[claim.name]

    def _bought_once(self, claim: NodeClaim) -> None:
        """A pod that waits for a node on its way is not a reason to buy another.

        Room that is kept is bought again once a pod has taken it: such a pod goes where no claim was bought for it.
        """
        planned = read(claim.annotations).pods.keys()
        coming = {name: other for name, other in sorted(self._claims.items()) if is_on_its_way(other)}
        for other in coming.values():
            twice = sorted(planned & read(other.annotations).pods.keys())
            if 0 < sum(map(is_virtual, twice)) <= len(self._guests(other, coming.values())):
                twice = [key for key in twice if not is_virtual(key)]
            if twice:
                text = f"bought for pods for which {other.name} is on its way: {', '.join(twice)}"
                self._break(f"NodeClaim {claim.name}", text)

    def _guests(self, claim: NodeClaim, coming: Iterable[NodeClaim]) -> set[str]:
        """The pods that may take room on a node which was not bought for them: on it, or waiting for any."""
        named = {key for other in coming for key in read(other.annotations).pods}
        there = {pod.key for pod in self._books.pods_on(claim.node_name)} - read(claim.annotations).pods.keys()
        return there | {pod.key for pod in self._books.pods() if pod.is_pending and pod.key not in named}

    def _pod(self, type_: str, obj: Json) -> None:
        uid = uid_of(obj)
        pod = self._books.pod("/".join(key_of(obj)[1:])) if type_ != DELETED else None
        if pod is None:
            self._gone(obj)
            return
        home = self._homes.get(uid, "")
        if home and pod.node_name != home:
            self._break(
                f"Pod {pod.key}", f"it moved from {home} to {pod.node_name or 'nowhere'} without being made again"
            )
        self._running[uid] = pod.phase == "Running" and pod.deleted_s is None
        if pod.node_name and not home:
            self._homes[uid] = pod.node_name
            if self._books.node(pod.node_name) is None:
                self._strays[pod.key] = self._clock.now_s()
            else:
                self._booked(pod)

    def _is_taken_back(self, node: Node) -> bool:
        """Whether the cloud itself ends the machine: then nothing can give a pod more time."""
        return node.provider_id in self._launched and self._cloud.is_taken_back(node.provider_id)

    def _gone(self, obj: Json) -> None:
        key = "/".join(key_of(obj)[1:])
        self._strays.pop(key, None)
        was_running = self._running.pop(uid_of(obj), False)
        home = self._books.node(self._homes.pop(uid_of(obj), ""))
        grace_s = obj["spec"].get("terminationGracePeriodSeconds", 30)
        if was_running and grace_s and home is not None and home.is_ready and not self._is_taken_back(home):
            self._break(f"Pod {key}", f"it was running on {home.name} and vanished without time to end")

    def _booked(self, pod: Pod) -> None:
        """The node has what the pod was given."""
        node = self._books.node(pod.node_name)
        assert node is not None
        hidden = self._books.hidden_resources()
        used = sum((other.spec.requests for other in self._books.pods_on(node.name)), NOTHING)
        asked = [name for name, amount in pod.spec.requests.items() if amount > 0 and name not in hidden]
        short = Resources({name: used[name] for name in asked}).shortfall(node.allocatable)
        if short:
            text = f"{node.name} is over-booked: {', '.join(f'{name} by {short[name]}' for name in sorted(short))}"
            self._break(f"Pod {pod.key}", text)
        segments = parse_allocation(pod.annotations) or ()
        own = {share.device_id for segment in segments for share in segment}
        for device in (device for device in self._books.devices(node.name) if device.id in own):
            over = (
                ("MiB", device.used_memory_mib, device.memory_mib),
                ("cores", device.used_cores, device.cores),
                ("slots", device.used_slots, device.slots),
            )
            for unit, held, there in over:
                if held > there:
                    self._break(f"Pod {pod.key}", f"GPU {device.id} of {node.name} gives {held} {unit} of {there}")

    def _overdue(self) -> None:
        now_s = self._clock.now_s()
        for provider_id, since_s in self._orphans.items():
            if now_s - since_s > LEAK_S:
                self._break(f"instance {provider_id}", f"no NodeClaim knows it since {instant_text(since_s)}")
        for key, since_s in self._strays.items():
            if now_s - since_s > STRAY_S and not self._is_held(key):
                self._break(f"Pod {key}", f"it is bound to a node that is gone since {instant_text(since_s)}")

    def _is_held(self, key: str) -> bool:
        """Whether a pod is being deleted and a finalizer of another controller keeps it."""
        pod = self._api.get("Pod", *key.split("/"))
        return pod is not None and is_deleting(pod) and bool(pod["metadata"].get("finalizers"))

    # At the end.

    def at_end(self, is_refused: Callable[[Json], bool]) -> None:
        """Every workload has its pods, save where the API refuses them or one waits for another in its order."""
        self._overdue()
        pods = [pod for pod in self._api.list("Pod") if is_active(pod)]
        for kind in ("ReplicaSet", "StatefulSet"):
            for owner in self._api.list(kind):
                own = [pod for pod in pods if _owned_by(pod, owner)]
                wanted = owner["spec"].get("replicas", 1)
                is_held = is_deleting(owner) or is_refused(owner) or _waits_in_order(owner, own)
                if len(own) < wanted and not is_held:
                    self._break(shown(key_of(owner)), f"{wanted - len(own)} of its {wanted} pods are lost")


def _waits_in_order(owner: Json, pods: JsonList) -> bool:
    """Whether it makes its next pod only when those before it are available, and one of them is not."""
    is_in_order = owner["kind"] == "StatefulSet" and owner["spec"].get("podManagementPolicy") != "Parallel"
    least_s = owner["spec"].get("minReadySeconds", 0)
    return is_in_order and any(not is_ready(pod) or least_s for pod in pods)


def _owned_by(pod: Json, owner: Json) -> bool:
    references: Iterable[Json] = pod["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == uid_of(owner) for reference in references)
