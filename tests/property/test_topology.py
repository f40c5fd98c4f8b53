"""Spread and affinity: the ledger equals a recount, and a trial equals kube-scheduler's rules read plainly."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.kindred import FEW
from kerf.engine.place.shapes import Readings, Shape, group
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements, Taint, Toleration, untolerated
from kerf.model.nodes import Node
from kerf.model.plan import Stage
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_snapshot, an_instance_type
from tests.engine.place.test_topology import node

MARKET = a_market(an_instance_type())
KEYS = (ZONE, HOSTNAME, "rack")
NAMESPACES: Mapping[str, Mapping[str, str]] = {"one": {"team": "blue"}, "two": {}}
Draw = st.DrawFn
Places = list[tuple[Pod, str]]

SELECTORS = st.sampled_from(
    [
        Requirements.of_labels({"app": "a"}),
        Requirements.of_labels({"app": "b"}),
        Requirements([Requirement.of("app", "In", ["a", "b"])]),
        Requirements([Requirement.of("app", "NotIn", ["a"])]),
        Requirements([Requirement.of("tier", "Exists")]),
        Requirements(),
    ]
)


@st.composite
def terms(draw: Draw) -> PodAffinityTerm:
    """A term of affinity or anti-affinity."""
    return PodAffinityTerm(
        draw(st.sampled_from(KEYS)),
        draw(SELECTORS),
        draw(st.sampled_from([(), (), ("one",), ("one", "two")])),
        draw(st.sampled_from([None, None, Requirements(), Requirements.of_labels({"team": "blue"})])),
        draw(st.sampled_from([(), ("tier",)])),
        draw(st.sampled_from([(), (), ("app",)])),
    )


@st.composite
def spreads(draw: Draw) -> TopologySpreadConstraint:
    """A spread constraint."""
    return TopologySpreadConstraint(
        draw(st.sampled_from(KEYS)),
        draw(st.integers(1, 2)),
        draw(SELECTORS),
        draw(st.integers(0, 5)) > 0,
        draw(st.sampled_from([1, 1, 3])),
        draw(st.sampled_from([(), ("tier",)])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def wishes(draw: Draw) -> dict[str, Any]:
    """What the pods of a workload ask."""
    found: dict[str, Any] = {"cpu": "500m", "namespace": draw(st.sampled_from(sorted(NAMESPACES)))}
    labels = {"app": draw(st.sampled_from("abc")), **draw(st.sampled_from([{}, {"tier": "x"}, {"tier": "y"}]))}
    found["labels"] = labels
    found["spread"] = tuple(draw(st.lists(spreads(), max_size=2)))
    found["pod_affinity"] = PodAffinity(tuple(draw(st.lists(terms(), max_size=draw(st.sampled_from([0, 0, 2]))))))
    found["pod_anti_affinity"] = PodAffinity(tuple(draw(st.lists(terms(), max_size=1))))
    found["selector"] = draw(st.sampled_from([{}, {}, {ZONE: "1"}]))
    found["tolerations"] = draw(st.sampled_from([(), (Toleration(operator="Exists"),)]))
    return found


NEGATIVE = st.sampled_from(
    [
        (),
        (Requirement.of("app", "NotIn", ["a"]),),
        (Requirement.of("tier", "DoesNotExist"),),
        (Requirement.of("tier", "NotIn", ["y"]), Requirement.of("app", "Exists")),
        (Requirement.of("app", "In", ["a", "b"]),),
    ]
)


@st.composite
def tenants(draw: Draw) -> ClusterSnapshot:
    """More pods than `kindred.FEW`, running and waiting, of which each means nearly all: they keep off these, or must
    be with one, or are spread with them. Or each means those of a large tenant and its own."""
    nodes = [node(f"n{number}", draw(st.sampled_from(["", "1", "2"]))) for number in range(draw(st.integers(2, 5)))]
    also, pods = draw(NEGATIVE), []
    kind, operator = draw(st.sampled_from(["away", "away", "near", "even"])), draw(st.sampled_from(["NotIn", "In"]))
    keys = draw(st.sampled_from([(HOSTNAME,), (ZONE,), (HOSTNAME, ZONE)]))
    for number in range(2 * FEW):
        asked = draw(wishes())
        own = draw(st.sampled_from([f"t{number}", f"t{number}", "t0", "t1"]))
        named = [own, "t0"] if operator == "In" else [own]
        others = Requirements([Requirement.of("tenant", operator, named), *draw(st.sampled_from([also, also, ()]))])
        spaces = draw(st.sampled_from([None, Requirements(), Requirements()]))
        term = PodAffinityTerm(draw(st.sampled_from(keys)), others, (), spaces)
        more = draw(st.lists(st.sampled_from([term, replace(term, selector=Requirements(also))]), max_size=1))
        asked["spread"], asked["pod_affinity"], asked["pod_anti_affinity"] = (), PodAffinity(), PodAffinity()
        if kind == "even":
            least = draw(st.sampled_from([1, 1, 3]))
            asked["spread"] = (TopologySpreadConstraint(term.key, draw(st.integers(1, 2)), others, min_domains=least),)
        else:
            asked["pod_anti_affinity" if kind == "away" else "pod_affinity"] = PodAffinity((term, *more))
        asked["labels"] = {**asked["labels"], "tenant": draw(st.sampled_from([f"t{number}", "t0", "t1"]))}
        at, ending = draw(st.sampled_from([None, None, *nodes])), draw(st.sampled_from([None, None, None, 1.0]))
        where = {} if at is None else {"node_name": at.name, "phase": RUNNING, "deleted_s": ending}
        pods.append(a_pod(f"p{number}", **asked, **where))
    return a_snapshot(nodes=nodes, pods=[*pods, a_pod("w", **draw(wishes()))], namespaces=NAMESPACES)


@st.composite
def clusters(draw: Draw) -> ClusterSnapshot:
    """Up to eight nodes in zones and racks, some without, and pods of a few workloads on them and waiting."""
    nodes = []
    for number in range(draw(st.integers(1, 8))):
        zone, rack = draw(st.sampled_from(["", "1", "1", "2", "3"])), draw(st.sampled_from(["", "r", "s"]))
        taints = draw(st.sampled_from([(), (), (Taint("dedicated"),)]))
        cordoned = draw(st.integers(0, 6)) == 0
        nodes.append(node(f"n{number}", zone, labels={"rack": rack}, taints=taints, is_unschedulable=cordoned))
    kinds = draw(st.lists(wishes(), min_size=1, max_size=4))
    pods = []
    for number in range(draw(st.integers(0, 10))):
        at, ending = draw(st.sampled_from(nodes)).name, draw(st.sampled_from([None, None, 1.0]))
        phase = draw(st.sampled_from([RUNNING, RUNNING, RUNNING, "Succeeded"]))
        asked = draw(st.sampled_from(kinds))
        pods.append(a_pod(f"r{number}", node_name=at, phase=phase, deleted_s=ending, **asked))
    pods += [a_pod(f"w{number}", **draw(st.sampled_from(kinds))) for number in range(draw(st.integers(1, 8)))]
    return a_snapshot(nodes=nodes, pods=pods, namespaces=NAMESPACES)


# The rules, read plainly: every pod is looked at for every question.


def is_meant(term: PodAffinityTerm, asker: Pod, other: Pod) -> bool:
    """Whether the asker's term means the other pod."""
    names = term.namespaces or (() if term.namespace_selector is not None else (asker.namespace,))
    selected = term.namespace_selector
    in_space = other.namespace in names or (
        selected is not None and selected.unsatisfied_by(NAMESPACES[other.namespace]) is None
    )
    return in_space and is_selected(term, asker, other)


