"""`-w`: looks again and again, prints what has changed, and outlives what fails on the way."""

from pathlib import Path

import pytest

from kerf.cli.inputs.watching import is_only_older
from tests.cli.program import CLUSTER, ROOT
from tests.cli.watching import watching


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A dump of a cluster that may be changed."""
    path = tmp_path / "cluster.yaml"
    path.write_text((ROOT / CLUSTER).read_text(encoding="utf-8"), encoding="utf-8")
    return path


def test_what_has_changed_is_printed_and_nothing_else(cluster: Path) -> None:
    """Unchanged: not a word. Changed: all of it again, after an empty line. Ctrl-C: exit 130, no traceback."""
    with watching("nodes", "-f", str(cluster)) as watch:
        watch.until("3 nodes")
        assert [] == watch.silence()

        text = cluster.read_text(encoding="utf-8")
        cluster.write_text(text.replace("ip-10-0-0-2", "ip-10-0-0-3"), encoding="utf-8")
        assert watch.until("ip-10-0-0-3").endswith("1.006")
        assert 130 == watch.interrupt()


def test_an_error_is_reported_once_and_tried_again(cluster: Path) -> None:
    """A file that cannot be read for a while ends nothing; once it can, all is printed again."""
    with watching("nodes", "-f", str(cluster)) as watch:
        watch.until("3 nodes")
        cluster.rename(cluster.with_suffix(".away"))
        assert "error:" in watch.until("No such file")
        assert [] == watch.silence()

        cluster.with_suffix(".away").rename(cluster)
        watch.until("3 nodes")


def test_an_error_at_the_first_look_ends_it(tmp_path: Path) -> None:
    """What never worked is a mistake."""
    with watching("nodes", "-f", str(tmp_path / "none.yaml")) as watch:
        watch.until("error:")
        assert 2 == watch.ended()


def test_that_time_passes_is_no_change() -> None:
    """Ages and what is left of a wait are passed over, also where a column gets wider by them; the rest counts."""
    assert is_only_older("a  58s   1/1", "a  1m0s  1/1", 2)
    assert is_only_older("a  59m   1/1", "a  1h    1/1", 2)
    assert is_only_older("it may go in 4m30s, unless", "it may go in 4m28s, unless", 2)
    assert is_only_older('"ageSeconds": 5, "gpus": 1', '"ageSeconds": 7, "gpus": 1', 2)
    assert not is_only_older("a  9s   1/1", "a  9s   0/1", 2)


def test_a_quantity_is_no_age() -> None:
    """Milli-cpus look like minutes, but time does not change them so fast."""
    assert not is_only_older("3 pods need 100m", "3 pods need 700m", 2)
    assert not is_only_older("a  9s", "a  9s  9s", 2)
