"""A test that fails once and then passes is named; one that fails twice, or many that fail, end the run."""

from pathlib import Path

import pytest

from tools import second_try

FLAKY = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", ["a/b[c]"])
def test_it(name):
    seen = Path(__file__).with_suffix(".seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen
"""
BROKEN = "def test_it(): assert False"
SOUND = "def test_it(): pass"


SKIPPED_LATER = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", ["a/b[c]"])
def test_it(name):
    seen = Path(__file__).with_suffix(".seen")
    if seen.exists():
        pytest.skip("the server is gone")
    seen.touch()
    assert False
"""


def ran(folder: Path, *files: str, workers: int = 0) -> int:
    """Run a project of these files."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text, encoding="utf-8")
    return second_try.main(["-n", str(workers), f"--rootdir={folder}", str(folder)], folder / "cache")


def test_a_test_that_passes_the_second_time_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The run passes, the first failure is shown, and the last line asks for its reason."""
    assert 0 == ran(tmp_path, FLAKY, SOUND, workers=2)
    shown = capfd.readouterr().out
    assert "assert was_seen" in shown
    assert "PASSED AT THE SECOND TRY, find out why: test_0.py::test_it[a/b[c]]" == shown.splitlines()[-1]


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Both kinds beside one another: each is named for what it is."""
    assert 1 == ran(tmp_path, FLAKY, BROKEN)
    assert [
        "PASSED AT THE SECOND TRY, find out why: test_0.py::test_it[a/b[c]]",
        "FAILED TWICE test_1.py::test_it",
    ] == (capfd.readouterr().out.splitlines()[-2:])


def test_a_test_that_is_skipped_the_second_time_has_not_passed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it was to show was not shown."""
    assert 1 == ran(tmp_path, SKIPPED_LATER, SOUND)
    assert "FAILED TWICE test_0.py::test_it[a/b[c]]" == capfd.readouterr().out.splitlines()[-1]


def test_many_failures_get_no_second_try(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Three files that fail are no accident."""
    assert 1 == ran(tmp_path, FLAKY, FLAKY, FLAKY)
    assert "once more" not in capfd.readouterr().out


def test_a_run_without_a_failure_is_one_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is said of second tries."""
    assert 0 == ran(tmp_path, SOUND)
    assert "once more" not in capfd.readouterr().out
