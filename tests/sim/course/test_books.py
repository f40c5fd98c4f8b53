"""Nodes and what is on them, as a simulation notes both."""

from kerf.sim.course.books import Books
from kerf.sim.kubernetes.api import ADDED, DELETED
from kerf.sim.objects import Json

NODE: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n"}, "status": {}}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
    "status": {"phase": "Running"},
}


def test_a_pod_outlives_its_node_object_and_both_may_come_back() -> None:
    """What is on a node counts until it is gone, whatever becomes of the object."""
    books = Books()

    def state() -> tuple[int, list[str]]:
        return len(books.nodes()), [pod.key for pod in books.pods_on("n")]

    seen = []
    for type_, obj in ((ADDED, NODE), (ADDED, POD), (DELETED, NODE), (ADDED, NODE), (DELETED, NODE), (DELETED, POD)):
        books.note(type_, obj)
        seen.append(state())
    assert [(1, []), (1, ["default/p"]), (0, ["default/p"]), (1, ["default/p"]), (0, ["default/p"]), (0, [])] == seen

    for obj in (POD, NODE):
        books.note(ADDED, obj)
    assert (1, ["default/p"]) == state()
    assert 1 == books.node_count
