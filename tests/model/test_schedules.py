"""Openings by the clock of a time zone: none is lost and none doubled, whatever the clock does."""

from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.schedules import due_times, first_overlap, has_zone, local_text, longest_gap_s, schedule_problem
from kerf.model.times import instant_s
from tests.examples import examples

START_S, END_S = instant_s("2026-01-01T00:00:00Z"), instant_s("2027-06-01T00:00:00Z")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "Pacific/Apia")


def shown(schedule: str, zone: str, after: str, count: int) -> list[str]:
    """The next openings as the clock of the zone shows them, without the zone."""
    found = islice(due_times(schedule, zone, instant_s(after)), count)
    return [local_text(each, zone).removesuffix(f" {zone}") for each in found]


def test_a_time_that_does_not_exist_is_due_at_the_next_that_does() -> None:
    """Berlin has no 02:30 on 29 March 2026."""
    expected = ["2026-03-28 02:30", "2026-03-29 03:00", "2026-03-30 02:30"]

    assert expected == shown("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3)


def test_several_that_do_not_exist_are_due_once() -> None:
    """02:00 and 02:30 both become 03:00, which is one opening."""
    expected = ["2026-03-29 03:00", "2026-03-30 02:00"]

    assert expected == shown("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2)


def test_a_time_that_comes_twice_is_due_once() -> None:
    """Berlin has 02:30 twice on 25 October 2026; the first counts, which is still summer time."""
    found = list(islice(due_times("30 2 * * *", "Europe/Berlin", instant_s("2026-10-24T12:00:00Z")), 2))

    assert [instant_s("2026-10-25T00:30:00Z"), instant_s("2026-10-26T01:30:00Z")] == found


def test_every_half_hour_is_no_exception() -> None:
    """Cron itself would run this four times in that hour."""
    expected = ["2026-10-25 02:00+02:00", "2026-10-25 02:30+02:00", "2026-10-26 02:00"]

    assert expected == shown("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3)


@given(zone=st.sampled_from(ZONES), after=st.integers(1_700_000_000, 1_900_000_000), hour=st.integers(0, 23))
def test_openings_rise_and_there_is_one_a_day(zone: str, after: int, hour: int) -> None:
    """Two of a daily schedule lie 22 to 26 hours apart, in every zone and on every day but one that is left out."""
    found = list(islice(due_times(f"15 {hour} * * *", zone, after), 5))

    assert all(after < each for each in found)
    assert all(22 <= (later - earlier) / 3600 <= 26 for earlier, later in pairwise(found))


@given(zone=st.sampled_from(ZONES), after=st.integers(1_700_000_000, 1_900_000_000), later=st.integers(0, 5 * 86_400))
def test_openings_do_not_depend_on_when_they_are_asked_for(zone: str, after: int, later: int) -> None:
    """Asked again at any time, those that are still to come are the same."""
    found = list(islice(due_times("*/30 1-3 * * *", zone, after), 60))
    rest = [each for each in found if each > after + later]

    assert rest == list(islice(due_times("*/30 1-3 * * *", zone, after + later), len(rest)))


@pytest.mark.parametrize(
    "schedule, problem",
    [
        ("0 8 * * *", ""),
        ("@daily", ""),
        ("0 8 * * mon-fri", ""),
        ("0 8 * *", "it has not five fields"),
        ("0 25 * * *", "bad hour"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("", "it has not five fields"),
    ],
)
def test_a_schedule_says_what_is_wrong_with_it(schedule: str, problem: str) -> None:
    """In a few words, which stand behind the place and what was expected."""
    assert problem == schedule_problem(schedule)


@pytest.mark.parametrize(
    "name, is_known",
    [
        ("Asia/Shanghai", True),
        ("UTC", True),
        ("Europe/Berln", False),
        ("", False),
        ("../UTC", False),
        ("localtime", False),
    ],
)
def test_zones_are_those_of_the_database(name: str, is_known: bool) -> None:
    """Never the machine's own."""
    assert is_known == has_zone(name)


@pytest.mark.parametrize(
    "schedule, zone, hours, overlaps",
    [
        ("0 8 * * *", "UTC", 24, False),
        ("0 8 * * *", "Asia/Shanghai", 25, True),
        ("0 8 * * *", "Europe/Berlin", 24, True),
        ("0 8 * * *", "Europe/Berlin", 23, False),
        ("0 8,10 * * *", "UTC", 3, True),
        ("0 0 1 * *", "UTC", 28 * 24, False),
        ("0 0 1 * *", "UTC", 29 * 24, True),
    ],
)
def test_openings_that_overlap_are_found(schedule: str, zone: str, hours: int, overlaps: bool) -> None:
    """In elapsed time: a day on which clocks go forward has 23 hours."""
    assert overlaps == (first_overlap(schedule, zone, hours * 3600) is not None)


@pytest.mark.parametrize(
    "schedule, hours",
    [
        ("@hourly", 1),
        ("0 9 * * *", 24),
        ("0 9,10,20 * * *", 13),
        ("0 * * * 1-5", 49),
        ("30 8 1 * *", 31 * 24),
        ("0 0 29 2 *", (8 * 365 + 1) * 24),
    ],
)
def test_the_longest_gap_is_that_of_all_days_and_years(schedule: str, hours: int) -> None:
    """Weekends, long months, and 2100, which is no leap year."""
    assert hours * 3600 == longest_gap_s(schedule)


@pytest.mark.parametrize(
    "schedule, zone, days, overlaps",
    [
        ("0 0 29 2 *", "UTC", 4 * 365 + 1, False),
        ("0 0 29 2 *", "UTC", 4 * 365 + 2, True),
        ("0 0 1 1 *", "UTC", 365, False),
        ("0 0 1 1 *", "UTC", 366, True),
        ("0 0 28 2,12 *", "UTC", 62, False),
        ("0 0 1 1,3 *", "UTC", 60, True),
        ("0 0 1 1,3 *", "UTC", 59, False),
        ("0 0 * 12,1 1#1", "UTC", 28, False),
        ("0 0 * 12,1 1#1", "UTC", 29, True),
        ("0 0 29 2 */7", "UTC", 28 * 365 + 7, False),
        ("0 0 29 2 */7", "UTC", 28 * 365 + 8, True),
    ],
)
def test_overlaps_are_found_however_many_years_they_take(schedule: str, zone: str, days: int, overlaps: bool) -> None:
    """Yearly ones, those of leap years, and a Sunday in them: over 400 years the calendar repeats itself."""
    assert overlaps == (first_overlap(schedule, zone, days * 86_400) is not None)


@examples(40)
@given(
    times=st.tuples(
        st.sampled_from(["0", "*/20", "5,50", "30"]),
        st.sampled_from(["*", "2", "0,23", "1-3", "*/6"]),
        st.sampled_from(["*", "1", "28,L", "*/2"]),
        st.sampled_from(["*", "3", "3,10", "*/5"]),
        st.sampled_from(["*", "0", "1-5", "2#1"]),
    ),
    zone=st.sampled_from(ZONES),
    minutes=st.integers(1, 60 * 24 * 40),
)
def test_the_first_overlap_is_that_of_all_openings_one_by_one(times: tuple[str, ...], zone: str, minutes: int) -> None:
    """Whatever the clock does meanwhile, and only days that may matter are looked at."""
    schedule, duration_s = " ".join(times), minutes * 60
    openings = takewhile(lambda due_s: due_s < END_S, due_times(schedule, zone, START_S))
    slow = next(((a, b) for a, b in pairwise(openings) if b < a + duration_s), None)

    found = first_overlap(schedule, zone, duration_s)
    assert slow == (found if found is None or found[1] < END_S else None)
