"""What a step owes the floors of pools (`kerf.dev/min-nodes`): they count the nodes that are there after it.

So of a pool at its floor a node goes only once another of the same pool is up. That may be one for its pods; where
these have room elsewhere, or there are none, it is the cheapest that the pool offers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kerf.engine.disruption.budgets import Census
from kerf.engine.disruption.candidates import Candidate
from kerf.model.plan import Launch
from kerf.model.snapshot import ClusterSnapshot


def owed(victims: Iterable[Candidate], launches: Iterable[Launch], snapshot: ClusterSnapshot) -> Mapping[str, int]:
    """By pool how many nodes a step has to buy beside its launches, if these nodes are to go."""
    census, bought = Census.of(snapshot), Counter(launch.node_pool for launch in launches)
    going = Counter(each.pool.name for each in victims)
    found = {}
    for name, nodes in sorted(going.items()):
        pool = snapshot.pool(name)
        spare = census.spare(pool) if pool is not None and pool.replicas is None else None
        if spare is not None and nodes - bought[name] > spare:
            found[name] = nodes - bought[name] - spare
    return found


def awaited(
    victims: Sequence[Candidate],
    launches: Sequence[Launch],
    fed: Mapping[str, set[int]],
    snapshot: ClusterSnapshot,
) -> Mapping[str, int]:
    """For which launch, by its number, each node waits that its pool cannot spare before; each for one of its own.

    `fed` are the launches that get pods of a node, by its name: it waits for these anyway.
    """
    found: dict[str, int] = {}
    for name, nodes in owed(victims, (), snapshot).items():
        free = [number for number, launch in enumerate(launches) if launch.node_pool == name]
        own = [each.node.name for each in victims if each.pool.name == name]
        own.sort(key=lambda node: (fed[node].isdisjoint(free), node))
        for node in own[:nodes]:
            number = next((each for each in free if each in fed[node]), free[0] if free else None)
            if number is None:
                break
            free.remove(number)
            found[node] = number
    return found
