"""The next part of a step for which budgets are too small: what saves most now, on the way to the same end.

Where the end is chosen one budget at a time, a poor step is taken for a good one: a node is made a little cheaper that
would have taken the pods of another. So the best end is found first. Of the nodes that go for it those are taken now
that save most: before all others the ones whose pods fit on nodes that are there, then those of the new nodes that save
most together. A part of these may cost more than it saves, until the others have gone as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import TakesPods
from kerf.engine.disruption.substitution import Substitution, real
from kerf.model.causes import Name
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE
from kerf.model.plan import Launch


def part_of(whole: Substitution, allowance: Allowance) -> Substitution | None:
    """As many of its nodes as budgets let go now: the very same where they let all go, None where none can go alone.

    Where pods go by where others are, a part may be forbidden that the whole is not: then it is not divided. Cost: its
    pods.
    """
    if _fits(whole.victims, allowance):
        return whole
    if any(pod.spec.has_relations for each in whole.victims for pod in each.pods):
        return None
    companies = list(_companies(whole))
    # Where the first would only be bought again, another of them is nearer to the end.
    for left_out in range(len(companies[0]) if companies else 0):
        first = companies[0][left_out:]
        part = _reduced(whole, _taken([first, *companies[1:]], allowance))
        if part.victims and not _is_exchange(part):
            return part
    return None


def _taken(companies: Iterable[Sequence[Candidate]], allowance: Allowance) -> list[Candidate]:
    """Those that budgets let go, up to the first company of which some stay."""
    taken, numbers = list[Candidate](), Counter[str]()
    for company in companies:
        size = len(taken)
        for each in company:
            left = allowance.left(each.pool.name)
            if left is None or numbers[each.pool.name] < left:
                numbers[each.pool.name] += 1
                taken.append(each)
        if len(taken) - size < len(company):
            break
    return taken


def _is_exchange(part: Substitution) -> bool:
    """Whether it only buys again what it gives up, for all of its pods: then nothing would be nearer to the end."""
    gone = Counter(_kind(each.cluster_node.labels) for each in part.victims)
    bought = Counter((each.offering.instance_type, each.offering.capacity_type) for each in part.launches)
    return gone == bought and not any(part.places.values())


def _kind(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, "")


def _fits(victims: Iterable[Candidate], allowance: Allowance) -> bool:
    pools = [each.pool.name for each in victims]
    return all((left := allowance.left(pool)) is None or pools.count(pool) <= left for pool in sorted(set(pools)))


def _companies(whole: Substitution) -> Iterator[Sequence[Candidate]]:
    """Nodes that wait for the same new nodes, each with the most expensive first; what saves most first. A node that
    waits for none is alone, and these come before all others. Those that save nothing together are left out."""
    companies = list[tuple[set[str], list[Candidate]]]()
    for victim in whole.victims:
        launches, nodes = set(whole.fed[victim.node.name]), [victim]
        apart = list[tuple[set[str], list[Candidate]]]()
        for company in companies:
            if company[0].isdisjoint(launches):
                apart.append(company)
            else:
                launches |= company[0]
                nodes += company[1]
        companies = [*apart, (launches, nodes)]
    costs = {launch.name: launch.price_micro for launch in whole.launches}

    def saved(company: tuple[set[str], list[Candidate]]) -> int:
        return sum(whole.prices[each.node.name] for each in company[1]) - sum(costs[name] for name in company[0])

    companies.sort(key=lambda each: (bool(each[0]), -saved(each), min(node.node.name for node in each[1])))
    for company in companies:
        if saved(company) > 0:
            yield sorted(company[1], key=lambda each: (-whole.prices[each.node.name], each.node.name))


def _reduced(whole: Substitution, victims: Sequence[Candidate]) -> Substitution:
    """The same of these nodes alone, with the new nodes that they wait for and the pods of theirs there."""
    names = {each.node.name for each in victims}
    claims = {each.claim.name: Name(each.node.name) for each in victims}
    keys = {pod.key for each in victims for pod in each.pods}
    awaited = {name for each in victims for name in whole.fed[each.node.name]}
    return Substitution(
        tuple(each for each in whole.victims if each.node.name in names),
        tuple(_with(launch, keys, claims) for launch in whole.launches if launch.name in awaited),
        {name: places for name, places in whole.places.items() if name in names},
        {name: launches for name, launches in whole.fed.items() if name in names},
        {name: price for name, price in whole.prices.items() if name in names},
    )


def _with(launch: Launch, keys: set[str], claims: dict[str, Name]) -> Launch:
    pods = tuple(each for each in launch.pods if each.pod in keys)
    replaces = tuple(claim for claim in launch.replaces if claim in claims)
    cause = TakesPods(real(each.pod for each in pods), tuple(claims[claim] for claim in replaces))
    return replace(launch, pods=pods, replaces=replaces, cause=cause)
