"""Spread, affinity and anti-affinity on nodes that are there, as kube-scheduler 1.36 judges them."""

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from kerf.engine.place.shapes import Readings, Shape, group
from kerf.engine.place.tallies import Reach
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME, NEVER, NODE_NAME, ZONE, Requirement, Requirements, Taint
from kerf.model.plan import Stage
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.model.volumes import Mounts
from kerf.testing.builders import a_market, a_node, a_pod, a_snapshot, an_instance_type

WEB = Requirements.of_labels({"app": "web"})
MARKET = a_market(an_instance_type())


def node(name: str, zone: str = "", **given: Any) -> Any:
    """A node of a zone, or of none."""
    made = a_node(name, labels={HOSTNAME: name, ZONE: zone, **given.pop("labels", {})}, **given)
    return replace(made, labels={key: value for key, value in made.labels.items() if value})


def web(name: str, at: str = "", **given: Any) -> Pod:
    """A pod with the label app=web, waiting or on a node."""
    fields = {"labels": {"app": "web"}, "cpu": "100m", "node_name": at, "phase": RUNNING if at else "Pending"}
    return a_pod(name, **{**fields, **given})


def spread(key: str = ZONE, max_skew: int = 1, **given: Any) -> dict[str, Any]:
    """A spec's spread of web pods."""
    return {"spread": (TopologySpreadConstraint(key, max_skew, given.pop("selector", WEB), **given),)}


def near(key: str = ZONE, selector: Requirements = WEB, **given: Any) -> dict[str, Any]:
    """A spec's affinity to web pods."""
    return {"pod_affinity": PodAffinity((PodAffinityTerm(key, selector, **given),))}


def away(key: str = HOSTNAME, selector: Requirements = WEB, **given: Any) -> dict[str, Any]:
    """A spec's anti-affinity to web pods."""
    return {"pod_anti_affinity": PodAffinity((PodAffinityTerm(key, selector, **given),))}


def seen(nodes: list[Any], pods: list[Pod], **given: Any) -> ClusterSnapshot:
    """A snapshot of nodes and pods."""
    return a_snapshot(nodes=nodes, pods=pods, **given)


def open_to(pod: Pod, nodes: list[Any], pods: list[Pod] | None = None, **given: Any) -> str:
    """The names of the nodes that take the pod, together."""
    snapshot = seen(nodes, [pod, *(pods or [])], **given)
    trial = Trial(snapshot, MARKET)
    refused = {str(misfit.target.name) for misfit in trial.misfits(Shape((pod,)))}
    return "".join(spot.cluster_node.name for spot in trial.spots if spot.cluster_node.name not in refused)


def placed(nodes: list[Any], pods: list[Pod], **given: Any) -> dict[str, str]:
    """Where waiting pods of one shape go, by name."""
    snapshot = seen(nodes, pods, **given)
    trial, found = Trial(snapshot, MARKET), dict[str, str]()
    for shape in group(snapshot.pending, Readings.of(snapshot)):
        places, _ = trial.place(shape)
        found |= {key.removeprefix("default/"): place.node for key, place in places.items()}
    return found


AB = [node("a", "1"), node("b", "2")]


def test_pods_of_one_class_with_several_specs_all_count() -> None:
    """Two that keep databases off and ask for other amounts: three beside none are too many for a skew of 2."""
    averse = [
        web(name, "a", cpu=cpu, **away(selector=Requirements.of_labels({"app": "db"})))
        for name, cpu in (("x", "100m"), ("y", "200m"))
    ]
    assert "b" == open_to(web("p", **spread(max_skew=2)), AB, averse)


def test_a_domain_takes_no_more_than_the_skew_allows() -> None:
    """One web pod in zone 1 and none in zone 2: the next must go to 2."""
    assert "b" == open_to(web("p", **spread()), AB, [web("x", "a")])


def test_a_node_without_the_key_takes_none() -> None:
    """And its pods count nowhere."""
    assert "ab" == open_to(web("p", **spread()), [*AB, node("c")], [web("x", "c")])


