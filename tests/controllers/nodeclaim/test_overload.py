"""002-1: what is said of a node that is busy although little is asked of it, and how often."""

from dataclasses import replace

from kerf.controllers.nodeclaim.overload import Overload
from kerf.controllers.usage import UsageBook
from kerf.model.usage import NO_USAGE, NodeUsage, Usage
from kerf.sim.objects import Json
from kerf.testing.builders import a_node
from tests.controllers.cluster import Cluster, node_object, pod
from tests.controllers.test_usage import Metrics


def used(*millis: int) -> Usage:
    """Of node-1, node-2, ..."""
    return Usage(nodes={f"node-{n}": NodeUsage(f"node-{n}", 0, 60, cpu, 0) for n, cpu in enumerate(millis, 1)})


def start(cluster: Cluster) -> UsageBook:
    """The controller alone, which is fed by hand."""
    cluster.ports = replace(cluster.ports, usage=Metrics())
    book = UsageBook()
    cluster.start(Overload(cluster.state, cluster.ports, book, cluster.settings))
    return book


def run(name: str, on: str = "node-1", cpu: str = "0") -> Json:
    """A pod of Job web."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    made = pod(name, nodeName=on, containers=[container])
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "web", "controller": True}]
    return made


def marked(cluster: Cluster, claim: str = "gpu-1") -> str:
    """The status of the condition; empty without one."""
    held = cluster.claim(claim).condition("Overloaded")
    return "" if held is None else held.status


def piled_up(cluster: Cluster) -> UsageBook:
    """Three pods without requests on node-1, which is about to be seen at 97 %."""
    cluster.running(1)
    cluster.put(run("a"), run("b"), run("c"))
    return start(cluster)


def test_an_episode_is_said_once_on_the_claim_the_node_and_the_job(cluster: Cluster) -> None:
    """While it lasts nothing is repeated, however often usage is read."""
    book = piled_up(cluster)
    assert "" == marked(cluster)

    for second in range(10, 400, 60):
        cluster.at(second, lambda: setattr(book, "usage", used(3880)))
    cluster.at(500)

    told = "uses 97 % of its cpu and is asked for 0 %; by Job default/web"
    assert ("True", "UsedBeyondRequests", told) == cluster.condition("Overloaded")
    assert 1 == len(cluster.said("Overloaded"))
    assert [
        "3 pods of Job default/web ask 0 cpu on node node-1; nothing waits, so no node is bought "
        "(hint: kerf explain job/default/web)"
    ] == cluster.said("OverloadsNode")
    [event] = [e for e in cluster.api.list("Event") if e["reason"] == "OverloadsNode"]
    owner = cluster.api.get("Job", "default", "web")
    assert owner is not None
    assert ("batch/v1", "Job", owner["metadata"]["uid"]) == tuple(
        event["involvedObject"][key] for key in ("apiVersion", "kind", "uid")
    )


def test_a_restart_says_nothing_again_and_a_second_episode_does(cluster: Cluster) -> None:
    """The condition is the memory: it ends when use falls below 80 %."""
    book = piled_up(cluster)
    cluster.at(10, lambda: setattr(book, "usage", used(3880)))
    cluster.at(30)
    cluster.crash()
    book = start(cluster)
    cluster.at(60, lambda: setattr(book, "usage", used(3300)))
    cluster.at(90)
    assert ("True", 1) == (marked(cluster), len(cluster.said("OverloadsNode")))

    cluster.at(120, lambda: setattr(book, "usage", used(3100)))
    cluster.at(150)
    assert "False" == marked(cluster)
    cluster.at(180, lambda: setattr(book, "usage", used(3700)))
    cluster.at(210)

    assert ("True", 2, 2) == (marked(cluster), len(cluster.said("Overloaded")), len(cluster.said("OverloadsNode")))


def test_a_job_on_several_nodes_is_reported_once(cluster: Cluster) -> None:
    """Of all that begin together, and no more of those that follow while it lasts."""
    for number in (1, 2, 3):
        cluster.running(number)
    cluster.put(*(run(f"p{number}", f"node-{number}") for number in (1, 2, 3)))
    book = start(cluster)

    cluster.at(10, lambda: setattr(book, "usage", used(4000, 4000, 100)))
    cluster.at(30, lambda: setattr(book, "usage", used(4000, 4000, 4000)))
    cluster.at(60)

    assert (["True"] * 3, 3) == ([marked(cluster, f"gpu-{n}") for n in (1, 2, 3)], len(cluster.said("Overloaded")))
    [told] = cluster.said("OverloadsNode")
    assert told.startswith("2 pods of Job default/web ask 0 cpu on 2 nodes")


def test_a_node_that_is_asked_for_much_is_not_ours(cluster: Cluster) -> None:
    """Full by requests: the scheduler knows, and new pods wait and are bought for."""
    cluster.running(1)
    cluster.put(run("a", cpu="2"))
    book = start(cluster)
    cluster.at(10, lambda: setattr(book, "usage", used(4000)))
    cluster.at(30)

    assert ("", []) == (marked(cluster), cluster.said("Overloaded"))


def test_without_usage_nothing_is_said_and_nothing_taken_back(cluster: Cluster) -> None:
    """A metrics server that falls silent is no calm."""
    book = piled_up(cluster)
    cluster.at(10, lambda: setattr(book, "usage", used(4000)))
    cluster.at(60, lambda: setattr(book, "usage", NO_USAGE))
    cluster.at(120)

    assert "True" == marked(cluster)


def test_a_node_without_a_claim_is_reported_too(cluster: Cluster) -> None:
    """It has no place for a condition; the event is all there is."""
    cluster.put(node_object(a_node("node-1"), cluster.clock.now_s()), run("a"))
    book = start(cluster)
    for second, cpu in ((10, 4000), (70, 3900), (130, 100), (190, 4000)):
        cluster.at(second, lambda cpu=cpu: setattr(book, "usage", used(cpu)))  # type: ignore[misc]
    cluster.at(250)

    assert (2, 2) == (len(cluster.said("Overloaded")), len(cluster.said("OverloadsNode")))


def test_pods_that_come_later_are_reported_later(cluster: Cluster) -> None:
    """Usage of a node may be known before its pods are; what is said then is remembered with the claim."""
    cluster.running(1)
    book = start(cluster)
    cluster.at(10, lambda: setattr(book, "usage", used(4000)))
    cluster.at(30)
    assert (1, []) == (len(cluster.said("Overloaded")), cluster.said("OverloadsNode"))

    cluster.put(run("a"))
    for second in (70, 130):
        cluster.at(second, lambda: setattr(book, "usage", used(4000)))
    cluster.crash()
    book = start(cluster)
    cluster.at(190, lambda: setattr(book, "usage", used(4000)))
    cluster.at(250)

    assert (1, 1) == (len(cluster.said("Overloaded")), len(cluster.said("OverloadsNode")))
    assert cluster.condition("Overloaded")[2].endswith("; by Job default/web")


def test_who_was_named_stands_in_an_annotation_until_the_episode_ends(cluster: Cluster) -> None:
    """Anything else there only means one more event."""
    book = piled_up(cluster)
    cluster.at(10, lambda: setattr(book, "usage", used(3880)))
    cluster.at(30)
    (claim,) = cluster.api.list("NodeClaim")
    assert '["Job default/web"]' == claim["metadata"]["annotations"]["kerf.dev/overloaded-by"]

    cluster.change("NodeClaim", claim["metadata"]["name"], metadata={"annotations": {"kerf.dev/overloaded-by": "{["}})
    cluster.at(70, lambda: setattr(book, "usage", used(100)))
    cluster.at(100)
    (claim,) = cluster.api.list("NodeClaim")
    assert "kerf.dev/overloaded-by" not in claim["metadata"].get("annotations", {})