def is_selected(term: PodAffinityTerm | TopologySpreadConstraint, asker: Pod, other: Pod) -> bool:
    """Whether the other pod's labels are those that the term, with the asker's own, asks for."""
    same = all(other.labels.get(key) == asker.labels[key] for key in term.match_label_keys if key in asker.labels)
    unlike = getattr(term, "mismatch_label_keys", ())
    differs = all(other.labels.get(key) != asker.labels[key] for key in unlike if key in asker.labels)
    return same and differs and term.selector.unsatisfied_by(other.labels) is None


def near(term: PodAffinityTerm, at: Node, places: Places, nodes: Mapping[str, Node]) -> Iterator[Pod]:
    """The pods in the node's domain."""
    value = at.labels.get(term.key)
    return (pod for pod, name in places if value is not None and nodes[name].labels.get(term.key) == value)


def has_company(pod: Pod, at: Node, places: Places, nodes: Mapping[str, Node]) -> bool:
    """The pod's affinity."""
    asked = pod.spec.pod_affinity.required
    if not all(term.key in at.labels for term in asked):
        return False

    def satisfies(other: Pod) -> bool:
        return all(is_meant(term, pod, other) for term in asked)

    if all(any(satisfies(other) for other in near(term, at, places, nodes)) for term in asked):
        return True
    # Those in no domain of any term are none that kube-scheduler knows of.
    elsewhere = (other for other, name in places if any(term.key in nodes[name].labels for term in asked))
    return satisfies(pod) and not any(map(satisfies, elsewhere))