def test_nodes_lack_any_key_of_several_constraints() -> None:
    """A node that lacks one of the keys counts for none of the constraints."""
    asked: dict[str, Any] = {"spread": (*spread()["spread"], *spread("rack")["spread"])}
    nodes = [node("a", "1", labels={"rack": "r"}), node("b", "2")]

    assert "a" == open_to(web("p", **asked), nodes)


def test_a_pod_that_does_not_count_itself_may_come_to_the_fullest_within_the_skew() -> None:
    """Self-match is what makes one more."""
    assert "ab" == open_to(a_pod("p", cpu="100m", **spread()), AB, [web("x", "a")])


def test_ending_pods_do_not_count_for_spread() -> None:
    """As countPodsMatchSelector has it."""
    assert "ab" == open_to(web("p", **spread()), AB, [web("x", "a", deleted_s=1.0)])


def test_ending_pods_count_for_affinity_and_against() -> None:
    """They are on the node until they have gone."""
    ending = [web("x", "a", deleted_s=1.0)]

    assert ("a", "b") == (open_to(a_pod("p", **near()), AB, ending), open_to(a_pod("p", **away()), AB, ending))


def test_pods_that_have_ended_count_nowhere() -> None:
    """A finished Job's pod holds nobody off."""
    assert "ab" == open_to(web("p", **away()), AB, [web("x", "a", phase="Succeeded")])


def test_too_few_domains_make_the_fewest_zero() -> None:
    """minDomains 3 of two zones that have one pod each: none may have two."""
    both = [web("x", "a"), web("y", "b")]

    assert "ab" == open_to(web("p", **spread()), AB, both)
    assert "" == open_to(web("p", **spread(min_domains=3)), AB, both)


@pytest.mark.parametrize("honored, expected", [(True, "a"), (False, "")])
def test_zones_that_the_pod_may_not_go_to_count_unless_ignored(honored: bool, expected: str) -> None:
    """nodeAffinityPolicy: with Honor, zone 2 is no domain of a pod for zone 1."""
    pod = web("p", selector={ZONE: "1"}, **spread(honors_affinity=honored))

    assert expected == open_to(pod, AB, [web("x", "a")])


def test_zones_that_its_volumes_may_not_go_to_count() -> None:
    """nodeAffinityPolicy reads the pod's own affinity; of its volumes podtopologyspread knows nothing."""
    pod = web("p", mounts=Mounts((Requirements.of_labels({ZONE: "1"}),)), **spread())

    assert "" == open_to(pod, AB, [web("x", "a")])


@pytest.mark.parametrize("honored, expected", [(True, "a"), (False, "")])
def test_tainted_nodes_count_unless_taints_are_honored(honored: bool, expected: str) -> None:
    """nodeTaintsPolicy: by default a zone of which all nodes are tainted has the fewest pods."""
    nodes = [AB[0], node("b", "2", taints=(Taint("dedicated"),))]

    assert expected == open_to(web("p", **spread(honors_taints=honored)), nodes, [web("x", "a")])


def test_nodes_that_take_no_pods_count_with_theirs() -> None:
    """A cordoned node's zone is a domain still."""
    nodes = [AB[0], node("b", "2", is_unschedulable=True)]

    assert "" == open_to(web("p", **spread()), nodes, [web("x", "a")])


def test_match_label_keys_narrow_the_selector_to_the_pods_own_value() -> None:
    """Pods of the last revision do not count."""
    old = web("x", "a", labels={"app": "web", "hash": "old"})
    pod = web("p", labels={"app": "web", "hash": "new"}, **spread(match_label_keys=("hash",)))

    assert "ab" == open_to(pod, AB, [old])


def test_match_label_keys_read_labels_of_pods_as_they_are_spelt() -> None:
    """An old name of a label of nodes is a label of its own on a pod."""
    labels = {"app": "web", "beta.kubernetes.io/arch": "amd64"}
    pod = web("p", labels=labels, **away(match_label_keys=("beta.kubernetes.io/arch",)))

    assert open_to(pod, [node("a"), node("b")], [web("r", "a", labels=labels)]) == "b"


