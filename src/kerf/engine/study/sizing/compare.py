"""What if pods asked for something else: the plan of today beside plans with other requests.

A load test on paper. Nothing but the requests differs, so the difference is theirs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot

Asked = Mapping[str, Resources]
"""Requests by container; nothing named: as the manifests say."""
FIRST = ""
"""In place of a container's name: the first one of a pod, which is the one that kubectl takes by default too."""


@dataclass(frozen=True)
class Variant:
    """The decision for pods whose containers ask for `requests`."""

    requests: Asked
    plan: Decision

    @property
    def nodes(self) -> int:
        """Nodes to buy."""
        return len(self.plan.launches)

    @property
    def types(self) -> Mapping[tuple[str, str], int]:
        """Nodes to buy by (instance type, capacity type), in name order."""
        bought = (each.offering for each in self.plan.launches)
        return dict(sorted(Counter((each.instance_type, each.capacity_type) for each in bought).items()))

    @property
    def price_micro(self) -> int:
        """Of the nodes to buy, per hour."""
        return sum(launch.price_micro for launch in self.plan.launches)

    @property
    def pods_a_node(self) -> tuple[int, int]:
        """The least and the most pods that one of these nodes gets; (0, 0) where none is bought."""
        counts = [sum(1 for pod in launch.pods if not is_virtual(pod.pod)) for launch in self.plan.launches]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def on_nodes(self) -> int:
        """Pods that go on nodes that are there or on their way."""
        return sum(1 for placement in self.plan.placements if not is_virtual(placement.pod.pod))

    @property
    def placed(self) -> int:
        """Pods with a place, old or new."""
        return self.on_nodes + sum(1 for each in self.plan.launches for pod in each.pods if not is_virtual(pod.pod))


def compared(world: World, options: Options, changes: Iterable[Asked]) -> tuple[Variant, ...]:
    """The pending pods as they are, then with each change. Cost: one decision each."""
    cases: tuple[Asked, ...] = ({}, *changes)
    asked = ((each, World(with_requests(world.snapshot, each), world.market)) for each in cases)
    return tuple(Variant(each, decide(changed, options)) for each, changed in asked)


def with_requests(snapshot: ClusterSnapshot, requests: Asked) -> ClusterSnapshot:
    """The same with each pending pod asking for `requests`; what these do not name stays as it is."""
    if not requests:
        return snapshot
    # Equal pods share one spec, and a plan groups them by it: they must go on sharing one.
    specs: dict[int, PodSpec] = {}
    pending: list[Pod] = []
    for pod in snapshot.pending:
        if id(pod.spec) not in specs:
            specs[id(pod.spec)] = changed_spec(pod.spec, requests)
        pending.append(replace(pod, spec=specs[id(pod.spec)]))
    return replace(snapshot, pending=tuple(pending))


def changed_spec(spec: PodSpec, requests: Asked) -> PodSpec:
    """The spec with other requests of the containers that are named, init containers too."""
    wanted = {name or spec.containers[0].name: amounts for name, amounts in requests.items()}
    apps, init = (
        tuple(_changed(each, wanted[each.name]) if each.name in wanted else each for each in group)
        for group in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=apps, init_containers=init)


def _changed(container: Container, requests: Resources) -> Container:
    """A limit below the request rises to it, as the API asks; extended resources are not overcommitted: both alike."""
    limits = {
        name: amount
        for name, amount in requests.items()
        if "/" in name or name.startswith("hugepages-") or container.limits.get(name, amount) < amount
    }
    return replace(container, requests=container.requests.replaced(requests), limits=container.limits.replaced(limits))
