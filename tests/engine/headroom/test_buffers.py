"""Room that CapacityBuffers keep free, and what their status says of it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.buffers import buffer_status, buffer_verdict
from kerf.engine.explain.plan import plan
from kerf.engine.headroom.buffers import buffered
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.capacitybuffers import BufferStatus, CapacityBuffer, Scalable, ScalableRef
from kerf.model.causes import FieldRefusal, Name, Quoted
from kerf.model.groups import POD_GROUP
from kerf.model.nodeclaim import DO_NOT_DISRUPT, FALSE, Condition
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.plan import Stage
from kerf.model.pods import Owner, Pod
from kerf.model.provisioningrequests import PodTemplate
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota
from kerf.model.uses import Use
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))
WEB = ScalableRef("apps", "Deployment", "web")
BIG = PodTemplate("team", "big", a_pod("big", namespace="team", cpu=3), generation=4)
READY, PROVISIONING, LIMITED = "ReadyForProvisioning", "Provisioning", "LimitedByQuotas"


def a_buffer(replicas: int | None = 3, template: str = "big", **given: Any) -> CapacityBuffer:
    """For pods of which each takes a node of its own."""
    fields = {"name": "b", "uid": "b", "created_s": NOON_S - 60, **given}
    return CapacityBuffer("team", pod_template=template, replicas=replicas, **fields)


def of_web(replicas: int = 10, percentage: int = 20, **given: Any) -> tuple[CapacityBuffer, Scalable]:
    """A share of a Deployment, and it."""
    pod = replace(BIG.pod, name="web", owner=Owner("Deployment", "web"))
    buffer = a_buffer(None, "", scalable=WEB, percentage=percentage, **given)
    return buffer, Scalable("team", "Deployment", "web", replicas, pod)


def world(*buffers: CapacityBuffer, pods: Iterable[Pod] = (), up: int = 2, **given: Any) -> ClusterSnapshot:
    """A pool that names the namespace, and nodes that are up and empty but for `pods` that name them."""
    annotations = given.pop("annotations", {Use.BUFFER: "team"})
    pools = [a_pool(limits={"nodes": given.pop("most", 9)}, own_annotations=annotations)]
    nodes, claims = [a_node(f"n{i}") for i in range(up)], [a_claim(f"c{i}", node_name=f"n{i}") for i in range(up)]
    templates = given.pop("templates", (BIG,))
    more = {"pod_templates": templates, "capacity_buffers": buffers, "scalables": given.pop("scalables", ())}
    return a_snapshot(pods=pods, pools=pools, nodes=nodes, claims=claims, **more, **given)


def decided(snapshot: ClusterSnapshot) -> Decision:
    """What is decided for it."""
    return decide(World(snapshot, MARKET), Options(with_bound=False))


def room(snapshot: ClusterSnapshot) -> tuple[int, int]:
    """Places on nodes that are there, and nodes that are bought."""
    made = decided(snapshot)
    return len(made.placements), len(made.launches)


def status(snapshot: ClusterSnapshot) -> BufferStatus:
    """Of its first buffer."""
    found = buffered(snapshot)[0]
    return buffer_status(found, buffer_verdict(found, decided(snapshot)), snapshot.taken_at_s)


def told(snapshot: ClusterSnapshot) -> dict[str, tuple[str, str, str]]:
    """The conditions of its first buffer."""
    return {each.type: (each.status, each.reason, each.message) for each in status(snapshot).conditions}


def test_what_is_missing_is_bought_as_far_as_there_is_any() -> None:
    """Two places are there, the third is bought within the pool's limit; what is there is kept all the same."""
    assert (2, 1) == room(world(a_buffer()))
    assert (2, 0) == room(world(a_buffer(), most=2))


def test_a_pod_that_comes_takes_the_room_and_it_is_bought_again() -> None:
    """It is planned before all that a buffer keeps, whatever its priority."""
    late = a_pod("late", namespace="team", cpu=3, priority=-1000)
    made = decided(world(a_buffer(2), pods=[late]))

    assert "team/late" in {each.pod.pod for each in made.placements}
    assert [1] == [len(launch.pods) for launch in made.launches]
    assert all(Placeholder.of(each.pod) for launch in made.launches for each in launch.pods)


