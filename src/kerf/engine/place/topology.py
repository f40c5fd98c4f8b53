"""The ledger of a trial: how many pods are where, for every constraint that speaks of other pods.

Nothing is counted until a shape asks. Then the pods of all nodes are put into classes that no selector can tell apart,
once, and each constraint gets a tally, which is kept as pods come and go. So a check costs the terms of the pod, a
placement the tallies that its pod is in.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

from kerf.engine.place.checks import Apart, Check, Even, Sharing, Together, Welcome
from kerf.engine.place.domains import Domains, NodeRule, Site
from kerf.engine.place.kindred import FEW, Kindred
from kerf.engine.place.labelindex import LabelIndex
from kerf.engine.place.podclasses import Labels, PodClasses, Population, Relations, Residents
from kerf.engine.place.reaches import Between, CommonLabels, Likeness, Parting, Reach, hooks_of
from kerf.engine.place.shapes import Shape
from kerf.engine.place.tallies import Aversion, Company, Exceptions, Presence, Reaches, Spread, Tally
from kerf.model.causes import Name, TargetName
from kerf.model.constraints import HOSTNAME
from kerf.model.plan import Misfit
from kerf.model.pods import Pod, PodSpec
from kerf.model.preferences import Wish
from kerf.model.rejections import workload_of
from kerf.model.topology import PodAffinityTerm, TopologySpreadConstraint
from kerf.model.volumes import SharedClaim

MANY = 16
"""Of a class with more terms that keep others off each is counted only once a pod comes that it may mean."""
_T = TypeVar("_T", bound=Tally)
_Counts = dict[int, dict[int, int]]
_Known = dict[tuple[int, int], tuple[int, tuple[Check, ...]]]
"""Pods by number of their class and number of the node."""


class _Part(Enum):
    """What a tally counts of what a constraint means: all; what many mean; what only one of both does."""

    OWN, SHARED, REST = 1, 2, 3


class _Change(NamedTuple):
    """Pods that came to a node (1) or left it (-1); without a pod the node was closed (1) or opened again (-1)."""

    node: int
    pod: Pod | None
    number: int


class _Keepers(NamedTuple):
    """Workloads that keep others off, by identity of the tally and domain; and changes by number of the node."""

    known: dict[tuple[int, str], str]
    changes: dict[int, list[_Change]]


class TopologyLedger:
    """Where pods are, for the checks of shapes.

    `look` gives the nodes with their domains and the pods of each, once a shape asks; nodes go by their numbers there.
    `related` are the specs of all pods there whose place depends on others; `namespaces` the labels of namespaces.
    `wishes` are what pods that wait prefer of others, and may ask for.
    """

    def __init__(
        self,
        look: Callable[[], tuple[Domains, Residents]],
        related: Iterable[PodSpec] = (),
        namespaces: Mapping[str, Labels] | None = None,
        wishes: Iterable[Wish] = (),
    ) -> None:
        specs, wished = tuple(related), tuple(wishes)
        self._look, self._namespaces = look, namespaces or {}
        self._is_averse = any(spec.pod_anti_affinity.required for spec in specs)
        self._log: list[_Change] = []
        self._keepers: _Keepers | None = None
        """What was asked of workloads since the last change; None where nothing was."""
        self._shut: Counter[int] = Counter()
        """Nodes that are closed, kept beside the log: every new tally asks, and most of the log are pods."""
        self._relations = Relations()
        self.version = 0
        """Grows when checks that were made before may lack one."""
        self._common = CommonLabels(lambda: _constraints(specs, wished))
        read = [*(spec.label_keys_read for spec in specs), *(wish.label_keys for wish in wished)]
        self._begin(frozenset[str]().union(*read))

    def _begin(self, keys: frozenset[str]) -> None:
        """With nothing counted yet."""
        self._classes = PodClasses(keys)
        self._base: Population | None = None
        self._delta: _Counts = {}
        self._tallies: list[Tally] = []
        self._meant: list[dict[int, bool]] = []
        """By number of the tally whom its `reaches` mean."""
        self._by_question: dict[object, int] = {}
        self._members: list[tuple[int, ...]] = []
        self._tally_index, self._class_index, self._averse_index = LabelIndex(), LabelIndex(), LabelIndex()
        self._checks: _Known = {}
        self._of_tallies: dict[int, Check] = {}
        """See `_sole`."""
        self._of_base: dict[int, Kindred] = {}
        """Terms that differ in their exceptions alone, by number of the tally that all their pods are in."""
        self._bases: dict[int, int] = {}
        """By number of the tally of such a term that of the tally of all its kind."""
        self._base_index = LabelIndex()
        self._parked: dict[tuple[str, str], tuple[tuple[int, Sequence[PodAffinityTerm]], ...]] = {}
        """Terms of pods that have MANY of them, with the classes of these, by labels of the pods that they mean: they
        are counted once such a pod is to be placed."""
        self._alone: Counter[Hashable] = Counter()
        """How many constraints of pods to be placed have a tally of their own, by that which they would share."""
        self._former: tuple[Mapping[int, int], _Known] | None = None
        """Of a copy the numbers of the tallies that it was made of, by identity, and the checks that hold them."""
        self.version += 1

    @cached_property
    def _seen(self) -> tuple[Domains, Residents]:
        return self._look()

    @property
    def domains(self) -> Domains:
        """The nodes and their domains."""
        return self._seen[0]

    # What shapes ask.

    def checks(self, shape: Shape) -> tuple[Check, ...]:
        """What pods of the shape ask of others; empty where nothing. Remembered until more pods keep others off."""
        spec = shape.spec
        if not spec.is_related and not self._is_averse:
            return ()
        if not spec.label_keys_read <= self._classes.keys:
            # Of a template, say, that no pod was made from yet.
            self._begin(self._classes.keys | spec.label_keys_read)
        self._count()
        # By the pods' own spec: what is treated as required of them keeps no others off.
        number = self._number(shape.pods[0])
        key = number, self._relations.of(spec)
        known = self._checks.get(key)
        if known is None or known[0] != self.version:
            made = self._renewed(key) or tuple(self._made(spec, number))
            known = self._checks[key] = self.version, made
        return known[1]

    def _renewed(self, key: tuple[int, int]) -> tuple[Check, ...]:
        """Checks that were made before this was copied, of its own tallies; none where they have to be made again."""
        numbers, known = self._former or ({}, {})
        version, checks = known.get(key, (-1, ()))
        if version != self.version:
            return ()
        return tuple([self._of_own(each, numbers) for each in checks])

    def _of_own(self, check: Check, numbers: Mapping[int, int]) -> Check:
        """The same check of this ledger's own tallies; `numbers` has by identity those of the check's."""
        number = numbers[id(check.tally)]
        less, more = ([numbers[id(each)] for each in parts] for parts in (check.less, check.more))
        if isinstance(check, Apart | Welcome) and not (less or more):
            return self._sole(number)
        if isinstance(check, Welcome):
            return self._welcome(number, less)
        own = (tuple([self._tallies[each] for each in parts]) for parts in (less, more))
        return replace(check, tally=self._tallies[number], **dict(zip(("less", "more"), own, strict=True)))  # type: ignore[type-var]

    def _sole(self, number: int) -> Check:
        """The check that says no more than its tally, of anti-affinity: one for all shapes that ask it."""
        found = self._of_tallies.get(number)
        if found is None:
            tally = self._tallies[number]
            is_of_others = isinstance(tally, Aversion)
            made = (
                self._welcome(number) if is_of_others else Apart(cast(Presence, tally), cast(Reach, tally.reaches[0]))
            )
            found = self._of_tallies[number] = made
        return found

    def _welcome(self, number: int, less: Iterable[int] = ()) -> Check:
        tallies, kindred = cast(Sequence[Aversion], self._tallies), self._of_base.get(number)
        terms = kindred.tallies if kindred is not None else ()
        return Welcome(tallies[number], self._keeper, tuple([tallies[each] for each in less]), terms=terms)

    def expect(self, pods: Iterable[Pod]) -> None:
        """Know whom such pods would keep off before any is here: checks that are asked for from now on say so."""
        for pod in pods:
            if pod.spec.pod_anti_affinity.required:
                self._is_averse = True
                self._count()
                self._number(pod)

    def likeness(self, shape: Shape) -> tuple[int, int]:
        """Equal for shapes that get the same checks and count alike."""
        self.checks(shape)
        self._count()
        return self._number(shape.pods[0]), id(shape.spec)

    def concerns(self, shape: Shape) -> bool:
        """Whether where the pods may run depends on other pods."""
        return bool(self.checks(shape))

    def counting(self, shape: Shape) -> tuple[Tally, ...]:
        """The tallies that pods of the shape count in, of those that were asked for so far."""
        self._count()
        return tuple(self._tallies[number] for number in self._members[self._number(shape.pods[0])])

    def allows(self, checks: Iterable[Check], node: int) -> bool:
        """Whether all of them let one more pod onto the node. Cost: their number."""
        site = self.domains.sites[node]
        return all(check.allows(node, site) for check in checks)

    def misfit(self, shape: Shape, node: int, target: TargetName) -> Misfit | None:
        """Why the node refuses one more pod of the shape for the sake of others; None where it does not."""
        site = self.domains.sites[node]
        for check in self.checks(shape):
            if not check.allows(node, site):
                cause, shortfall = check.cause(node, site)
                return Misfit(target, check.stage, cause, shortfall=shortfall)
        return None

    # What changes.

    def come(self, node: int, pod: Pod) -> None:
        """The pod is on the node from now on."""
        self._change(_Change(node, pod, 1))

    def leave(self, node: int, pod: Pod) -> None:
        """The pod, which was there, has gone."""
        self._change(_Change(node, pod, -1))

    def close(self, node: int) -> None:
        """The node, whose pods have left, is gone: its domain, if it had it alone, is none any more."""
        self._change(_Change(node, None, 1))

    def reopen(self, node: int) -> None:
        """A node that was closed is there again."""
        self._change(_Change(node, None, -1))

    def mark(self) -> int:
        """A point to return to."""
        return len(self._log)

    def undo_to(self, mark: int) -> None:
        """Take back every change since `mark`, the last one first."""
        self._keepers = None
        while len(self._log) > mark:
            change = self._log.pop()
            if change.pod is None:
                self._shut[change.node] -= change.number
            if self._base is not None:
                self._apply(change, -1)

    def copy(self) -> "TopologyLedger":
        """The same; neither changes with the other. Linear in what was placed and in the domains that have pods."""
        # PodClasses may become more, and what is known of one stays true: both share them, and what was there at first.
        other = object.__new__(TopologyLedger)
        other.__dict__.update(self.__dict__)
        other._log, other._members, other._shut = list(self._log), list(self._members), self._shut.copy()
        other._keepers = None
        other._delta = {number: dict(at) for number, at in self._delta.items()}
        other._tallies, other._by_question = [tally.copy() for tally in self._tallies], dict(self._by_question)
        other._meant = list(self._meant)
        other._tally_index, other._class_index = self._tally_index.copy(), self._class_index.copy()
        other._averse_index = self._averse_index.copy()
        other._parked = dict(self._parked)
        other._of_base = {base: each.copy(other._tallies) for base, each in self._of_base.items()}
        other._bases, other._base_index, other._alone = dict(self._bases), self._base_index.copy(), self._alone.copy()
        # They hold the tallies of this one, and are made of the others' when they are asked for.
        other._former = {id(tally): number for number, tally in enumerate(self._tallies)}, dict(self._checks)
        other._checks, other._of_tallies = {}, {}
        return other

    def extended(self, sites: Sequence[Site], domains: Domains | None = None) -> "TopologyLedger":
        """The same with empty nodes more, whose numbers follow; neither changes with the other.

        `domains` are those of all nodes then, where the caller has them from before.

        Cost: every constraint is counted again when it is asked for again, and nodes are looked at once for each.
        """
        self._count()
        other = self.copy()
        known, held = self._seen
        domains = domains or Domains((*known.sites, *sites), known.lasting)
        other.__dict__["_seen"] = domains, (*held, *(({}, ()) for _ in sites))
        other._tallies, other._meant, other._by_question, other._members = [], [], {}, []
        other._former, other._of_tallies = None, {}
        other._tally_index, other._class_index, other._averse_index = LabelIndex(), LabelIndex(), LabelIndex()
        other._of_base, other._bases, other._base_index, other._alone = {}, {}, LabelIndex(), Counter()
        other._parked = {}
        other._learn_classes()
        return other

    def _change(self, change: _Change) -> None:
        self._keepers = None
        self._log.append(change)
        if change.pod is None:
            self._shut[change.node] += change.number
        elif change.pod.spec.pod_anti_affinity.required:
            self._is_averse = True
        if self._base is not None:
            self._apply(change, 1)

    def _apply(self, change: _Change, sign: int) -> None:
        if change.pod is None:
            for tally in self._tallies:
                _shut(tally, change.node, is_shut=change.number * sign > 0)
            return
        number, pods = self._number(change.pod), change.number * sign
        at = self._delta.setdefault(number, {})
        at[change.node] = at.get(change.node, 0) + pods
        for each in self._members[number]:
            self._tallies[each].add(change.node, pods)

    # How it is counted.

    def _count(self) -> None:
        """Put the pods of all nodes into classes, once. Linear in pods, as far as they have not been asked about."""
        if self._base is not None:
            return
        self._base = Population(self._classes, self._seen[1])
        self._learn_classes()
        for change in self._log:
            self._apply(change, 1)

    def _number(self, pod: Pod) -> int:
        held = self._classes.placed.get(id(pod))
        if held is None:
            held = self._classes.placed[id(pod)] = pod, self._classes.of(pod)
        if held[1] >= len(self._members):
            self._learn_classes()
        return held[1]

    def _learn_classes(self) -> None:
        """Find the tallies of classes that are new."""
        for number in range(len(self._members), len(self._classes.all)):
            like = self._classes.all[number]
            hooks = hooks_of(like, self._namespaces)
            self._class_index.add(number, hooks)
            met = (each for each in self._tally_index.meeting(hooks) if self._is_in(number, each))
            self._members.append(tuple(met))
            if len(like.averse) <= MANY:
                self._learn_aversions(number, like.averse)
            else:
                self._park(number)

    def _learn_aversions(self, number: int, terms: Iterable[PodAffinityTerm]) -> None:
        """Count the pods of a class for whom these of its terms keep off."""
        like = self._classes.all[number]
        aversions = [each for term in terms for each in self._aversion(like, term)]
        self._members[number] += tuple(aversions)
        for each in aversions:
            cast(Aversion, self._tallies[each]).classes.append(number)
            for node, pods in self._where(number):
                self._tallies[each].add(node, pods)

    def _park(self, number: int) -> None:
        """Note the terms of a class that has many by the labels of the pods that they mean."""
        at_once, terms, classes = list[PodAffinityTerm](), self._classes.by_sought(number), self._parked
        for label, held in terms.items():
            if label is None:
                at_once += held
            else:
                classes[label] = (*classes.get(label, ()), (number, held))
        self._learn_aversions(number, at_once)

    def _unpark(self, labels: Iterable[tuple[str, str]]) -> None:
        """Count what was noted under labels of a pod that is to be placed.

        No check that was made before lacks one: pods that were asked about before bear none of the labels, or these
        terms were counted then.
        """
        found: dict[int, dict[PodAffinityTerm, None]] = {}
        for label in labels:
            for number, terms in self._parked.pop(label, ()):
                found.setdefault(number, {}).update(dict.fromkeys(terms))
        version = self.version
        for number in sorted(found):
            self._learn_aversions(number, found[number])
        self.version = version

    def _keeper(self, tally: Aversion, value: str) -> str:
        """The workload, the first by name, of the pods in a domain that the tally counts.

        Found where it is asked: it is that of a pod that is there. Cost: the pods of the nodes that have some
        of them, once between two changes.
        """
        if self._keepers is None:
            self._keepers = _Keepers({}, {})
            for change in self._log:
                self._keepers.changes.setdefault(change.node, []).append(change)
        known, changes = self._keepers
        if (id(tally), value) not in known:
            found: Counter[str] = Counter()
            classes = set(tally.classes)
            nodes = {node for each in classes for node, _ in self._where(each) if tally.values[node] == value}
            for node in sorted(nodes):
                there = [(pod, 1) for pod in self._seen[1][node][1] if not pod.is_ended]
                there += [(each.pod, each.number) for each in changes.get(node, ()) if each.pod is not None]
                for pod, number in there:
                    if self._classes.of(pod) in classes:
                        found["/".join(workload_of(pod))] += number
            known[id(tally), value] = min((name for name, pods in found.items() if pods > 0), default="")
        return known[id(tally), value]

    def _is_in(self, number: int, tally: int) -> bool:
        return self._is_meant(number, tally) and self._tallies[tally].takes(self._classes.all[number])

    def _is_meant(self, number: int, tally: int) -> bool:
        """Whether all `reaches` of the tally mean pods of the class; looked at once, for there are many ledgers."""
        known = self._meant[tally]
        found = known.get(number)
        if found is None:
            like, reaches = self._classes.all[number], self._tallies[tally].reaches
            found = known[number] = all(reach.means(like, self._namespaces) for reach in reaches)
        return found

    def _where(self, number: int) -> Iterable[tuple[int, int]]:
        yield from () if self._base is None else self._base.where(number)
        # What came and was undone leaves none behind, and a domain without pods cannot lose any.
        yield from ((node, pods) for node, pods in self._delta.get(number, {}).items() if pods)

    def _aversion(self, like: Likeness, term: PodAffinityTerm) -> Iterator[int]:
        """The numbers of the tallies of the term: its own, and that of all its kind where others may be of it."""
        reach = Reach.of(term, like.namespace, like.held(), is_of_new=False)
        question = ("aversion", term.key, reach)
        number = self._by_question.get(question)
        if number is None:
            tally = Aversion(term.key, (reach,), self.domains.of(term.key), term=term)
            number = self._add(question, tally)
            parting = reach.parted(self._common)
            if parting.whole != reach:
                base = self._bases[number] = self._whole(term, parting.whole)
                self._of_base[base].add(number, tally, parting.less)
                if parting.more:
                    self._averse_index.add(number, parting.more)
            else:
                self._averse_index.add(number, self._rarest(reach, self._averse_index))
            self.version += 1
        yield number
        if number in self._bases:
            yield self._bases[number]

    def _whole(self, term: PodAffinityTerm, whole: Reach) -> int:
        """The number of the tally of all terms that mean the same pods except for exceptions."""
        question = ("aversions", term.key, whole)
        if question not in self._by_question:
            tally = Aversion(term.key, (whole,), self.domains.of(term.key), term=term)
            number = self._add(question, tally)
            self._of_base[number] = Kindred()
            self._base_index.add(number, self._rarest(whole, self._base_index))
        return self._by_question[question]

    def _rarest(self, reach: Reach | Between, index: LabelIndex) -> tuple[tuple[str, str], ...]:
        """The labels by which the fewest pods, and others that look for pods, are known."""

        def known(hooks: tuple[tuple[str, str], ...]) -> tuple[int, int]:
            return self._class_index.count(hooks) + index.count(hooks), len(hooks)

        return min(reach.hooks, key=known, default=())

    def _add(self, question: object, tally: Tally) -> int:
        number = self._by_question[question] = len(self._tallies)
        self._tallies.append(tally)
        self._meant.append(self._classes.meant(tally.reaches))
        return number

    def _tally(self, question: object, made: _T) -> _T:
        """The tally of a question, counted when it is first asked. Cost then: the classes that it may mean."""
        if question in self._by_question:
            return cast(_T, self._tallies[self._by_question[question]])
        number, hooks = self._add(question, made), self._rarest(made.reaches[0], self._tally_index)
        self._tally_index.add(number, hooks)
        for each in self._class_index.meeting(hooks) if hooks else range(len(self._members)):
            if self._is_in(each, number):
                self._members[each] += (number,)
                for node, pods in self._where(each):
                    made.add(node, pods)
        for node in sorted(node for node, times in self._shut.items() if times > 0):
            made.close(node)
        return made

    def _made(self, spec: PodSpec, of_class: int) -> Iterator[Check]:
        """The checks of pods of the class, in the order of kube-scheduler's filters."""
        like = self._classes.all[of_class]
        labels = like.held()
        for shared in spec.mounts.beside:
            yield self._sharing(shared, like)
        keys = tuple(sorted({constraint.key for constraint in spec.required_spread}))
        wish = spec.wish
        asked = [(constraint, keys) for constraint in spec.required_spread]
        for constraint, rule_keys in (*asked, *((each, (each.key,)) for each in wish.spread)):
            yield self._even(constraint, _rule(constraint, spec, rule_keys), like)
        if spec.pod_affinity.required:
            yield self._together(spec.pod_affinity.required, like)
        for term in wish.near:
            # Each for itself: no pod need meet two preferences.
            yield self._together((term,), like)
        for term in spec.pod_anti_affinity.required:
            yield self._away(term.key, Reach.of(term, like.namespace, labels, is_of_new=True))
        for term in wish.away:
            yield self._away(term.key, Reach.of(term, like.namespace, labels, is_of_new=True))
        yield from self._unwelcoming(of_class, like)

    def _away(self, key: str, reach: Reach) -> Check:
        """The check of an anti-affinity term of the pod's own."""
        reach, values = reach.settled(), self.domains.of(key)
        number, less, more = self._counted(("presence", key), (reach,), lambda each, _: Presence(key, each, values))
        if not (less or more):
            return self._sole(number)
        tallies = cast(Sequence[Presence], self._tallies)
        return Apart(tallies[number], reach, tuple([tallies[n] for n in less]), tuple([tallies[n] for n in more]))

    def _counted(
        self, kind: tuple[Hashable, ...], reaches: tuple[Reach, ...], make: Callable[[Reaches, _Part], Tally]
    ) -> tuple[int, list[int], list[int]]:
        """The numbers of the tallies of what the reaches mean together: their own, or those of a `Check`.

        The first FEW that would share one have one of their own, which costs less to ask.
        """
        if (kind, _Part.OWN, reaches) not in self._by_question:
            partings = [reach.parted(self._common) for reach in reaches]
            whole = tuple([each.whole for each in partings])
            if whole != reaches and self._may_share(kind, partings):
                self._alone[kind, whole] += 1
                if self._alone[kind, whole] > FEW:
                    less, more = (
                        tuple(dict.fromkeys(label for each in partings for label in labels(each)))
                        for labels in (attrgetter("less"), attrgetter("more"))
                    )
                    parts = (Between(whole, reaches, less), Between(reaches, whole, more))
                    rest = [self._asked(kind, _Part.REST, (each,), make) if each.labels else None for each in parts]
                    shared = self._asked(kind, _Part.SHARED, whole, make)
                    numbers = [[] if each is None else [each] for each in rest]
                    return shared, numbers[0], numbers[1]
        return self._asked(kind, _Part.OWN, reaches, make), [], []

    def _may_share(self, kind: tuple[Hashable, ...], partings: Iterable[Parting]) -> bool:
        """Whether those who plan for it follow: company on one node is sought of all that many seek, or fewer."""
        is_on_node = kind[0] == "company" and HOSTNAME in cast(tuple[str, ...], kind[1])
        return not is_on_node or not any(each.more for each in partings)

    def _asked(self, kind: Hashable, part: _Part, reaches: Reaches, make: Callable[[Reaches, _Part], Tally]) -> int:
        question = kind, part, reaches
        if question not in self._by_question:
            self._tally(question, make(reaches, part))
        return self._by_question[question]

    def _unwelcoming(self, of_class: int, like: Likeness) -> Iterator[Check]:
        """The checks of terms of others that mean pods of the class."""
        labels = hooks_of(like, self._namespaces)
        if self._parked:
            self._unpark(labels)
        alone, together = list[int](), list[Check]()
        bases = dict.fromkeys(each for each in self._base_index.meeting(labels) if self._is_meant(of_class, each))
        for base in bases:
            kindred = self._of_base[base]
            passed = {each for each in kindred.leaving_out(labels) if not self._is_meant(of_class, each)}
            if len(kindred.numbers) - len(passed) <= FEW:
                alone += [number for number in kindred.numbers if number not in passed]
            else:
                together.append(self._welcome(base, sorted(passed)) if passed else self._sole(base))
        # Terms that mean more than their kind are found by that, too.
        others = (each for each in self._averse_index.meeting(labels) if self._bases.get(each) not in bases)
        alone += [each for each in others if self._is_meant(of_class, each)]
        yield from map(self._sole, sorted(alone))
        yield from together

    def _even(self, constraint: TopologySpreadConstraint, rule: NodeRule, like: Likeness) -> Even:
        labels, key, domains = like.held(), constraint.key, self.domains
        reach = Reach(constraint.selected(labels), frozenset((like.namespace,)))

        def made(reaches: Reaches, part: _Part) -> Tally:
            if part is _Part.REST:
                return Exceptions(key, reaches, domains.counted(rule, key))
            return Spread(domains, rule, key, cast(Reach, reaches[0]), is_shared=part is _Part.SHARED)

        number, *parts = self._counted(("spread", rule, key), (reach,), made)
        tallies = cast(Sequence[Presence], self._tallies)
        less, more = (tuple([tallies[each] for each in part]) for part in parts)
        own = int(reach.selector.unsatisfied_by(labels) is None)
        return Even(cast(Spread, self._tallies[number]), constraint, own, reach, less, more)

    def _together(self, terms: Sequence[PodAffinityTerm], like: Likeness) -> Together:
        labels, keys = like.held(), tuple(term.key for term in terms)
        reaches = tuple(Reach.of(term, like.namespace, labels, is_of_new=True).settled() for term in terms)
        values = tuple(map(self.domains.of, keys))
        number, *parts = self._counted(("company", keys), reaches, lambda each, _: Company(keys, each, values))
        tallies = cast(Sequence[Company], self._tallies)
        less, more = (tuple([tallies[each] for each in part]) for part in parts)
        is_own = all(reach.means(like, self._namespaces) for reach in reaches)
        return Together(tallies[number], is_own, reaches, less, more)

    def _sharing(self, shared: SharedClaim, like: Likeness) -> Sharing:
        term = shared.pods
        reaches = (Reach.of(term, like.namespace, like.held(), is_of_new=True),)
        company = Company((term.key,), reaches, (self.domains.known(term.key),))
        is_own = reaches[0].means(like, self._namespaces)
        tally = self._tally(("sharing", term.key, reaches), company)
        return Sharing(tally, is_own, reaches, claim=Name(shared.claim))


def _constraints(
    specs: Iterable[PodSpec], wishes: Iterable[Wish]
) -> Iterator[PodAffinityTerm | TopologySpreadConstraint]:
    for spec in specs:
        yield from spec.constraints()
    for wish in wishes:
        yield from wish.constraints()


def _shut(tally: Tally, node: int, *, is_shut: bool) -> None:
    if is_shut:
        tally.close(node)
    else:
        tally.reopen(node)


def _rule(constraint: TopologySpreadConstraint, spec: PodSpec, keys: tuple[str, ...]) -> NodeRule:
    is_choosy = constraint.honors_affinity and any(spec.own_alternatives)
    alternatives = spec.own_alternatives if is_choosy else None
    return NodeRule(keys, alternatives, spec.tolerations if constraint.honors_taints else None)


@dataclass(frozen=True, slots=True)
class Around:
    """A node among all others, for a check of one pod more."""

    ledger: TopologyLedger
    node: int

    def misfit(self, shape: Shape, target: TargetName) -> Misfit | None:
        """Why the node refuses a pod of the shape for the sake of others; None where it does not."""
        return self.ledger.misfit(shape, self.node, target)
