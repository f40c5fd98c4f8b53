"""The fixture of all tests of controllers."""

from collections.abc import Iterator

import pytest

from tests.controllers.cluster import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """An empty cluster; whatever runs in it ends with the test."""
    built = Cluster()
    yield built
    built.close()


@pytest.fixture
def slow_cluster() -> Iterator[Cluster]:
    """The same with a cloud that takes 40 s for a launch."""
    built = Cluster(launch_s=40)
    yield built
    built.close()
