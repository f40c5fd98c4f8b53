"""The forms of a spec: which preferences are required of a node, and in which order they are dropped."""

from dataclasses import replace

from kerf.engine.place.preferences import Forms, in_order
from kerf.model.constraints import HOSTNAME, PREFER_NO_SCHEDULE, ZONE, Requirements, Taint, Toleration
from kerf.model.pods import PodSpec
from kerf.model.preferences import PrefersAway, PrefersEven, PrefersNear, PrefersNode, PrefersUntainted
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint

WEB = Requirements.of_labels({"app": "web"})
IN_A, IN_B = (Requirements.of_labels({ZONE: zone}) for zone in "ab")
BY_ZONE, BY_NODE = PodAffinityTerm(ZONE, WEB), PodAffinityTerm(HOSTNAME, WEB)
BARE = PodSpec(())
SLOW = Taint("slow", effect=PREFER_NO_SCHEDULE)


def even(key: str, *, is_required: bool = False) -> TopologySpreadConstraint:
    """A spread of web pods."""
    return TopologySpreadConstraint(key, 1, WEB, is_required)


def test_preferences_are_dropped_in_karpenters_order() -> None:
    """Pod affinity, pod anti-affinity, node affinity, spread, taints; of each the heaviest first."""
    spec = replace(
        BARE,
        preferred=((1, IN_A), (9, IN_B)),
        pod_affinity=PodAffinity(preferred=((1, BY_ZONE), (2, BY_NODE))),
        pod_anti_affinity=PodAffinity(preferred=((5, BY_NODE),)),
        spread=(even(ZONE),),
    )

    assert (
        PrefersNear(2, BY_NODE),
        PrefersNear(1, BY_ZONE),
        PrefersAway(5, BY_NODE),
        PrefersNode(9, IN_B),
        PrefersNode(1, IN_A),
        PrefersEven(even(ZONE)),
        PrefersUntainted(),
    ) == in_order(spec, is_avoiding=True)


def test_equal_weights_keep_their_order() -> None:
    """The first of them is dropped first."""
    spec = replace(BARE, preferred=((5, IN_A), (5, IN_B)))

    assert (PrefersNode(5, IN_A), PrefersNode(5, IN_B)) == in_order(spec)


def test_the_last_constraint_takes_the_place_of_one_that_is_dropped() -> None:
    """Karpenter removes a ScheduleAnyway constraint by moving the last one there; what is required stays."""
    first, required, second, third = even("a"), even("b", is_required=True), even("c"), even("d")

    found = in_order(replace(BARE, spread=(first, required, second, third)))

    assert (PrefersEven(first), PrefersEven(third), PrefersEven(second)) == found


def test_of_node_affinity_one_term_counts_at_a_time() -> None:
    """The heaviest, then the next: two that contradict each other can both be tried."""
    heavy, light, own = Forms().of(spec := replace(BARE, preferred=((1, IN_A), (9, IN_B))))

    assert [IN_B, IN_A] == [heavy.spec.wish.labels, light.spec.wish.labels]
    assert own.spec is spec
    assert (PrefersNode(9, IN_B), PrefersNode(1, IN_A)) == own.dropped


def test_taints_count_where_a_pod_does_not_tolerate_them() -> None:
    """PreferNoSchedule of a node there is or of a pool; what keeps pods off anyway is no preference."""
    tolerant = replace(BARE, tolerations=(Toleration("slow", "Exists"),))

    assert [2, 1] == [len(Forms([SLOW]).of(spec)) for spec in (BARE, tolerant)]
    assert 1 == len(Forms([Taint("gpu")]).of(BARE))
    assert Forms([SLOW]).of(BARE)[0].spec.wish.avoids_taints


def test_ignored_preferences_leave_the_spec_as_it_is() -> None:
    """One form, the pods' own."""
    spec = replace(BARE, preferred=((1, IN_A),))

    (only,) = Forms([SLOW], are_ignored=True).of(spec)

    assert only.spec is spec
    assert () == only.dropped


def test_a_spec_of_very_many_preferences_has_few_forms() -> None:
    """Those that would be dropped first never count, so a tenant's list costs no plan."""
    spec = replace(BARE, preferred=tuple((n, IN_A) for n in range(1, 1000)))

    forms = Forms().of(spec)

    assert 33 == len(forms)
    assert 999 == len(forms[-1].dropped)
    assert PrefersNode(32, IN_A) == forms[1].dropped[-1]
