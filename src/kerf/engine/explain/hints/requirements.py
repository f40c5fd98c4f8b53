"""NodePools whose requirements exclude each other: which of them has to give way for a type that takes the pods."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kerf.engine.explain.hints.models import of_pool
from kerf.engine.explain.hints.situation import (
    Advice,
    Situation,
    changing_pool,
    requirements_of,
    takers,
    with_requirement,
)
from kerf.engine.explain.hints.types import ANY_TAINT, allowing, architectures
from kerf.engine.place.devices import asks_cards
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model import causes
from kerf.model.bounds import MAX_GPU_PRICE, MAX_PRICE
from kerf.model.constraints import ALIASES, ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.nodepool import NodePool
from kerf.model.pods import Container, PodSpec
from kerf.model.quantities import Resources

_MOST = 4
"""Sets of requirements that are looked at; one is a look at all that the pool would offer without them."""
_GPU_RESOURCES = "nvidia.com/"


def clashes(pool: NodePool, cause: causes.Cause) -> list[tuple[Requirement, ...]]:
    """Sets of requirements of the pool, without one of which it would offer something; the smallest first."""
    match cause:
        case causes.NamedTypesUnusable(types=types):
            found = {each.asked for each in types if isinstance(each, causes.TypeUnmatched) and each.asked}
            return sorted(found, key=lambda asked: (len(asked), [each.key for each in asked]))
        case causes.NoTypeMatches(asked=asked):
            return [(each,) for each in asked]
    held = [pool.requirements[key] for key in (ZONE, CAPACITY_TYPE) if key in pool.requirements]
    return [*((each,) for each in held), *([tuple(held)] if len(held) > 1 else [])]


def clashing_labels(cause: causes.Cause) -> tuple[str, ...]:
    """Labels of a pool's template, by key, each of which keeps out types that it would offer."""
    match cause:
        case causes.NamedTypesUnusable(types=types):
            of_types = (each.labels for each in types if isinstance(each, causes.TypeUnmatched))
            return tuple(dict.fromkeys(each.key for labels in of_types for each in labels))
        case causes.NoTypeMatches(labels=labels):
            return tuple(each.key for each in labels)
    return ()


def give_way(
    pool: NodePool,
    sets: Sequence[tuple[Requirement, ...]],
    labels: Sequence[str],
    shape: Shape,
    situation: Situation,
) -> Advice | None:
    """What the pool has to state otherwise so that it offers a type that takes the pods; None where nothing does.

    `sets` are of its requirements, and `labels` the keys of labels of its template, that keep types out.

    Where taints, labels, prices or ways to share GPUs are in the way as well, what does without them: the search goes
    on from there.
    """
    needs_cards = asks_cards(shape, situation.supply.families)
    bare = Shape(tuple(replace(pod, spec=_anywhere(pod.spec)) for pod in shape.pods[:1]))
    cardless = Shape(tuple(replace(pod, spec=_without_cards(pod.spec)) for pod in bare.pods))
    for subject, judged in ((shape, pool), (bare, _without_caps(pool)), (cardless, _without_caps(pool))):

        def takers_of(changed: NodePool, subject: Shape = subject) -> list[OfferedType]:
            found = takers(subject, changed, situation) or ()
            return [each for each in found if each.kind.devices or not needs_cards]

        for asked in sets[:_MOST]:
            opened = replace(judged, requirements=pool.requirements.without(each.key for each in asked))
            found = takers_of(opened)
            if found:
                return _relaxed(pool, asked, min(found, key=lambda each: each.order), shape, situation.evidence.world)
        found_without = _unlabelled(pool, labels, takers_of, judged)
        if found_without is not None:
            return found_without
        found = _other_types(pool, takers_of, judged, situation)
        if found:
            return allowing(pool, min(found, key=lambda each: each.order), situation)
    return None


def _unlabelled(
    pool: NodePool, labels: Sequence[str], takers_of: Callable[[NodePool], list[OfferedType]], judged: NodePool
) -> Advice | None:
    """The pool without one label of its template; None where none is in the way alone."""
    for key in labels[:_MOST]:
        gone = [held for held in pool.labels if ALIASES.get(held, held) == key]
        kept = {held: value for held, value in pool.labels.items() if held not in gone}
        if gone and takers_of(replace(judged, labels=kept)):
            hint = f"drop the label {gone[0]}={pool.labels[gone[0]]} from the template of NodePool {pool.name}"
            change = {"template": {"metadata": {"labels": dict.fromkeys(gone)}}}
            return changing_pool(hint, replace(pool, labels=kept), change)
    return None


