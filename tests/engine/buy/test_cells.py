"""The labels that nodes to be may have, for pods that spread by them."""

from kerf.engine.buy.cells import cells
from kerf.engine.supply.holding import Holding
from kerf.model.constraints import ZONE, Requirement, Requirements
from kerf.testing.builders import a_pool
from tests.engine.worlds import M5, M5_2X, offer


def test_labels_that_no_node_to_be_has_make_no_further_cells() -> None:
    """However many, and wherever they stand among the others; each cell says that its nodes lack them."""
    pool = a_pool(requirements=Requirements([Requirement.of("team", "In", ("a", "b"))]))
    offered = [offer(pool, M5), offer(pool, M5_2X)]
    none = [f"rack-{number}" for number in range(300)]
    few = cells((ZONE, "team"), offered, Holding(offered))
    many = cells((*none[:100], ZONE, *none[100:200], "team", *none[200:]), offered, Holding(offered))

    lacking = (None,) * 100
    assert [(*lacking, zone, *lacking, team, *lacking) for zone, team in (each.place for each in few.held)] == [
        each.place for each in many.held
    ]
    assert [each.prices for each in few.held] == [each.prices for each in many.held]
    assert [{key for key in site.labels if key in (ZONE, "team", *none)} for site in many.sites] == [
        {ZONE, "team"} for _ in few.held
    ]
