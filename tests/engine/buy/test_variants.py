"""Pods of one size of which some name the types that may have them."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from kerf.engine.buy.filling import Filler
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import cheapest_nodes
from kerf.engine.buy.priced import priced
from kerf.engine.buy.relaxation import relaxed
from kerf.engine.buy.variants import Rows, SizeKinds
from kerf.engine.place.shapes import group
from kerf.engine.supply.holding import Holding
from kerf.model.constraints import Requirement, Requirements
from kerf.model.pods import Pod
from kerf.testing.builders import a_pool, an_instance_type
from tests.engine.worlds import some, supply_of

_TYPE = "node.kubernetes.io/instance-type"
_NAMES = ("a", "b", "c", "d")
_TYPES = tuple(
    an_instance_type(name, cpu=cpu, memory="256Gi", price=price)
    for name, cpu, price in (("a", 16, "1.00"), ("b", 18, "1.10"), ("c", 32, "2.10"), ("d", 36, "2.30"))
)


def naming(count: int, name: str, types: Sequence[str], **given: object) -> list[Pod]:
    """So many pods that only these types may have."""
    affinity = (Requirements([Requirement.of(_TYPE, "In", sorted(types))]),)
    return some(count, name, affinity=affinity, **given)


def variants(chance: Random, count: int) -> list[Pod]:
    """Pods of one size, of so many sets of types."""
    sets = {tuple(sorted(chance.sample(_NAMES, chance.randint(1, 4)))) for _ in range(count)}
    return [pod for types in sorted(sets) for pod in naming(chance.randint(1, 6), "".join(types), types, cpu=3)]


def rows_of(pods: Sequence[Pod]) -> tuple[Rows, Filler, np.ndarray]:
    """The rows for one node of each type; by type and shape who may have it."""
    available = supply_of(a_pool(), types=_TYPES).available
    filler = Filler(group(pods), Holding(available))
    relaxation = relaxed(filler, available)
    kinds = SizeKinds(relaxation, np.ones(len(filler.shapes), dtype=np.bool_))
    able = np.ascontiguousarray(relaxation.takes.T)
    return Rows(kinds, relaxation.demand, able, [kinds.shown(at) for at in range(len(available))]), filler, able


def is_served(places: Sequence[int], demand: Sequence[int], able: np.ndarray) -> bool:
    """Whether all pods find a place: pod by pod, others give way along a path."""
    held: list[list[int]] = [[] for _ in places]

    def seat(shape: int, seen: set[int]) -> bool:
        for unit in np.flatnonzero(able[:, shape]).tolist():
            if unit in seen:
                continue
            seen.add(unit)
            if len(held[unit]) < places[unit]:
                held[unit].append(shape)
                return True
            for at, other in enumerate(held[unit]):
                if seat(other, seen):
                    held[unit][at] = shape
                    return True
        return False

    return all(seat(shape, set()) for shape, count in enumerate(demand) for _ in range(count))


@pytest.mark.parametrize("seed", range(40))
def test_rows_hold_exactly_where_all_pods_find_a_place(seed: int) -> None:
    """Whatever sets of nodes the pods name, and however these overlap."""
    chance = Random(seed)
    rows, filler, able = rows_of(variants(chance, chance.randint(2, 5)))
    demand = [len(shape) for shape in filler.shapes]

    for _ in range(30):
        places = [chance.randint(0, 2 * sum(demand) // len(_NAMES)) for _ in _NAMES]
        shown = [int(np.flatnonzero(able[unit])[0]) if able[unit].any() else 0 for unit in range(len(_NAMES))]
        nodes = np.zeros((len(_NAMES), len(demand)), dtype=np.int64)
        nodes[range(len(_NAMES)), shown] = places
        each = [rows.standing(unit, nodes[unit : unit + 1]) for unit in range(len(_NAMES))]
        held = sum(rows.places(unit, places_)[0] for unit, places_ in enumerate(each))

        assert is_served(places, demand, able) == bool((held >= rows.demand).all())


def test_pods_without_variants_have_a_row_each() -> None:
    """In the order of their shapes, with as many pods."""
    pods = [pod for size in (1, 2, 5) for pod in some(4 + size, f"p{size}", cpu=size)]

    rows, filler, _ = rows_of(pods)

    assert [len(shape) for shape in filler.shapes] == rows.demand.tolist()
    assert not rows.has_variants


def test_pods_that_differ_in_size_are_no_variants() -> None:
    """Even by a thousandth of a core."""
    pods = [*some(5, "plain", cpu="3000m"), *naming(5, "named", "a", cpu="3001m")]

    rows, _, _ = rows_of(pods)

    assert not rows.has_variants


@pytest.mark.parametrize("seed", range(12))
def test_names_of_types_cost_no_more_than_they_must(seed: int) -> None:
    """Each pod gets a node that it names, for hardly more than the bound, however pods of each size differ."""
    chance = Random(seed)
    pods = []
    for size in range(8):
        cpu = f"{chance.randint(500, 6000)}m"
        pods += some(chance.randint(20, 60), f"p{size}", cpu=cpu)
        for kind in range(chance.randint(0, 4)):
            types = chance.sample(_NAMES, chance.randint(1, 3))
            pods += naming(chance.randint(1, 12), f"p{size}-{kind}", types, cpu=cpu)
    chance.shuffle(pods)
    available, shapes = supply_of(a_pool(), types=_TYPES).available, group(pods)
    chosen = priced(Filler(shapes, Holding(available)), available, list(map(len, shapes)), Ledger((), {}))

    bought = cheapest_nodes(shapes, available, Ledger((), {}))

    assert not any(bought.left)
    assert chosen is not None
    assert bought.rank[1] <= 1.06 * chosen.least_micro
    for load, _ in bought.loads:
        for number, _ in load.held:
            named = [term.get(_TYPE) for term in shapes[number].spec.affinity]
            assert not named or any(term is not None and term.has(load.offered.kind.name) for term in named)
