"""The calendar of openings counts each hour of what is kept once."""

import pytest

from kerf.engine.study.calendar import calendar, total_micro
from kerf.engine.world import World
from kerf.model.constraints import Requirements
from kerf.model.windows import WINDOW_LABEL, CapacityWindow, WarmCapacity
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

HOUR_S = 3600
MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))


def a_window(hours_open: int, lead_h: int) -> CapacityWindow:
    """One pod's room, every twelve hours."""
    selector = Requirements.of_labels({WINDOW_LABEL: "w"})
    warm = (WarmCapacity(1, a_pod(cpu=1)),)
    duration_s, lead_s = hours_open * HOUR_S, lead_h * HOUR_S
    return CapacityWindow("w", "0 */12 * * *", "UTC", duration_s, selector, warm=warm, lead_time_s=lead_s)


@pytest.mark.parametrize("lead_h, leads", [(1, [1, 1, 1]), (4, [4, 4, 4]), (5, [5, 4, 4]), (30, [30, 4, 4])])
def test_a_lead_ends_where_the_opening_before_it_does(lead_h: int, leads: list[int]) -> None:
    """Between two openings there are four hours, and what is kept in them is paid once."""
    snapshot = a_snapshot(pools=[a_pool()], windows=(a_window(8, lead_h),))
    entries = calendar(World(snapshot, MARKET), snapshot.taken_at_s + 30 * HOUR_S)

    assert leads == [entry.lead_s // HOUR_S for entry in entries[:3]]
    assert sum(8 + lead for lead in leads) * entries[0].cost_micro // (8 + leads[0]) == total_micro(entries[:3])
