"""Pods that a pod must be with, or away from: which they are, and a selector that differs from theirs by typing."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kerf.engine.explain.hints.again import Question
from kerf.engine.explain.hints.situation import Advice, expressions_of, pod_patch
from kerf.engine.explain.hints.widening import Idea
from kerf.engine.place.reaches import Likeness, Reach
from kerf.engine.place.tallies import averse_terms
from kerf.model.constraints import HOSTNAME, Requirement, Requirements
from kerf.model.owners import HASH_LABEL
from kerf.model.pods import Pod, PodSpec
from kerf.model.topology import AFFINITY, PodAffinityTerm, TooNear, Unwelcome, reads_labels

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CLOSE = 0.6
_MOST_TRIED, _MOST_NAMED = 4, 3


def corrected_selectors(question: Question) -> Iterator[Idea]:
    """Affinity terms that no pod meets, with the label or the namespace that some pod has instead, each tried."""
    pods = everyone(question)
    first = question.pods[0]
    for number, term in enumerate(question.spec.pod_affinity.required):
        if term.selector.is_never or _is_met(term, first, pods, question):
            continue
        for hint, written in list(_near_misses(term, first, pods, question))[:_MOST_TRIED]:
            found = question.with_spec(lambda spec, at=number, to=written: _with_term(spec, at, to))  # type: ignore[misc]
            if found is not None and found.served:
                spec = _with_term(question.spec, number, written)
                yield _unread(term, written, question) or _advice(hint, spec, question), found


def unmet_terms(question: Question) -> list[PodAffinityTerm]:
    """The affinity terms that no pod meets: neither one that runs nor one that waits, the pod itself included."""
    pods, first = everyone(question), question.pods[0]
    terms = question.spec.pod_affinity.required
    return [term for term in terms if not _is_met(term, first, pods, question)]


def is_meant_by_all(question: Question) -> bool:
    """Whether some pod, one that runs or one that waits, is what all of its affinity terms mean."""
    first, terms = question.pods[0], question.spec.pod_affinity.required
    return any(all(_means(term, first, pod, question) for term in terms) for pod in everyone(question))


def everyone(question: Question) -> list[Pod]:
    """Pods that run or wait, in the order of nodes; none that has ended."""
    running = (pod for node in question.snapshot.nodes for pod in node.pods)
    return [pod for pod in (*running, *question.snapshot.pending) if not pod.is_ended]


def _is_met(term: PodAffinityTerm, owner: Pod, pods: Iterable[Pod], question: Question) -> bool:
    """Whether some pod is what the term means. Linear in pods."""
    reach, namespaces = Reach.of(term, owner.namespace, owner.labels, is_of_new=True), question.snapshot.namespaces
    return any(reach.means(_likeness(pod), namespaces) for pod in pods)


def _means(term: PodAffinityTerm, owner: Pod, pod: Pod, question: Question) -> bool:
    reach = Reach.of(term, owner.namespace, owner.labels, is_of_new=True)
    return reach.means(_likeness(pod), question.snapshot.namespaces)


def _likeness(pod: Pod) -> Likeness:
    return Likeness(pod.namespace, tuple(sorted(pod.labels.items())), (), is_ending=False)


def _near_misses(
    term: PodAffinityTerm, owner: Pod, pods: Iterable[Pod], question: Question
) -> Iterator[tuple[str, PodAffinityTerm]]:
    """What to write instead, the likeliest first."""
    known = list(pods)
    for key, asked in sorted(term.selector.items()):
        if asked.complement or not asked.values:
            continue
        for value in sorted(asked.values):
            there = sorted({pod.labels[key] for pod in known if key in pod.labels})
            for close in difflib.get_close_matches(value, there, 1, _CLOSE):
                values = (asked.values - {value}) | {close}
                yield f'write {key}: "{close}" instead of "{value}"', _with_label(term, key, key, values)
        keys = sorted({label for pod in known for label, value in pod.labels.items() if value in asked.values})
        for close in difflib.get_close_matches(key, keys, 1, _CLOSE):
            yield f'write the label {close} instead of "{key}"', _with_label(term, key, close, asked.values)
    reach = Reach.of(term, owner.namespace, owner.labels, is_of_new=True)
    others = {pod.namespace for pod in known if reach.selector.unsatisfied_by(pod.labels) is None}
    for namespace in sorted(others - reach.namespaces):
        names = tuple(sorted((*reach.namespaces, namespace)))
        yield f"name namespace {namespace}, where such pods are,", replace(term, namespaces=names)


def _unread(term: PodAffinityTerm, written: PodAffinityTerm, question: Question) -> Advice | None:
    """What to add to an input without the labels of the namespace that a term could name: it may mean that already."""
    snapshot = question.snapshot
    added = [each for each in written.namespaces if each not in term.namespaces and each not in snapshot.namespaces]
    if not added or not snapshot.may_lack_kinds or not reads_labels(term):
        return None
    takes = f"whether the namespaceSelector of the pod affinity takes namespace {added[0]}, where such pods are,"
    return Advice(f"add Namespace {added[0]} to the input: {takes} is not known without its labels")


def _with_label(term: PodAffinityTerm, key: str, to: str, values: frozenset[str]) -> PodAffinityTerm:
    others = term.selector.without((key,))
    stated = Requirements([Requirement.spelt(to, "In", tuple(sorted(values)))])
    return replace(term, selector=others.intersect(stated))


def _with_term(spec: PodSpec, number: int, term: PodAffinityTerm) -> PodSpec:
    terms = list(spec.pod_affinity.required)
    terms[number] = term
    return replace(spec, pod_affinity=replace(spec.pod_affinity, required=tuple(terms)))


def _advice(hint: str, spec: PodSpec, question: Question) -> Advice:
    change = {"spec": {"affinity": {AFFINITY: {_REQUIRED: list(map(_term_entry, spec.pod_affinity.required))}}}}
    is_written_by_server = any(HASH_LABEL in term.selector for term in spec.pod_affinity.required)
    text = f"{hint} in the pod affinity of the pod"
    if is_written_by_server:
        # The selector of a live pod has the hash of its template, which a patch of the template would fix for ever.
        return Advice(text)
    return Advice(text, pod_patch(question.pods[0], change, question.snapshot.cron_job_keys), change, spec=spec)


def _term_entry(term: PodAffinityTerm) -> dict[str, object]:
    """As a manifest has it: the list is replaced as a whole."""
    entry: dict[str, object] = {"topologyKey": term.key, "labelSelector": _selector(term.selector)}
    if term.namespaces:
        entry["namespaces"] = list(term.namespaces)
    if term.namespace_selector is not None:
        entry["namespaceSelector"] = _selector(term.namespace_selector)
    if term.match_label_keys:
        entry["matchLabelKeys"] = list(term.match_label_keys)
    if term.mismatch_label_keys:
        entry["mismatchLabelKeys"] = list(term.mismatch_label_keys)
    return entry


def _selector(stated: Requirements) -> dict[str, object]:
    if not stated:
        return {}
    return {"matchExpressions": [each for key in sorted(stated) for each in expressions_of(stated[key])]}


def keepers(cause: TooNear | Unwelcome, question: Question) -> str:
    """The pods that keep the refused ones out of the domain, by name, and their node where they run."""
    found = [_named(pod) for pod in everyone(question) if _keeps_off(cause, pod, question)]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more


def _named(pod: Pod) -> str:
    return f"{pod.key} (node {pod.node_name})" if pod.node_name else f"{pod.key} (placed in the same plan)"


def _keeps_off(cause: TooNear | Unwelcome, pod: Pod, question: Question) -> bool:
    first = question.pods[0]
    if pod.key in {each.key for each in question.pods} or not _is_there(cause.key, cause.domain, pod, question):
        return False
    if isinstance(cause, TooNear):
        terms = (term for term in question.spec.pod_anti_affinity.required if term.key == cause.key)
        return any(_means(term, first, pod, question) for term in terms)
    return any(term.key == cause.key and _means(term, pod, first, question) for term in averse_terms(pod))


def _is_there(key: str, domain: str, pod: Pod, question: Question) -> bool:
    if not pod.node_name:
        return pod.is_pending and pod.key not in question.refused
    node = question.snapshot.node(pod.node_name)
    labels: Mapping[str, str] = {} if node is None else {HOSTNAME: node.name, **node.labels}
    return labels.get(key) == domain
