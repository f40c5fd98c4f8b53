"""What the pods that run would cost at least if every one of them could be packed again at any moment.

No autoscaler reaches it: it moves no pod, boots no node, and buys parts of nodes. But it is certified, for it is the
bound that Kerf's plans print, so what a replay costs beyond it is all that any policy could save. It is taken in the
middle of each interval and counted for the whole of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kerf.clouds.fake import FakeCloud
from kerf.engine.buy.bound import lower_bound
from kerf.engine.place.shapes import group
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.pods import Pod, PodSpec
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import NO_AFFINITY
from kerf.ports import Clock
from kerf.sim.course.books import Books
from kerf.sim.kubernetes.api import ADDED, DELETED


@dataclass(frozen=True, slots=True)
class RepackBound:
    """The bound over the whole time, in millionths; `samples` are how often it was taken, every `every_s` seconds.

    `unproven` of them found no bound, for pods ran that no type on sale holds; they count 0.
    """

    micro: int
    every_s: int
    samples: int
    unproven: int = 0


class Repack:
    """Takes the bound. `snapshot_of` gives the cluster as Kerf knows it; pools and DaemonSets are taken from there."""

    def __init__(
        self,
        market: Market,
        cloud: FakeCloud,
        books: Books,
        clock: Clock,
        snapshot_of: Callable[[], ClusterSnapshot],
    ) -> None:
        self._market, self._cloud, self._books, self._clock = market, cloud, books, clock
        self._snapshot_of = snapshot_of
        # Each pod as it came: what a scheduler writes on it says where it is, which a new packing may change.
        self._came: dict[str, Pod] = {}
        self._offered: tuple[object, tuple[OfferedType, ...]] | None = None
        self._micro = 0.0
        self._samples = self._unproven = self._every_s = 0

    def on_event(self, type_: str, pod: Pod) -> None:
        """An event about a pod, after `books` has noted it."""
        if type_ == DELETED:
            self._came.pop(pod.uid, None)
        elif type_ == ADDED and not pod.is_daemon:
            self._came[pod.uid] = pod

    def begin(self, every_s: int, duration_s: int) -> None:
        """Take it in the middle of each interval from now on; the last one may be shorter."""
        self._every_s = every_s
        start_s = self._clock.now_s()
        for at_s in range(0, duration_s, every_s):
            lasts_s = min(every_s, duration_s - at_s)
            self._clock.call_at(start_s + at_s + lasts_s / 2, self._sampler(lasts_s))

    def result(self) -> RepackBound:
        """The sum up to now."""
        return RepackBound(round(self._micro), self._every_s, self._samples, self._unproven)

    def _sampler(self, lasts_s: int) -> Callable[[], None]:
        return lambda: self._sample(lasts_s)

    def _sample(self, lasts_s: int) -> None:
        self._samples += 1
        bound = lower_bound(group(self._running()), self._types())
        if bound is None:
            self._unproven += 1
        else:
            self._micro += bound * lasts_s / 3600

    def _running(self) -> list[Pod]:
        """Pods on machines that are paid for, without what they ask of each other: a bound may leave that out."""
        paid = {instance.provider_id for instance in self._cloud.instances}
        names = [node.name for node in self._books.nodes() if node.provider_id in paid]
        found = (self._came.get(pod.uid) for name in names for pod in self._books.pods_on(name))
        bare: dict[int, PodSpec] = {}
        return [_alone(pod, bare) for pod in found if pod is not None]

    def _types(self) -> tuple[OfferedType, ...]:
        types = tuple(self._cloud.find(kind.name) for kind in self._market.types)
        snapshot = replace(self._snapshot_of(), nodes=(), pending=(), grouped=(), windowed=())
        key = types, snapshot.node_pools, snapshot.overlays, snapshot.daemon_sets, snapshot.node_classes
        # A pool is another object whenever its status changes: compare what it says.
        if self._offered is None or self._offered[0] != key:
            world = World(snapshot, replace(self._market, types=types))
            self._offered = key, tuple(world.supply.available)
        return self._offered[1]


def _alone(pod: Pod, bare: dict[int, PodSpec]) -> Pod:
    spec = pod.spec
    if not (spec.preferred or spec.has_relations):
        return pod
    # One value for all pods of a spec: the identity of a spec is compared first.
    if id(spec) not in bare:
        none = NO_AFFINITY
        bare[id(spec)] = replace(spec, preferred=(), spread=(), pod_affinity=none, pod_anti_affinity=none)
    return replace(pod, spec=bare[id(spec)])