def test_no_pod_gives_way_to_it() -> None:
    """Its pods come after all that there are."""
    running = [a_pod(f"p{i}", cpu=3, node_name=f"n{i}", phase="Running", uid=str(i), priority=-5) for i in range(2)]

    assert () == decided(world(a_buffer(2), pods=running)).evictions


def test_a_share_of_a_workload_follows_it() -> None:
    """Of what it is to have, not of what runs."""
    for replicas, places in ((10, 2), (11, 3), (0, 0)):
        buffer, web = of_web(replicas)
        assert places == len(buffered(world(buffer, scalables=(web,)))[0].pods)


def test_its_pods_are_places_and_nothing_else() -> None:
    """Without owner, group, gates and volumes: the claims of a pod come with it, and Karpenter leaves them out, too."""
    spec = replace(BIG.pod.spec, claims=("data",), scheduling_gates=("example.com/wait",))
    labels = {"app": "web", POD_GROUP: "g", OPPORTUNISTIC: "true"}
    pod = replace(BIG.pod, spec=spec, labels=labels, annotations={DO_NOT_DISRUPT: "true", "a": "b"})
    buffer, web = of_web()
    (found, _) = buffered(world(buffer, scalables=(replace(web, pod=replace(pod, owner=web.pod.owner)),)))[0].pods

    assert ((), (), None) == (found.spec.claims, found.spec.scheduling_gates, found.owner)
    assert ({"app": "web"}, {"a": "b"}) == (found.labels, found.annotations)
    assert Placeholder(Keeper.BUFFER, "team/b") == found.kept_for


@pytest.mark.parametrize(
    ("given", "number", "why"),
    [
        pytest.param({"annotations": {}}, 1, "no ResourceQuota of namespace team limits", id="nobody bounds it"),
        pytest.param({"annotations": {Use.BUFFER: "other"}}, 0, "no NodePool names namespace team", id="others alone"),
        pytest.param(
            {"quotas": (ResourceQuota("team", "q", {"requests.cpu": 6000}),)}, 2, "ResourceQuota team/q", id="quota"
        ),
    ],
)
def test_a_tenant_has_no_more_kept_than_it_is_let(given: dict[str, Any], number: int, why: str) -> None:
    """As for requests and runs; what is not granted counts as failed, and the condition says what to do."""
    snapshot = world(a_buffer(5), up=0, **given)
    found = told(snapshot)

    assert (0, number) == room(snapshot)
    assert why in found[LIMITED][2]
    assert found[PROVISIONING][2].startswith(f"{number}/5 virtual pods required new capacity, {5 - number} failed")
    assert [LIMITED] == [each for each in found if found[each][0] == "True" and each != READY]


def test_a_number_without_end_is_cut() -> None:
    """A limit of a thousand cores is a number of small pods that nobody could plan for."""
    tiny = PodTemplate("team", "tiny", a_pod("tiny", namespace="team", cpu="1m", memory="1Mi"))
    buffer = a_buffer(None, "tiny", limits=Resources({"cpu": 10**9}))
    (found,) = buffered(world(buffer, templates=(tiny,)))

    assert (10**9, 1000) == (found.wanted, len(found.pods))


def test_the_oldest_is_served_first() -> None:
    """By its name where they are of one age."""
    old, young = a_buffer(2, name="z", created_s=1), a_buffer(2, name="a")
    snapshot = world(young, old, up=2, most=2)

    assert {"capacitybuffer:team.z"} == {each.pod.pod.partition("/")[0] for each in decided(snapshot).placements}


def test_it_is_there_once_all_places_are_on_nodes_that_are_up() -> None:
    """In Karpenter's words."""
    found = told(world(a_buffer(2)))

    assert ("True", "Resolved", "Pod template resolved successfully") == found[READY]
    assert ("True", "FitsExistingCapacity", "All 2 virtual pods fit on existing capacity") == found[PROVISIONING]
    assert ("False", "RequiresNewCapacity", "1/3 virtual pods required new capacity, 0 failed") == (
        told(world(a_buffer()))[PROVISIONING]
    )


def test_without_room_it_says_what_is_missing() -> None:
    """Karpenter's words, and the figures of a plan after them."""
    text = "0/3 virtual pods required new capacity, 1 failed: limit nodes 2 of NodePool pool: 2 in use, 0 planned"

    assert told(world(a_buffer(), most=2))[PROVISIONING][2].startswith(text)


