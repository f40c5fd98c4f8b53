"""When a CronJob's controller starts its runs: robfig/cron on the clock of the job's time zone."""

from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.model.schedules import run_times

BERLIN = "Europe/Berlin"
ZONES = [BERLIN, "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", ""]


def runs(schedule: str, day: str, number: int, zone: str = BERLIN) -> list[str]:
    """The first runs after noon UTC of a day, as the zone's clock shows them."""
    after_s = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
    found = islice(run_times(schedule, zone, after_s), number)
    return [datetime.fromtimestamp(due_s, ZoneInfo(zone)).strftime("%m-%d %H:%M%z") for due_s in found]


def test_a_run_in_the_hour_that_is_left_out_is_lost() -> None:
    """The clock goes from 02:00 to 03:00: the next run is a day later."""
    assert ["03-30 02:30+0200"] == runs("30 2 * * *", "2026-03-28", 1)
    assert ["03-29 01:30+0100", "03-29 03:30+0200"] == runs("30 * * * *", "2026-03-28", 14)[-2:]


def test_a_run_in_the_hour_that_comes_twice_comes_twice() -> None:
    """In the order of the instants, not of the clock."""
    assert ["10-25 02:30+0200", "10-25 02:30+0100", "10-26 02:30+0100"] == runs("30 2 * * *", "2026-10-24", 3)
    assert ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100"] == runs(
        "*/30 2 * * *", "2026-10-24", 4
    )


def test_the_clock_is_that_of_the_zone() -> None:
    """08:00 in Shanghai is midnight UTC; without a zone it is 08:00 UTC."""
    after_s = datetime(2026, 1, 4, 12, tzinfo=UTC).timestamp()

    assert 12 * 3600 == next(run_times("0 8 * * *", "Asia/Shanghai", after_s)) - after_s
    assert 20 * 3600 == next(run_times("0 8 * * *", "", after_s)) - after_s


@given(
    st.sampled_from(["0 * * * *", "*/30 2 * * *", "15 1-3 * * *", "@hourly"]),
    st.sampled_from(ZONES),
    st.integers(1_767_225_600, 1_798_761_600),
)
@settings(max_examples=200, derandomize=True, database=None)
def test_runs_rise_and_all_come_after(schedule: str, zone: str, after_s: int) -> None:
    """None is given twice, and beginning later leaves out only what was before."""
    found = list(islice(run_times(schedule, zone, after_s), 8))

    assert all(first < second for first, second in pairwise([after_s, *found]))
    assert found[3:] == list(islice(run_times(schedule, zone, found[2]), 5))