def is_apart(pod: Pod, at: Node, places: Places, nodes: Mapping[str, Node]) -> bool:
    """The pod's anti-affinity, and that of the others against it."""
    mine = pod.spec.pod_anti_affinity.required
    if any(is_meant(term, pod, other) for term in mine for other in near(term, at, places, nodes)):
        return False
    return not any(
        is_meant(term, other, pod) and other in list(near(term, at, [(other, name)], nodes))
        for other, name in places
        for term in other.spec.pod_anti_affinity.required
    )


def is_even(pod: Pod, at: Node, places: Places, nodes: Mapping[str, Node]) -> bool:
    """The pod's spread constraints."""
    asked = [constraint for constraint in pod.spec.spread if constraint.is_required]
    for constraint in asked:
        if constraint.key not in at.labels:
            return False
        counting = {
            name: each
            for name, each in nodes.items()
            if all(other.key in each.labels for other in asked)
            and (not constraint.honors_affinity or wants(pod, each))
            and (not constraint.honors_taints or untolerated(each.taints, pod.spec.tolerations) is None)
        }
        counts = Counter({each.labels[constraint.key]: 0 for each in counting.values()})
        for other, name in places:
            if name in counting and other.deleted_s is None and other.namespace == pod.namespace:
                is_empty = not constraint.selector and not own_keys(constraint, pod)
                counts[nodes[name].labels[constraint.key]] += not is_empty and is_selected(constraint, pod, other)
        least = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
        skew = counts[at.labels[constraint.key]] + is_selected(constraint, pod, pod) - least
        if skew > constraint.max_skew:
            return False
    return True


def own_keys(constraint: TopologySpreadConstraint, pod: Pod) -> list[str]:
    """The labels of its own that the pod's constraint asks for."""
    return [key for key in constraint.match_label_keys if key in pod.labels]


def wants(pod: Pod, at: Node) -> bool:
    """The pod's node selector."""
    return pod.spec.node_selector.unsatisfied_by(at.labels) is None


def allowed(pod: Pod, places: Places, nodes: Mapping[str, Node]) -> set[str]:
    """The nodes that no rule of topology closes to the pod."""
    rules = (is_even, has_company, is_apart)
    return {name for name, at in nodes.items() if all(rule(pod, at, places, nodes) for rule in rules)}


def refusing(trial: Trial, shape: Shape) -> set[str]:
    """The nodes of a trial that refuse the shape for the sake of other pods."""
    stages = (Stage.TOPOLOGY, Stage.AFFINITY)
    return {misfit.target.name for misfit in trial.misfits(shape) if misfit.stage in stages}


