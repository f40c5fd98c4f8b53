"""Beside another owner of the same objects: what is hidden, what a dry run says, and what is left alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from kerf.controllers.composition import compose
from kerf.controllers.managed import ManagedReader
from kerf.controllers.nodeclaim.garbagecollection import GarbageCollection
from kerf.controllers.runtime import DONE, Result, Runtime
from kerf.model.constraints import Requirement, Requirements
from kerf.model.nodeclaim import PLANNED_OFFERING, NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.snapshot import Deleted, Event, Relisted, Synced, Upserted
from kerf.testing.builders import AWS_CLASS, a_claim, a_node, a_pool
from tests.clouds.market import claim
from tests.controllers.cluster import STAGES, Cluster, pod, pool

OURS = Requirements([Requirement.of("kerf.dev/managed", "In", ("true",))])
MADE_HERE = {PLANNED_OFFERING: "m5.xlarge/a/on-demand"}
SYNCED = Synced()


class Told:
    """A reader that tells these events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    async def events(self) -> AsyncIterator[Event]:
        """All of them, in order."""
        for event in self._events:
            yield event


def our_pool(name: str = "ours") -> NodePool:
    """A pool with the label."""
    return a_pool(name, own_labels={"kerf.dev/managed": "true"})


def shown(*events: Event) -> list[str]:
    """What comes through, as `+NAME` and `-NAME`."""
    return [_text(event) for event in seen(ManagedReader(Told(events), OURS))]


def seen(reader: ManagedReader) -> list[Event]:
    """All that it tells."""

    async def read() -> list[Event]:
        return [event async for event in reader.events() if not isinstance(event, Relisted)]

    return asyncio.run(read())


def _text(event: Event) -> str:
    if isinstance(event, Synced):
        return "synced"
    return f"{'-' if isinstance(event, Deleted) else '+'}{getattr(event.value, 'name', '')}"


def held(name: str, pool: str, annotations: dict[str, str] | None = None) -> Upserted:
    """A claim of a pool."""
    return Upserted(a_claim(name, pool=pool, annotations=annotations or {}))


def test_pools_without_the_label_are_hidden_with_their_claims() -> None:
    """Nodes are shown all the same: they hold pods, whoever made them."""
    pools = (Upserted(a_pool("theirs")), Upserted(our_pool()))

    assert ["+ours", "+b-1", "+n", "synced"] == shown(
        held("a-1", "theirs"), *pools, held("b-1", "ours"), Upserted(a_node("n")), SYNCED
    )


def test_a_claim_that_is_reported_before_its_pool_comes_with_it() -> None:
    """The resources are listed side by side."""
    assert ["+ours", "+b-1", "synced"] == shown(held("b-1", "ours"), Upserted(our_pool()), SYNCED)


def test_a_label_that_goes_takes_the_claims_along_and_one_that_comes_brings_them() -> None:
    """At once, and nobody may take them for gone from the cluster."""
    events = (Upserted(our_pool("p")), held("p-1", "p"), SYNCED, Upserted(a_pool("p")), Upserted(our_pool("p")))

    assert ["+p", "+p-1", "synced", "-p-1", "-p", "+p", "+p-1"] == shown(*events)


def test_the_claims_of_a_deleted_pool_stay_ours_while_they_drain() -> None:
    """Those that Kerf made, also after a restart; who else would end them?"""
    foreign, own = held("x-1", "gone"), held("p-1", "p", annotations=MADE_HERE)
    left: NodeClaim = a_claim("p-1", pool="p", annotations=MADE_HERE, deleted_s=5)
    begun = (Upserted(our_pool("p")), own, foreign, SYNCED)

    assert ["+p", "+p-1", "synced", "-p", "+p-1"] == shown(*begun, Deleted(our_pool("p")), Upserted(left))
    assert ["+p-1", "synced", "-p-1"] == shown(foreign, own, SYNCED, Deleted(left))


def test_a_claim_that_moves_to_a_foreign_pool_is_gone() -> None:
    """Whoever edits the label of a claim gives it away."""
    events = (Upserted(our_pool("p")), Upserted(a_pool("theirs")), held("c", "p"), SYNCED, held("c", "theirs"))

    assert ["+p", "+c", "synced", "-c"] == shown(*events)


AZURE = NodeClassRef("karpenter.azure.com", "AKSNodeClass", "default")