def test_its_numbers_stand_in_the_status() -> None:
    """With the PodTemplate and its generation; of a workload there is none."""
    found = status(world(a_buffer(2)))
    assert (2, "big", 4) == (found.replicas, found.pod_template, found.pod_template_generation)

    buffer, web = of_web()
    found = status(world(buffer, scalables=(web,)))
    assert (2, "", None) == (found.replicas, found.pod_template, found.pod_template_generation)


def test_an_empty_one_is_no_failure() -> None:
    """It is ready, and keeps nothing."""
    found = told(world(a_buffer(0)))

    assert ("False", "BufferEmpty", "Buffer has zero desired replicas") == found[PROVISIONING]
    assert "True" == found[READY][0]


BROKEN = FieldRefusal(Name("spec.containers"), Quoted("a list"), Quoted("nothing"))


@pytest.mark.parametrize(
    ("buffer", "reason", "text"),
    [
        (a_buffer(template="gone"), "PodTemplateNotFound", "there is no PodTemplate team/gone"),
        (a_buffer(template="broken"), "ResolutionFailed", "PodTemplate team/broken: spec.containers"),
        (a_buffer(1, "", scalable=WEB), "ScalableRefNotFound", "there is no Deployment team/web"),
        (a_buffer(1, "", scalable=replace(WEB, kind="Job")), "ResolutionFailed", "pods of Job.apps are not known"),
        (a_buffer(1, "", scalable=replace(WEB, group="")), "ResolutionFailed", "pods of Deployment are not known"),
        (a_buffer(1, ""), "ResolutionFailed", "it names neither a podTemplateRef nor a scalableRef"),
    ],
)
def test_one_that_makes_no_sense_says_so_and_stops_no_other(buffer: CapacityBuffer, reason: str, text: str) -> None:
    """In its conditions, and in the plan."""
    broken = PodTemplate("team", "broken", replace(a_pod("broken", namespace="team"), invalid=BROKEN))
    snapshot = world(buffer, a_buffer(1, name="other"), templates=(BIG, broken))
    found = told(snapshot)
    made = decided(snapshot)

    assert ("False", reason) == found[READY][:2]
    assert found[READY][2].startswith(text)
    assert ("False", "NotReadyForProvisioning", "Buffer is not ReadyForProvisioning") == found[PROVISIONING]
    assert ["capacitybuffer:team.other/0-0"] == [each.pod.pod for each in made.placements]
    assert [Stage.INVALID] == [each.stage for each in made.refusals]


def test_numbers_of_before_stay_where_what_it_names_is_gone() -> None:
    """As Karpenter leaves them."""
    before = BufferStatus(7, "gone", 2, conditions=(Condition(PROVISIONING, FALSE, "BufferEmpty", "", 5),))
    found = status(world(a_buffer(template="gone", status=before)))

    assert (7, "gone", 2) == (found.replicas, found.pod_template, found.pod_template_generation)
    assert 5 == next(each.since_s for each in found.conditions if each.type == PROVISIONING)


def test_of_another_strategy_nothing_is_kept_and_the_plan_says_so() -> None:
    """Nor is it refused: it is another's. One that is being deleted keeps nothing either."""
    others = [a_buffer(name=f"s{i}", strategy="buffer.gke.io/standby-capacity") for i in range(4)]
    snapshot = world(*others, a_buffer(name="going", deleted_s=1.0))
    made = decided(snapshot)

    assert ((), (), ()) == (made.placements, made.launches, made.refusals)
    assert [4] == [len(note.buffers) for note in made.notes]  # type: ignore[attr-defined]


def test_limits_that_are_granted_again_are_said_once() -> None:
    """A buffer that was never limited has no condition of it."""
    limited = BufferStatus(conditions=(Condition(LIMITED, "True", "LimitedByQuotas", "", 5),))

    assert LIMITED not in told(world(a_buffer(1)))
    assert ("False", "WithinQuotas") == told(world(a_buffer(1, status=limited)))[LIMITED][:2]


def test_a_plan_calls_a_buffer_without_its_template_a_buffer() -> None:
    """And no ProvisioningRequest, whose rooms are made in the same way."""
    made = plan(world(a_buffer(template="late"), templates=()), MARKET, Options(with_bound=False))

    assert {"CapacityBuffer team/b: there is no PodTemplate team/late"} == {each.reason for each in made.unplaced}
