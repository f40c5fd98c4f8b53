"""Whose clock counts where the API server's and ours differ."""

import time
from email.utils import formatdate

import pytest

from kerf.kube.client import ServerClock


def heard(ahead_s: float, took_s: float = 0.1) -> ServerClock:
    """A clock after one answer of a server that is so much ahead."""
    clock = ServerClock()
    clock.heard(formatdate(time.time() + ahead_s, usegmt=True), took_s)
    return clock


@pytest.mark.parametrize("ahead_s", [-3600, -30, 30])
def test_a_clock_that_differs_gives_way_to_the_servers(ahead_s: float) -> None:
    """To a second or so, which is what a date in whole seconds tells."""
    assert pytest.approx(ahead_s, abs=2) == heard(ahead_s).now_s() - time.time()


@pytest.mark.parametrize("took_s, ahead_s", [(0.1, 0), (0.1, 1), (20, 30)], ids=["equal", "nearly", "slow answer"])
def test_what_a_date_cannot_tell_changes_nothing(took_s: float, ahead_s: float) -> None:
    """Nor does an answer that was long on its way, when nobody knows at which end."""
    assert pytest.approx(0, abs=0.1) == heard(ahead_s, took_s).now_s() - time.time()


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_an_answer_without_a_date_shows_nothing(date: str | None) -> None:
    """A proxy may drop or spoil it."""
    clock = heard(30)
    clock.heard(date, 0.1)

    assert pytest.approx(30, abs=2) == clock.now_s() - time.time()


def test_a_clock_that_was_set_right_is_believed_again() -> None:
    """The difference is that of the newest answer."""
    clock = heard(30)
    clock.heard(formatdate(time.time(), usegmt=True), 0.1)

    assert pytest.approx(0, abs=0.1) == clock.now_s() - time.time()
