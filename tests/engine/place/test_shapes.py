"""Equal pods are grouped once, in an order that is the scheduler's."""

import random
import sys

from kerf.engine.place.shapes import Readings, Shape, group, queue_order
from kerf.model.pods import natural
from kerf.sharing.shown import Counting
from kerf.testing.builders import NOON_S, a_pod, resources
from tests.engine.worlds import some


def keys(shapes: tuple[Shape, ...]) -> list[list[str]]:
    """Names of the pods of each shape."""
    return [[pod.name for pod in shape.pods] for shape in shapes]


def test_equal_pods_are_one_shape_in_natural_order() -> None:
    """p-2 before p-10, whatever the order of the input."""
    pods = some(12, cpu=1)
    random.Random(1).shuffle(pods)

    assert [[f"p-{n}" for n in range(12)]] == keys(group(pods))


def test_equal_specs_need_not_be_one_object() -> None:
    """Equality is by value; decode's interning only makes it quick."""
    assert [["a", "b"]] == keys(group([a_pod("a", cpu=1), a_pod("b", cpu=1)]))


def test_what_a_family_may_read_keeps_pods_apart() -> None:
    """Another spec, annotation, uid or finished init containers are another shape."""
    pods = [
        a_pod("a"),
        a_pod("b", cpu=1),
        a_pod("c", annotations={"nvidia.com/use-gputype": "A10G"}),
        a_pod("d", uid="u"),
        a_pod("e", initialised=True),
    ]

    assert [["a"], ["b"], ["c"], ["d"], ["e"]] == keys(group(pods))


def test_what_schedulers_and_tools_wrote_does_not() -> None:
    """Times of HAMi, kubectl's copy and how long a simulated pod runs are no wishes."""
    pods = [
        a_pod("a", annotations={"hami.io/vgpu-time": "1"}),
        a_pod("b", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        a_pod("c", annotations={"kerf.dev/run-for": "10m"}, namespace="other"),
    ]

    assert [["a", "b", "c"]] == keys(group(pods))


def test_namespaces_count_where_a_quota_does() -> None:
    """Only there do pods of two namespaces differ."""
    pods = [a_pod("a", namespace="one"), a_pod("b", namespace="two")]

    assert [["a", "b"]] == keys(group(pods))
    assert [["a"], ["b"]] == keys(group(pods, Readings(frozenset({"one"}))))


def test_the_queue_is_by_priority_then_age_then_name() -> None:
    """As kube-scheduler's, with names where it would toss a coin."""
    pods = [
        a_pod("old", created_s=NOON_S - 9),
        a_pod("urgent", priority=5, created_s=NOON_S),
        a_pod("b-10", created_s=NOON_S - 5),
        a_pod("b-9", created_s=NOON_S - 5),
    ]

    assert ["urgent", "old", "b-9", "b-10"] == [pod.name for pod in sorted(pods, key=queue_order)]


def test_what_is_remembered_of_a_pod_needs_no_table_of_its_own() -> None:
    """A burst has 100,000 pods, and CPython's table of attributes takes more than a kilobyte."""
    pods = [a_pod(f"p-{number}") for number in range(3)]
    before = [sys.getsizeof(vars(pod)) for pod in pods]

    assert all(pod.key and pod.queue_order and not pod.demands for pod in pods)
    assert before == [sys.getsizeof(vars(pod)) for pod in pods]


def test_numbers_in_names_are_compared_as_numbers() -> None:
    """Also where one name has a number and the other a letter."""
    assert ["2", "10", "a", "web-2", "web-10", "web-a"] == sorted(
        ["web-a", "10", "web-10", "a", "2", "web-2"], key=natural
    )


def test_counted_requests_leave_out_what_no_sum_decides() -> None:
    """Slices and cards are counted card by card."""
    shape = Shape((a_pod(cpu=1, gpu=1, gpumem=1000),))

    assert resources(cpu=1, pods=1, gpu=1) == shape.counted(Counting(frozenset({"nvidia.com/gpumem"})))
    assert 1 == len(shape)
