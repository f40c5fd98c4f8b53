"""Whether the pods of bought nodes can be bound there in queue order, with every constraint on other pods asked again.

What decides cells and loads simplifies: this does not. Each node is one of its own, with the labels that it is planned
with, and all of them are there from the start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerf.engine.buy.cells import planned_labels
from kerf.engine.buy.following import Bought
from kerf.engine.buy.spreading import Unassigned
from kerf.engine.place.domains import Site, settled_site
from kerf.engine.place.queueing import Destined, come_in_order, destined
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger
from kerf.model.constraints import HOSTNAME
from kerf.model.pods import Pod
from kerf.model.topology import OutOfTurn


@dataclass(frozen=True)
class Proof:
    """`ledger` has the nodes and those of their pods that can be bound; `wrong` are the others, by key.

    `late` are those that come after others which are behind them in the queue: how often each is refused before.
    """

    ledger: TopologyLedger
    sites: tuple[Site, ...]
    wrong: dict[str, Unassigned]
    late: Mapping[str, int]


def proven(bought: Sequence[Bought], ledger: TopologyLedger, first: int, joined: Sequence[Destined] = ()) -> Proof:
    """Bind the pods, as the scheduler does that tries again those it has refused; `first` numbers the nodes.

    `joined` are those that go to nodes which are there.

    Cost: nodes, and see `come_in_order`.
    """
    sites = _sites(bought, first)
    after, at = ledger.extended(sites), len(ledger.domains.sites)
    for number, node in enumerate(bought):
        # A node has the pods of DaemonSets as soon as it registers, before any other pod may be bound there.
        for daemon in node.load.offered.daemon_sets:
            _binds(daemon.pod, at + number, after)
    coming = [(pod, at + number) for number, node in enumerate(bought) for pod in node.pods]
    waiting = destined((*coming, *((each.pod, each.node) for each in joined)), after)
    late: dict[str, int] = {}
    left = come_in_order(waiting, after, lambda each: after.come(each.node, each.pod), late)
    return Proof(after, sites, {each.pod.key: _why(each.pod, each.node, after) for each in left}, late)


def _sites(bought: Sequence[Bought], first: int) -> tuple[Site, ...]:
    """The nodes with their labels, which are worked out once for all that are alike in them."""
    known: dict[tuple[int, ...], dict[str, str]] = {}
    sites = []
    for number, node in enumerate(bought):
        load, name = node.load, f"launch-{first + number}"
        key = id(load.offered), id(load.offering), id(load.room.requirements)
        if key not in known:
            known[key] = planned_labels(load)
        sites.append(settled_site(name, {**known[key], HOSTNAME: name}, load.offered.target.taints))
    return tuple(sites)


def _binds(pod: Pod, node: int, ledger: TopologyLedger) -> bool:
    if not ledger.allows(ledger.checks(Shape((pod,))), node):
        return False
    ledger.come(node, pod)
    return True


def _why(pod: Pod, node: int, ledger: TopologyLedger) -> Unassigned:
    site = ledger.domains.sites[node]
    for check in ledger.checks(Shape((pod,))):
        if not check.allows(node, site):
            return Unassigned((pod,), check.stage, OutOfTurn(check.cause(node, site)[0]))
    raise AssertionError(f"{pod.key} is refused by no check")