def open_nodes(trial: Trial, shape: Shape) -> set[str]:
    """The nodes that take the shape."""
    refused = {misfit.target.name for misfit in trial.misfits(shape)}
    return {spot.cluster_node.name for spot in trial.spots} - refused


def reached(trial: Trial, shape: Shape) -> set[str]:
    """The nodes that refuse the shape for nothing else than other pods."""
    return open_nodes(trial, shape) | refusing(trial, shape)


def there(snapshot: ClusterSnapshot) -> Places:
    """The pods on nodes."""
    return [(pod, node.name) for node in snapshot.nodes for pod in node.pods if not pod.is_ended]


@given(clusters() | tenants())
def test_a_node_takes_a_pod_as_the_rules_say(snapshot: ClusterSnapshot) -> None:
    """For every waiting pod and every node, before and after each placement; and each goes to the first node."""
    nodes = {each.name: each.node for each in snapshot.nodes if each.node is not None}
    trial, places = Trial(snapshot, MARKET), there(snapshot)
    for shape in group(snapshot.pending, Readings.of(snapshot)):
        for pod in shape.pods:
            alone = Shape((pod,))
            rules = allowed(pod, places, nodes)
            assert reached(trial, alone) & rules == open_nodes(trial, alone)
            found, _ = trial.place(alone)
            chosen = [placement.node for placement in found.values()]
            assert sorted(open_before(rules, trial, alone, chosen))[:1] == chosen
            places += [(pod, name) for name in chosen]


def open_before(rules: set[str], trial: Trial, shape: Shape, chosen: Iterable[str]) -> set[str]:
    """The nodes that the shape could go to before it went to the one chosen."""
    bare = {misfit.target.name for misfit in trial.misfits(shape) if misfit.stage.rank < Stage.TOPOLOGY.rank}
    return (rules & {spot.cluster_node.name for spot in trial.spots}) - (bare - set(chosen))


@given(clusters())
def test_many_pods_go_where_they_would_go_one_by_one(snapshot: ClusterSnapshot) -> None:
    """Cells that wait, and open again, change no placement."""
    together, singly = Trial(snapshot, MARKET), Trial(snapshot, MARKET)
    for shape in group(snapshot.pending, Readings.of(snapshot)):
        expected = {}
        for pod in shape.pods:
            found, _ = singly.place(Shape((pod,)))
            if not found:
                break
            expected.update(found)
        assert expected == together.place(shape)[0]


@given(clusters() | tenants(), st.lists(st.sampled_from(["place", "undo", "mark", "remove", "copy"]), max_size=12))
def test_the_ledger_equals_a_recount(snapshot: ClusterSnapshot, steps: list[str]) -> None:
    """After any placements, removals and returns a ledger that counts anew says the same."""
    trial, marks, waiting = Trial(snapshot, MARKET), [0], list(group(snapshot.pending, Readings.of(snapshot)))
    shapes = tuple(waiting)
    # A node goes before anything is placed: whoever was placed on it would have to be placed anew.
    is_bare = True
    for number, step in enumerate(steps):
        if step == "place":
            trial.place(shapes[number % len(shapes)])
        elif step == "mark":
            marks.append(trial.mark())
        elif step == "undo":
            mark = marks.pop() if len(marks) > 1 else 0
            trial.undo_to(mark)
        elif step == "remove" and is_bare and not trial.mark():
            trial.remove(snapshot.nodes[number % len(snapshot.nodes)])
        elif step == "copy":
            trial.misfits(shapes[0])
            is_bare = is_bare and not trial.mark()
            marks, trial = [0], trial.copy()
        assert [trial.misfits(each) for each in shapes] == [recounted(trial).misfits(each) for each in shapes]


def recounted(trial: Trial) -> Trial:
    """The same trial with a ledger that has counted nothing yet."""
    other = trial.copy()
    other.ledger._begin(other.ledger._classes.keys)
    return other