def test_mismatch_label_keys_mean_others_only() -> None:
    """Away from the pods of other tenants."""
    term = away(mismatch_label_keys=("tenant",))
    mine, other = (web(name, at, labels={"app": "web", "tenant": name}) for name, at in (("t", "a"), ("u", "b")))

    assert "a" == open_to(web("p", labels={"tenant": "t"}, **term), AB, [mine, other])


def test_mismatch_label_keys_may_be_in_the_selector_too() -> None:
    """Away from the pods of other tenants, and not from pods of none: the example of Kubernetes' own pages."""
    tenants = Requirements([Requirement.of("tenant", "Exists")])
    term: dict[str, Any] = {
        "pod_anti_affinity": PodAffinity((PodAffinityTerm(HOSTNAME, tenants, mismatch_label_keys=("tenant",)),))
    }
    running = [web("mine", "a", labels={"tenant": "t"}), web("other", "b", labels={"tenant": "u"}), web("none", "c")]

    assert "ac" == open_to(a_pod("p", labels={"tenant": "t"}, **term), [*AB, node("c", "1")], running)


def test_wishes_refuse_nothing() -> None:
    """ScheduleAnyway and preferred terms."""
    wish = PodAffinity(preferred=((100, PodAffinityTerm(HOSTNAME, WEB)),))
    pod = web("p", pod_anti_affinity=wish, **spread(is_required=False))

    assert "ab" == open_to(pod, AB, [web("x", "a")])


def test_affinity_needs_company_in_the_domain() -> None:
    """Any node of the zone will do."""
    assert "ac" == open_to(a_pod("p", **near()), [*AB, node("c", "1")], [web("x", "a")])


def test_all_terms_must_be_satisfied_by_the_same_pod() -> None:
    """A pod that satisfies one of two terms is no company."""
    terms = (PodAffinityTerm(ZONE, WEB), PodAffinityTerm(ZONE, Requirements.of_labels({"tier": "x"})))
    pods = [web("x", "a"), a_pod("y", node_name="a", phase=RUNNING, labels={"tier": "x"})]

    assert "" == open_to(a_pod("p", pod_affinity=PodAffinity(terms)), AB, pods)


def test_the_first_of_its_own_kind_needs_no_company() -> None:
    """It satisfies its own terms, and no pod anywhere does; a node without the key takes it not even so."""
    assert "ab" == open_to(web("p", **near()), [*AB, node("c")])
    assert "a" == open_to(web("p", **near()), AB, [web("x", "a")])


def test_pods_of_other_namespaces_are_no_company_unless_named() -> None:
    """By default the pod's own namespace; else the named ones alone."""
    other = [web("x", "a", namespace="other")]

    assert "" == open_to(a_pod("p", **near()), AB, other)
    assert "a" == open_to(a_pod("p", **near(namespaces=("other",))), AB, other)


def test_a_namespace_selector_goes_by_labels_of_namespaces() -> None:
    """An empty one means every namespace; a name is a label of each."""
    other, team = [web("x", "a", namespace="other")], Requirements.of_labels({"team": "blue"})
    by_name = Requirements.of_labels({"kubernetes.io/metadata.name": "other"})

    for selector, labels, expected in (
        (Requirements(), {}, "a"),
        (by_name, {}, "a"),
        (team, {}, ""),
        (team, {"other": {"team": "blue"}}, "a"),
    ):
        pod = a_pod("p", **near(namespace_selector=selector))
        assert expected == open_to(pod, AB, other, namespaces=labels)


def test_anti_affinity_keeps_off_and_is_kept_off() -> None:
    """Of the new pod against running ones, and of running ones against it."""
    assert "b" == open_to(a_pod("p", **away()), AB, [web("x", "a")])
    assert "b" == open_to(web("p"), AB, [a_pod("x", node_name="a", phase=RUNNING, **away())])


