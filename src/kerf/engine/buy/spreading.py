"""In which domain each pod is to run that goes by others, decided before any node is chosen.

Pods are taken one by one in queue order, as kube-scheduler takes them, and each gets the cell that its constraints
allow just now: of several the one with the fewest pods that its spread counts, then the one where most of those can
follow that must be with it, then the cheapest. A pod that no cell allows waits until another has got its own, for
affinity may make it wait for company. So the order in which cells are given is one in which the scheduler can bind.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from kerf.engine.buy.cells import Cells, Place, SpecsOfCells, cells
from kerf.engine.buy.colocated import Colocated, Colocation, colocated
from kerf.engine.buy.concerns import Concerns
from kerf.engine.buy.joining import Joinable
from kerf.engine.buy.limits import Ledger as Limits
from kerf.engine.buy.precedence import QUEUE_ORDER, Precedence, WantedCells, is_better
from kerf.engine.place.checks import Check, Even, Together
from kerf.engine.place.domains import Domains, Site
from kerf.engine.place.queueing import Destined
from kerf.engine.place.rounds import Backlog, Rounds
from kerf.engine.place.shapes import UNCROWDED, Shape, queue_order
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause, Name
from kerf.model.constraints import HOSTNAME
from kerf.model.plan import Stage
from kerf.model.pods import Pod
from kerf.model.topology import NotNear
from kerf.model.volumecauses import SharedElsewhere

_MOST_ROUNDS = 4
"""How often cells are given again when others come into use than were thought of."""
_MOST_AHEAD = 16
"""Pods that get a cell before the company that they need."""
_MOST_TRIES, _MOST_LOOKS = 16, 30_000
"""How often cells are given in another order to pods that all cells refuse, and after how many looks not once more."""
_CHECKS_OF_A_LOOK = 8
"""What one pod asks of others in the work of a look; each of a thousand that keep all others off asks two thousand."""


@dataclass(frozen=True)
class Known:
    """What an earlier attempt has shown: see `assigned`.

    `out` are keys of pods that are not to be bought for. `ceilings` say how many pods of a shape, by its number, a
    place takes at most: nodes could be bought for so many there. `there` are the places of all nodes that were bought.
    `lonely` are numbers of shapes that found no room beside those that they must be with. `reseats`: pods that no cell
    takes when all come in queue order are tried before others. `apart` are keys of pods that join no
    node which is there.
    """

    out: frozenset[str] = frozenset()
    ceilings: Mapping[tuple[int, Place], int] = field(default_factory=dict)
    there: tuple[Site, ...] = ()
    lonely: frozenset[int] = frozenset()
    reseats: bool = False
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Unassigned:
    """Pods that have no cell, and why: a constraint on other pods stands against each. None: too few can be bought."""

    pods: tuple[Pod, ...]
    stage: Stage = Stage.LIMITS
    cause: Cause | None = None


@dataclass(frozen=True)
class Assigned:
    """Shapes to buy for, each in one cell where other pods matter to it, and pods that have none.

    `origins` are, by number, the numbers that the shapes had and their places. `are_bound` says that some go by others,
    `are_blocked` that others keep some from all their cells, and `is_reseated` that fewer are than in queue order.
    `joined` are the pods that nodes which are there take once others have come, in that order. `domains` are by key of
    the cells the values of those that have pods.
    """

    shapes: tuple[Shape, ...]
    kept: tuple[Unassigned, ...] = ()
    origins: Mapping[int, tuple[int, Place]] = field(default_factory=dict)
    companies: tuple[Colocated, ...] = ()
    are_bound: bool = False
    are_blocked: bool = False
    is_reseated: bool = False
    joined: tuple[Destined, ...] = ()
    domains: Mapping[str, frozenset[str]] = field(default_factory=dict)
    looks: int = 0
    """What finding the cells cost: pods, how often a cell was asked whether it takes one, and cells of each round."""


@dataclass(eq=False, slots=True)
class _Option:
    """A cell for pods of one shape: the number of its stand-in, the shape that it makes of them, what one costs."""

    site: int
    place: Place
    shape: Shape
    price: int
    ceiling: int | None
    follow: int = 0
    pods: list[Pod] = field(default_factory=list)
    turn: int = 0
    """How many pods had a cell before the first of these."""

    @property
    def is_full(self) -> bool:
        return self.ceiling is not None and len(self.pods) >= self.ceiling

    def without_pods(self) -> "_Option":
        return _Option(self.site, self.place, self.shape, self.price, self.ceiling, self.follow)


class _Asked(NamedTuple):
    """The checks of a shape, those of them that decide in which cell its pods may be, and what these spread evenly."""

    checks: Sequence[Check]
    of_cells: Sequence[Check]
    even: Sequence[Even]


def assigned(
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    ledger: TopologyLedger,
    limits: Limits,
    holding: Holding,
    known: Known,
    joinable: Joinable | None = None,
) -> Assigned:
    """The shapes with their cells. `ledger` has all nodes there are, and those bought before; it stays as it is.

    Where `joinable` nodes have room that pods to come may open, only those cells are bought in that are needed, and
    each pod joins such a node if it can. Cost: nothing more where no shape goes by others; else pods that do times
    cells.
    """
    concerns = Concerns(ledger, shapes, offered_types)
    if concerns.are_none:
        return Assigned(tuple(shapes))
    able = [offered for offered in offered_types if limits.room_for(offered) != 0]
    cells_there = cells(concerns.keys, able, holding)
    options = _Options(concerns, cells_there, holding, known)
    giving = _Giving(concerns, cells_there, options, known, joinable)
    made = giving.settled(QUEUE_ORDER)
    if giving.joiners and not made.joined:
        giving = replace(giving, joinable=None)
        made = giving.settled(QUEUE_ORDER)
    better = giving.reseated(made) if known.reseats else made
    return replace(better.result(), is_reseated=better is not made, looks=giving.looks.total())


class _Options:
    """Which cells the pods of each shape can have; the same in every round."""

    def __init__(self, concerns: Concerns, held: Cells, holding: Holding, known: Known) -> None:
        self._concerns, self._cells, self._holding, self._known = concerns, held, holding, known
        self._first, self._specs = len(concerns.ledger.domains.sites), SpecsOfCells()
        self.kept: dict[int, Unassigned] = {}
        """By number the shapes that DaemonSets keep off all nodes that would hold their pods."""
        self._found = [self._of(number) for number in range(len(concerns.shapes))]
        self._count_followers()

    def _of(self, number: int) -> list[_Option]:
        """The cells in which a node for pods of the shape can be bought; one for all that it does not tell apart."""
        if not self._concerns.is_bound(number):
            return []
        shape, keys = self._concerns.shapes[number], self._concerns.keys_of(number)
        at = [self._concerns.keys.index(key) for key in keys]
        is_open = self._concerns.manners.open_rows(number, self._holding)
        is_all_open = bool(is_open.all())
        found: dict[Place, _Option] = {}
        shut: list[tuple[int, int]] = []
        for cell_number, cell in enumerate(self._cells.held):
            place = tuple(cell.place[index] for index in at)
            before = found.get(place)
            made = before.shape if before is not None else Shape(shape.pods, self._specs.of(shape.spec, keys, place))
            best = self._cells.cheapest(cell_number, made, None if is_all_open else is_open)
            if best is None:
                best = None if is_all_open else self._cells.cheapest(cell_number, made)
                shut += [best] if best is not None else []
            elif before is None or best[0] < before.price:
                # Of cells that it does not tell apart the one in which its node is likely bought stands for all: others
                # that spread may go by labels that it does not, and count it or not.
                site, ceiling = self._first + cell_number, self._known.ceilings.get((number, place))
                found[place] = _Option(site, place, made, best[0], ceiling)
        if shut and not found:
            stage, cause = self._concerns.manners.cause(number, self._holding.types[min(shut)[1]])
            self.kept[number] = Unassigned(shape.pods, stage, cause)
        return list(found.values())

    def _count_followers(self) -> None:
        """Count for each option the shapes that must be with its pods and can be. Cost: shapes times options."""
        known: dict[tuple[int, ...], tuple[frozenset[int], Counter[int]]] = {}
        for number, options in enumerate(self._found):
            tallies = tuple(self._concerns.followers(number))
            if not tallies:
                continue
            if tallies not in known:
                others = frozenset(other for tally in tallies for other in self._concerns.seekers[tally])
                known[tallies] = others, Counter(option.site for other in others for option in self._found[other])
            others, there = known[tallies]
            for option in options:
                option.follow += there[option.site] - (number in others)

    def expected(self, joiners: frozenset[int]) -> frozenset[int]:
        """The cells in which some pods that are to be spread may be; those of `joiners` wait to be needed."""
        spread = (number for number, checks in enumerate(self._concerns.checks) if any(map(_is_even, checks)))
        return frozenset(option.site for number in spread if number not in joiners for option in self._found[number])

    @cached_property
    def wider(self) -> frozenset[int]:
        """The cells where pods that are to be spread may be and would rather not.

        Their preferred node affinity says where they go and not over what they are spread, as Karpenter has it.
        """
        found = set[int]()
        for number, checks in enumerate(self._concerns.checks):
            shape = self._concerns.shapes[number]
            if shape.spec.wish.labels and any(map(_is_even, checks)):
                own = Shape(shape.pods)
                number_of = range(len(self._cells.held))
                found.update(self._first + at for at in number_of if self._cells.cheapest(at, own))
        return frozenset(found)

    @property
    def there(self) -> frozenset[int]:
        """The cells in which nodes were bought before."""
        keys = self._concerns.keys
        places = {tuple(site.labels.get(key) for key in keys) for site in self._known.there}
        return frozenset(self._first + number for number, cell in enumerate(self._cells.held) if cell.place in places)

    def fresh(self) -> list[list[_Option]]:
        """By shape its options, without pods."""
        return [[option.without_pods() for option in options] for options in self._found]


@dataclass(frozen=True, eq=False)
class _Giving:
    """What cells are given by, as often as they are."""

    concerns: Concerns
    held: Cells
    options: _Options
    known: Known
    joinable: Joinable | None = None
    looks: Counter[str] = field(default_factory=Counter)
    """Those of all rounds so far."""

    @cached_property
    def joiners(self) -> frozenset[int]:
        """Numbers of the shapes that may join nodes which are there."""
        joinable, shapes = self.joinable, enumerate(self.concerns.shapes)
        if joinable is None:
            return frozenset()
        return frozenset(n for n, shape in shapes if joinable.may_open(shape, self.concerns.checks[n]))

    @cached_property
    def domains(self) -> Domains:
        """Those of the nodes that are there, then of the cells. They are the same each time that cells are given."""
        known = self.concerns.ledger.domains
        return Domains((*known.sites, *self.held.sites), known.lasting)

    @cached_property
    def ledger(self) -> TopologyLedger:
        """Where pods are, with the cells, and with what all shapes ask: each round begins with a copy."""
        first = len(self.concerns.ledger.domains.sites)
        made = self.concerns.ledger.extended(self.domains.sites[first:], self.domains)
        for _ in range(2):
            # Terms that keep others off are known once a shape with them was asked for.
            for shape in self.concerns.shapes:
                made.checks(shape)
        return made

    def settled(self, precedence: Precedence, used: frozenset[int] | None = None) -> "_Assignment":
        """Every pod with a cell, given again a few times until those cells are domains that have pods.

        `used` are those that are from the start; None for all that may be.
        """
        if used is None:
            used = self.options.expected(self.joiners) | self.options.there | self.options.wider
        for _ in range(_MOST_ROUNDS):
            made = _Assignment(self, used, precedence)
            if made.used | self.options.wider == used:
                break
            # A domain is one only where there is a node: what was thought of and not used bounds no pod.
            used = made.used | self.options.wider
        return made

    def reseated(self, made: "_Assignment") -> "_Assignment":
        """The best of a few, in each of which those come before others that were left by the ones before it.

        The first, where none `is_better`. Cost: so many times that of the first, less where that is much.
        """
        best, precedence, looks = made, Precedence(), 0
        for _ in range(_MOST_TRIES):
            if not made.left or looks > _MOST_LOOKS:
                break
            for number, count in made.refused.items():
                first = sorted(self.concerns.shapes[number].pods, key=queue_order)
                precedence.refuse(number, [pod for pod in first if pod.key not in self.known.out][:count])
            made = self.settled(precedence, made.used | self.options.wider)
            looks += made.looks
            if is_better(made.unseated, best.unseated):
                # In queue order, for a pod may have come before one that it must find there.
                again = _Assignment(self, made.used | self.options.wider, QUEUE_ORDER, made)
                looks += again.looks
                made = again
            if is_better(made.unseated, best.unseated):
                best = made
        return best


class _Assignment:
    """One round: every pod is given a cell. `used` are the cells that are domains from the start; others come to be.

    With `same` so many pods of each shape get the same cell as there, as far as they may, and then the others one.
    """

    def __init__(
        self, giving: _Giving, used: frozenset[int], precedence: Precedence, same: "_Assignment | None" = None
    ) -> None:
        before, held, options, known = giving.concerns, giving.held, giving.options, giving.known
        self._cells = held.held
        self._before, self._shapes, self._options = before, before.shapes, options.fresh()
        self._crowdings, self._kept_off = before.manners.crowdings, options.kept
        self._known: dict[int, tuple[int, _Asked]] = {}
        self._given = 0
        first = len(before.ledger.domains.sites)
        self._ledger = giving.ledger.copy()
        self._closed = {first + at for at in range(len(held.held))} - used
        for site in sorted(self._closed):
            self._ledger.close(site)
        self._joiners, self._apart = giving.joiners, known.apart
        self._joining = giving.joinable.beside(self._ledger) if giving.joinable and self._joiners else None
        self._wanted = WantedCells()
        for number in precedence.shapes:
            sites = [option.site for option in self._options[number]]
            self._wanted.add(self._ledger.checks(self._shapes[number]), sites)
        self._waiting = sorted(
            (
                (pod, number)
                for number, shape in enumerate(self._shapes)
                if self._options[number] or number in self._joiners
                for pod in shape.pods
                if pod.key not in known.out
            ),
            key=lambda each: (precedence.of(each[0], len(self._options[each[1]])), queue_order(each[0])),
        )
        self.looks = len(self._waiting)
        """Pods, and how often a cell was asked whether it takes one."""
        if precedence.shapes:
            self._seat_first(precedence)
        if same is not None:
            self._give_same(same)
        self.refused = Counter(number for _, number in self._waiting)
        self._give_all()
        if same is None:
            self.refused = Counter(number for _, number in self._waiting)
        self.used = frozenset(option.site for found in self._options for option in found if option.pods)
        giving.looks["rounds"] += self.looks + len(held.held)

    def _give_all(self) -> None:
        """Round after round, as the scheduler tries again those that it has refused."""
        rounds, shut = Rounds([number for _, number in self._waiting]), Backlog()
        for place in rounds.turns():
            pod, number = self._waiting[place]
            asked = self._asked(number)
            if not rounds.is_waiting(place) or shut.is_shut(number, asked.checks):
                continue
            option = None
            if not self._joins(number, pod):
                option = self._best(number, asked)
                if option is None:
                    shut.refuse(number, asked.checks)
                    continue
            is_new = option is not None and option.site in self._closed
            if option is not None:
                self._put(pod, option)
            rounds.give(place)
            if is_new:
                rounds.notice(shut.open_all())
            elif not shut.is_empty:
                rounds.notice(shut.come(self._ledger.counting(self._shapes[number])))
        self._waiting = [self._waiting[place] for place in rounds.left()]

    def _joins(self, number: int, pod: Pod) -> bool:
        """Whether the pod goes to a node that is there."""
        if self._joining is None or number not in self._joiners or pod.key in self._apart:
            return False
        return self._joining.join(number, self._shapes[number], pod)

    def _give_same(self, same: "_Assignment") -> None:
        """Cells as they are there, in queue order."""
        pairs = [pair for each in zip(self._options, same._options, strict=True) for pair in zip(*each, strict=True)]
        ceilings = [option.ceiling for option, _ in pairs]
        for option, there in pairs:
            option.ceiling = len(there.pods)
        self._give_all()
        for (option, _), ceiling in zip(pairs, ceilings, strict=True):
            option.ceiling = ceiling

    def _seat_first(self, precedence: Precedence) -> None:
        """Cells for those that come before others, of some also where the company that they need has yet to come."""
        left, ahead = [], 0
        for pod, number in self._waiting:
            times, option = precedence.times(pod), None
            if times and self._joins(number, pod):
                continue
            if times:
                asked = self._asked(number)
                option = self._best(number, asked)
                if option is None and ahead < _MOST_AHEAD:
                    option = self._ahead(number, asked, times)
                    ahead += option is not None
            if option is None:
                left.append((pod, number))
            else:
                self._wanted.add(asked.of_cells, [option.site])
                self._put(pod, option)
        self._waiting = left

    def _ahead(self, number: int, asked: _Asked, times: int) -> _Option | None:
        """A cell that only lacks company, each time another one; those that are sought are wanted there."""
        company = [check for check in asked.of_cells if isinstance(check, Together)]
        others = [check for check in asked.of_cells if not isinstance(check, Together)]
        free = (option for option in self._options[number] if not option.is_full)
        found = [option for option in free if self._ledger.allows(others, option.site)]
        found.sort(key=lambda option: option.price)
        return found[(times - 1) % len(found)] if company and found else None

    def _best(self, number: int, asked: _Asked) -> _Option | None:
        """The cell for a pod of the shape; None where none takes it."""
        best: tuple[tuple[int, int, int, int, int], _Option] | None = None
        is_sparing = number in self._joiners
        counting = self._ledger.counting(self._shapes[number]) if self._wanted else ()
        self.looks += len(self._options[number]) * (1 + len(asked.of_cells) // _CHECKS_OF_A_LOOK)
        for option in self._options[number]:
            if not option.is_full and self._ledger.allows(asked.of_cells, option.site):
                met = self._wanted.met(counting, option.site) if counting else 0
                # A domain that nothing needs would stay the emptiest, and keep pods off the nodes that are there.
                new = _new_domains(asked.even, option.site) if is_sparing else 0
                key = (-met, new, _crowd(asked.even, option.site), -option.follow, option.price)
                if best is None or key < best[0]:
                    best = key, option
        return None if best is None else best[1]

    def _asked(self, number: int) -> _Asked:
        """What pods of the shape ask of others; remembered until more pods keep others off."""
        known = self._known.get(number)
        if known is None or known[0] != self._ledger.version:
            checks = self._ledger.checks(self._shapes[number])
            of_cells = [check for check in checks if not _is_of_one_node(check)]
            asked = _Asked(checks, of_cells, [check for check in of_cells if isinstance(check, Even)])
            known = self._known[number] = self._ledger.version, asked
        return known[1]

    def _put(self, pod: Pod, option: _Option) -> None:
        if option.site in self._closed:
            self._closed.discard(option.site)
            self._ledger.reopen(option.site)
        if not option.pods:
            option.turn = self._given
        self._given += 1
        option.pods.append(pod)
        self._ledger.come(option.site, pod)

    @property
    def joined(self) -> Sequence[Destined]:
        """The pods that have come to nodes which are there."""
        return self._joining.joined if self._joining is not None else ()

    @property
    def left(self) -> dict[int, list[Pod]]:
        """The pods that no cell takes, by number of their shape; none of a shape that has no cell."""
        found: dict[int, list[Pod]] = {}
        for pod, number in self._waiting:
            if self._options[number]:
                found.setdefault(number, []).append(pod)
        return found

    @property
    def unseated(self) -> dict[str, Pod]:
        """The pods that no cell takes, by key."""
        return {pod.key: pod for pod, _ in self._waiting}

    def result(self) -> Assigned:
        """The shapes in their cells."""
        shapes: list[Shape] = []
        origins: dict[int, tuple[int, Place]] = {}
        numbers: dict[int, list[int]] = {}
        turns: dict[int, int] = {}
        crowding, joined = self._crowdings, {each.pod.key for each in self.joined}
        for number, shape in enumerate(self._shapes):
            if not self._options[number] and number not in self._kept_off:
                # No type takes it, or it goes by no other pod.
                pods = _others(shape.pods, joined)
                is_same = pods is shape.pods and crowding[number] is UNCROWDED
                if pods:
                    shapes.append(shape if is_same else replace(shape, pods=pods, crowding=crowding[number]))
            for option in self._options[number]:
                if option.pods:
                    origins[len(shapes)], turns[len(shapes)] = (number, option.place), option.turn
                    numbers.setdefault(number, []).append(len(shapes))
                    pods = tuple(sorted(option.pods, key=queue_order))
                    shapes.append(Shape(pods, option.shape.asked, crowding[number]))
        found = [self._kept(number, tuple(pods)) for number, pods in sorted(self.left.items())]
        off = [replace(each, pods=pods) for each in self._kept_off.values() if (pods := _others(each.pods, joined))]
        return Assigned(
            tuple(shapes),
            (*found, *off),
            origins,
            self._companies(numbers, turns),
            are_bound=True,
            are_blocked=any(each.cause is not None for each in found),
            joined=tuple(self.joined),
            domains=self._domains,
        )

    @property
    def _domains(self) -> dict[str, frozenset[str]]:
        first, keys = len(self._before.ledger.domains.sites), self._before.keys
        places = [self._cells[site - first].place for site in self.used]
        columns = {key: {place[at] for place in places} for at, key in enumerate(keys)}
        # A label that some of them lack says nothing.
        return {
            key: frozenset(filter(None, values)) for key, values in columns.items() if values and None not in values
        }

    def _companies(self, numbers: Mapping[int, Sequence[int]], turns: Mapping[int, int]) -> tuple[Colocated, ...]:
        """Pods that must share nodes, in queue order of the first that ask for it; `turns` say who comes first."""
        found: dict[int, dict[int, Together]] = {}
        for number in numbers:
            for check in self._ledger.checks(self._shapes[number]):
                if isinstance(check, Together) and HOSTNAME in check.keys:
                    found.setdefault(id(check.tally), {})[number] = check
        counted: dict[int, list[int]] = {}
        for number in numbers:
            for tally in self._ledger.counting(self._shapes[number]):
                counted.setdefault(id(tally), []).extend(numbers[number])
        companies = []
        for tally_id, seekers in found.items():
            checks = {made: check for number, check in seekers.items() for made in numbers[number]}
            first, check = next(iter(seekers.items()))
            is_open, sought = not self._before.has_company(first, check), tuple(counted.get(tally_id, ()))
            if not check.less:
                companies.append(Colocation(tuple(checks), sought, check, is_open))
                continue
            without = {
                made: frozenset(each for tally in own.less for each in counted.get(id(tally), ()))
                for made, own in checks.items()
            }
            companies.append(Colocation(tuple(checks), sought, check, is_open, checks, without))
        return colocated(companies, turns)

    def _kept(self, number: int, pods: tuple[Pod, ...]) -> Unassigned:
        """Why no cell takes the pods: what the nearest lacks."""
        found: list[tuple[int, Unassigned]] = []
        for option in self._options[number]:
            site = self._ledger.domains.sites[option.site]
            for check in self._ledger.checks(self._shapes[number]):
                if not _is_of_one_node(check) and not check.allows(option.site, site):
                    cause, shortfall = check.cause(option.site, site)
                    if isinstance(cause, NotNear | SharedElsewhere) and cause.domain == site.name:
                        cause = replace(cause, domain=Name(""))
                    found.append((shortfall, Unassigned(pods, check.stage, cause)))
                    break
        return min(found, key=lambda each: each[0])[1] if found else Unassigned(pods)


def _others(pods: tuple[Pod, ...], joined: Collection[str]) -> tuple[Pod, ...]:
    left = tuple(pod for pod in pods if pod.key not in joined) if joined else pods
    return pods if len(left) == len(pods) else left


def _new_domains(even: Sequence[Even], site: int) -> int:
    """In how many ways a pod there would be the first in a domain that has no node yet."""
    return sum([not check.tally.is_domain(site) for check in even])


def _is_even(check: Check) -> bool:
    return isinstance(check, Even)


def _is_of_one_node(check: Check) -> bool:
    """Whether the load decides it, and not the cell; of company that must share a node the cell decides first."""
    return check.keys == (HOSTNAME,) and not isinstance(check, Together)


def _crowd(even: Sequence[Even], site: int) -> int:
    """Pods that the spread constraints count there."""
    return sum([check.count(check.tally.values[site] or "") for check in even])