def giving_way(pool: NodePool, asked: Requirement, shape: Shape, situation: Situation) -> Iterator[Advice]:
    """The pool with one requirement on machines less strict, so it offers a type with the label that is asked.

    One try for each of its first few requirements, none where no type of the market has such a label.
    """
    kinds = situation.market.types_of(pool.node_class)
    if not any(asked.key in each.requirements and not each.requirements[asked.key].excludes(asked) for each in kinds):
        return
    held = (pool.requirements[key] for key in sorted(pool.requirements.keys() - {asked.key, ZONE, CAPACITY_TYPE}))
    # A pod's image is built for one architecture: stay with those of the types that are offered now.
    known = {arch for each in situation.supply.by_pool.get(pool.name, ()) for arch in _architectures_of(each)}
    for each in islice(held, _MOST):
        opened = replace(pool, requirements=pool.requirements.without((each.key,)))
        found = takers(shape, opened, situation) or []
        same = [taker for taker in found if _architectures_of(taker) & known]
        if found:
            best = min(same or found, key=lambda taker: taker.order)
            advice = _relaxed(pool, (each,), best, shape, situation.evidence.world)
            is_fine = same or ARCH in (asked.key, each.key)
            yield advice if is_fine else replace(advice, hint=f"{advice.hint}, if the images run there")


def _architectures_of(offered: OfferedType) -> frozenset[str]:
    return offered.kind.requirements[ARCH].values


def lower_min_values(pool: NodePool, cause: causes.MinValuesUnmet) -> Advice:
    """The pool asking for as many values of the label as the types have that hold the pod."""
    if not cause.found:
        return Advice(f"allow other instance types in NodePool {pool.name}")
    asked = replace(pool.requirements[cause.label], min_values=cause.found)
    changed = with_requirement(pool, asked)
    change = {"template": {"spec": {"requirements": requirements_of(changed)}}}
    return changing_pool(f"lower minValues of {cause.label} in NodePool {pool.name} to {cause.found}", changed, change)


def _anywhere(spec: PodSpec) -> PodSpec:
    return replace(spec, node_selector=Requirements(), affinity=(), tolerations=ANY_TAINT)


def _without_cards(spec: PodSpec) -> PodSpec:
    def without(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(each, requests=_plain(each.requests), limits=_plain(each.limits)) for each in containers)

    return replace(spec, containers=without(spec.containers), init_containers=without(spec.init_containers))


def _plain(amounts: Resources) -> Resources:
    return amounts.without(name for name in amounts if name.startswith(_GPU_RESOURCES))


def _without_caps(pool: NodePool) -> NodePool:
    caps = (MAX_PRICE, MAX_GPU_PRICE)
    held, own = (
        {key: value for key, value in annotations.items() if key not in caps}
        for annotations in (pool.annotations, pool.own_annotations)
    )
    return replace(pool, annotations=held, own_annotations=own)


def _relaxed(pool: NodePool, asked: Iterable[Requirement], best: OfferedType, shape: Shape, world: World) -> Advice:
    """The pool with these requirements as the type needs them: its value allowed too, or none asked."""
    sold = next((o for each in shape.spec.alternatives if (o := best.offering_for(each))), best.offerings[0])
    changed, said = pool, list[str]()
    for each in asked:
        values = {ZONE: {sold.zone}, CAPACITY_TYPE: {sold.capacity_type}}.get(each.key)
        theirs = best.kind.requirements.get(each.key)
        if values is None and theirs is not None and not theirs.complement:
            values = {*theirs.values}
        held = changed.requirements[each.key]
        if held.complement or not held.values or not values:
            changed = replace(changed, requirements=changed.requirements.without((each.key,)))
            said.append(f"drop {each} from NodePool {pool.name}")
            continue
        changed = with_requirement(changed, replace(held, values=held.values | values))
        images = ", if the images run there" if each.key == ARCH else ""
        said.append(f"allow {each.key} {', '.join(sorted(values))} in NodePool {pool.name}{images}")
    change = {"template": {"spec": {"requirements": requirements_of(changed)}}}
    text = "; and ".join(said) + of_pool(pool, (best.kind,), world)
    return changing_pool(text, changed, change)


def _other_types(
    pool: NodePool, takers_of: Callable[[NodePool], list[OfferedType]], judged: NodePool, situation: Situation
) -> list[OfferedType]:
    """The types that the pool's other requirements allow and that take the pods, where it names types."""
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return []
    found = takers_of(replace(judged, requirements=pool.requirements.without((INSTANCE_TYPE,))))
    if ARCH in pool.requirements:
        return found
    # A pod's image is built for one architecture: that of the types that are named, or the usual one.
    usual = architectures(pool, situation) or {"amd64"}
    return [each for each in found if each.kind.requirements[ARCH].values & usual]
