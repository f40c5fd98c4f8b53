"""What LimitRanges allow: each case is asked of a real server too (`tests/controlplane/test_refused_pods.py`)."""

import pytest

from kerf.manifests.admission import admission_of
from kerf.manifests.pods.decode import read_spec
from tests.manifests.pods.ranges import ASKED, TAKEN, objects


@pytest.mark.parametrize("name", ASKED)
def test_a_range_allows_what_a_server_takes(name: str) -> None:
    """Defaults come first: a min is the request of a container that says none."""
    limits, pod = objects(name)
    reading = read_spec(pod["spec"], admission_of([], [limits]).defaults("default"))

    assert (name in TAKEN) == (reading.invalid is None), reading.invalid


def test_the_refusal_of_a_whole_pod_names_its_sum() -> None:
    """The field is the one by which a pod could say it as a whole."""
    limits, pod = objects("sum over the max")
    found = read_spec(pod["spec"], admission_of([], [limits]).defaults("default")).invalid

    assert found is not None
    assert ("resources", "limits", "memory") == found.path
    assert ("at most 1Gi, the max of a LimitRange of its namespace for whole pods", "1536Mi") == (
        found.expected,
        found.got,
    )