def test_a_node_without_the_key_has_no_neighbours() -> None:
    """Anti-affinity by zone lets a pod onto a node without zone, even beside such a pod."""
    assert "c" == open_to(a_pod("p", **away(ZONE)), [AB[0], node("c")], [web("x", "a"), web("y", "c")])


def test_pods_that_are_placed_count_for_those_after_them() -> None:
    """Four replicas apart on three nodes: the fourth waits."""
    nodes = [node(name, "1") for name in "abc"]

    assert {"p0": "a", "p1": "b", "p2": "c"} == placed(nodes, [web(f"p{n}", **away()) for n in range(4)])


def test_a_spread_opens_a_domain_again() -> None:
    """A zone that refused takes one more once the other has caught up; within a zone the first node with room."""
    expected = {f"p{number}": name for number, name in enumerate("ababab")}

    assert expected == placed(AB, [web(f"p{number}", **spread()) for number in range(6)])


def test_affinity_opens_nodes_for_the_shapes_after() -> None:
    """The database comes first, by priority; its client follows it into its zone."""
    database = web("d", priority=5, selector={ZONE: "2"})

    assert {"d": "b", "p": "b"} == placed(AB, [a_pod("p", cpu=1, **near()), database])


def test_chains_hold() -> None:
    """c follows b, which follows a."""
    first = a_pod("x", labels={"app": "a"}, priority=9, selector={ZONE: "2"})
    second = a_pod("y", labels={"app": "b"}, priority=8, **near(ZONE, Requirements.of_labels({"app": "a"})))
    third = a_pod("z", **near(ZONE, Requirements.of_labels({"app": "b"})))

    assert {"x": "b", "y": "b", "z": "b"} == placed(AB, [third, second, first])


def test_what_is_undone_counts_no_more() -> None:
    """Trials go back for free."""
    pod = web("p", **away(ZONE))
    trial = Trial(seen(AB, [pod]), MARKET)
    mark = trial.mark()
    trial.place(Shape((pod,)))
    before = trial.misfits(Shape((pod,)))
    trial.undo_to(mark)

    assert (1, 0) == (len(before), len(trial.misfits(Shape((pod,)))))


def test_what_is_undone_is_not_counted_when_all_is_counted_again() -> None:
    """A ledger with more nodes begins its counts anew; a pod that was tried and taken back has left none behind."""
    pod = web("p", **away(ZONE))
    trial = Trial(seen(AB, [pod]), MARKET)
    mark = trial.mark()
    trial.place(Shape((pod,)))
    trial.undo_to(mark)

    again = trial.ledger.extended(())

    assert again.allows(again.checks(Shape((pod,))), 0)


def test_a_copy_is_a_trial_of_its_own() -> None:
    """What is placed there is not placed here."""
    pod = web("p", **away(ZONE))
    trial = Trial(seen(AB, [pod]), MARKET)
    trial.misfits(Shape((pod,)))
    trial.copy().place(Shape((pod,)))

    assert () == trial.misfits(Shape((pod,)))


def test_whom_terms_mean_is_looked_at_once_for_all_ledgers() -> None:
    """A namespace may have a thousand pods that keep all others off, and cells are given to them many times over."""

    def other(number: int) -> Pod:
        selector = Requirements([Requirement.of("app", "NotIn", (f"v-{number}",))])
        return web(f"p-{number}", labels={"app": f"v-{number}"}, **away(ZONE, selector))

    def looks() -> int:
        before, count = sys.getprofile(), 0

        def counted(frame: FrameType, event: str, _arg: object) -> None:
            nonlocal count
            count += event == "call" and frame.f_code is Reach.means.__code__

        sys.setprofile(counted)
        try:
            again = ledger.extended(())
            assert [4, 4, 4, 4] == [len(again.checks(Shape((pod,)))) for pod in pods]
        finally:
            sys.setprofile(before)
        return count

    pods = [other(number) for number in range(4)]
    ledger = Trial(seen([node("a", "za")], pods), MARKET).ledger
    ledger.expect(pods)
    for pod in pods:
        ledger.checks(Shape((pod,)))

    assert 0 == looks()