def test_what_is_of_another_providers_kind_is_hidden() -> None:
    """As Karpenter does: our cloud lists none of its instances, and could end none."""
    theirs = replace(a_pool("theirs"), node_class=AZURE)
    foreign = replace(a_claim("a-1", pool="theirs", uid="a"), node_class=AZURE)
    claims = (Upserted(foreign), Upserted(a_claim("b-1", pool="ours", uid="b")))
    events = (*claims, Upserted(theirs), Upserted(a_pool("ours")), SYNCED, Deleted(theirs))
    reader = ManagedReader(Told(events), Requirements(), (AWS_CLASS.group, AWS_CLASS.kind))

    assert ["+b-1", "+ours", "synced"] == list(map(_text, seen(reader)))
    assert (True, False) == (reader.is_foreign("a"), reader.is_foreign("b"))


def test_without_labels_to_know_ours_by_a_claim_whose_pool_is_gone_is_ours() -> None:
    """Whoever made it: no other controller would end it."""
    reader = ManagedReader(Told((held("x-1", "gone"), SYNCED)), Requirements(), (AWS_CLASS.group, AWS_CLASS.kind))

    assert ["+x-1", "synced"] == list(map(_text, seen(reader)))


def test_the_instance_of_a_hidden_claim_is_not_collected(cluster: Cluster) -> None:
    """Its claim exists: that we do not look at it makes it nobody's prey."""
    cluster.done(cluster.cloud.create(claim("theirs-1", "uid-theirs", types=("g5.xlarge",))))
    reader = ManagedReader(Told([Upserted(a_claim("theirs-1", pool="theirs", uid="uid-theirs")), SYNCED]), OURS)
    seen(reader)
    parts = (cluster.state, cluster.ports, cluster.settings)
    cluster.start(GarbageCollection(*parts, reader.is_foreign))
    cluster.at(300)

    assert ["uid-theirs"] == [instance.claim_uid for instance in cluster.cloud.instances]
    assert (True, False) == (reader.is_foreign("uid-theirs"), reader.is_foreign("uid-nobody"))


def shadowed(cluster: Cluster) -> Runtime:
    """All controllers as a dry run."""
    runtime = compose(cluster.ports, cluster.settings, assume_node_classes=True)
    runtime.lead(is_dry_run=True)
    cluster.at(cluster.now_s, runtime.start)
    return runtime


def test_a_dry_run_says_what_it_would_do_and_does_nothing(cluster: Cluster) -> None:
    """A launch on the pool, a removal on the claim; pods, nodes, claims and pools stay as they were."""
    cluster.put(pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    cluster.running(1, reached=(*STAGES, "Consolidatable"))
    cluster.put(pod("p", limits={"nvidia.com/gpu": "1", "cpu": "900"}), pod("q"), pod("r"))
    before = [cluster.api.list(kind) for kind in ("Pod", "Node", "NodeClaim", "NodePool")]
    runtime = shadowed(cluster)
    cluster.at(60)
    runtime.stop()

    assert before == [cluster.api.list(kind) for kind in ("Pod", "Node", "NodeClaim", "NodePool")]
    assert cluster.said("WouldLaunch")[0].startswith("dry run: would launch g5.xlarge on-demand")
    assert [] == cluster.said("Nominated") + cluster.said("TriggeredScaleUp")
    (verdict,) = [each for each in cluster.api.list("Event") if each["reason"] == "FailedScheduling"]
    assert ("Normal", True) == (verdict["type"], verdict["message"].startswith("dry run: Failed to schedule pod, "))


def test_a_dry_run_names_the_nodes_that_could_go(cluster: Cluster) -> None:
    """After the same rest as a removal."""
    cluster.put(pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    cluster.running(1, reached=(*STAGES, "Consolidatable"))
    runtime = shadowed(cluster)
    cluster.at(60)
    runtime.stop()

    assert cluster.said("WouldDisrupt")[0].startswith("dry run: would remove its node: Empty: empty for ")
    assert not cluster.claim().is_deleting


class Counted:
    """A controller that says how many were made before it."""

    name = "counted"
    made = 0

    def __init__(self) -> None:
        Counted.made += 1

    def keys(self, event: Event, previous: object) -> tuple[str, ...]:
        """Nothing is of interest."""
        return ()

    async def reconcile(self, key: str) -> Result:
        """Nothing is to be done."""
        return DONE


def test_each_lead_begins_with_an_empty_memory(cluster: Cluster) -> None:
    """What a controller remembers of an earlier lead is older than what another leader has done since."""
    runtime = Runtime(cluster.ports, cluster.state, lambda: (Counted(),))
    before = Counted.made
    for _ in range(2):
        runtime.lead()
        runtime.follow()

    assert 2 == Counted.made - before