def test_refusals_name_stage_and_figures() -> None:
    """Spread is a matter of topology, with its counts; company one of affinity."""
    pod = web("p", **spread(), **away())
    trial = Trial(seen(AB, [pod, web("x", "a"), web("y", "b")]), MARKET)
    alone = Trial(seen([AB[0]], [pod, web("x", "a")]), MARKET)

    assert {Stage.AFFINITY} == {misfit.stage for misfit in trial.misfits(Shape((pod,)))}
    assert {Stage.AFFINITY} == {misfit.stage for misfit in alone.misfits(Shape((pod,)))}


def test_a_node_is_matched_by_its_name() -> None:
    """matchFields of metadata.name, as a requirement of a key that no label has."""
    named = Requirements([Requirement.of(NODE_NAME, "In", ["b"])])
    others = Requirements([Requirement.of(NODE_NAME, "NotIn", ["b"])])

    assert ("b", "a") == tuple(open_to(a_pod("p", affinity=(each,)), AB) for each in (named, others))


def test_a_selector_that_selects_nothing_counts_nothing() -> None:
    """And one that selects everything counts none for spread, as kube-scheduler does."""
    for selector in (NEVER, Requirements()):
        assert "ab" == open_to(web("p", **spread(selector=selector)), AB, [web("x", "a"), web("y", "a")])


def test_a_template_may_read_labels_that_no_pod_did() -> None:
    """The pods there are looked at again."""
    trial = Trial(seen(AB, [web("x", "a")]), MARKET)

    assert 1 == len(trial.misfits(Shape((a_pod("p", **away()),))))


def test_shapes_differ_in_labels_that_are_read() -> None:
    """A StatefulSet stays one shape, whatever its pods' own labels; two apps are two where a selector tells them."""
    pods = [web(f"p{n}", labels={"app": "web", "ordinal": str(n)}) for n in range(3)]
    reader = web("r", cpu=2, **away())
    read = Readings.of(seen(AB, [*pods, reader]))

    assert 1 == len(group(pods, read))
    assert 2 == len(group([*pods, web("q", labels={"app": "other"})], read))
    assert 1 == len(group([*pods, web("q", labels={"app": "other"})], Readings.of(seen(AB, pods))))


@pytest.mark.parametrize("operator, means_all", [("NotIn", True), ("DoesNotExist", True), ("In", False)])
def test_a_new_pod_means_every_namespace_by_a_selector_that_matches_no_labels(operator: str, means_all: bool) -> None:
    """mergeAffinityTermNamespacesIfNotEmpty changes a copy, so kube-scheduler 1.36 asks about no labels too."""
    teams = Requirements([Requirement.of("team", operator, ("a",) if operator != "DoesNotExist" else ())])
    new = a_pod("p", cpu="100m", **away(namespace_selector=teams, key=ZONE))
    there = [web("x", "a", namespace="team-b"), web("y", "b", namespace="team-a")]
    labels = {"team-a": {"team": "a"}, "team-b": {"team": "a"}} if means_all else {"team-b": {"team": "a"}}

    assert ("" if means_all else "b") == open_to(new, AB, there, namespaces=labels)


def test_a_running_pod_means_the_namespaces_that_its_selector_takes() -> None:
    """Its terms are read with the labels of the new pod's namespace."""
    teams = Requirements([Requirement.of("team", "NotIn", ("a",))])
    there = [a_pod("x", cpu="100m", node_name="a", phase=RUNNING, **away(namespace_selector=teams))]
    labels = {"team-a": {"team": "a"}, "team-b": {"team": "b"}}

    assert ("ab", "b") == (
        open_to(web("p", namespace="team-a"), AB, there, namespaces=labels),
        open_to(web("p", namespace="team-b"), AB, there, namespaces=labels),
    )
