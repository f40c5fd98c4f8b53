"""Pods that would fit if the pool shared its GPUs otherwise, or the pod asked otherwise."""

from collections.abc import Mapping
from dataclasses import replace

from kerf.engine.explain import sharing as words
from kerf.engine.explain.hints.situation import Advice, Situation, changing_pod, changing_pool, places
from kerf.engine.place.devices import rightful_family
from kerf.engine.place.shapes import Shape
from kerf.model.causes import CardsNeverShown, Insufficient, ShownOtherwise
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Patch
from kerf.model.pods import Container
from kerf.model.quantities import Resources
from kerf.sharing.family import SHARING, Family, PluginKeptOff
from kerf.sharing.hami.config import CHART_DEFAULTS
from kerf.sharing.hami.family import Hami
from kerf.sharing.nvidia.mig import PREFIX as MIG_PREFIX
from kerf.sharing.nvidia.partitions import TooFewParts

_GPU_RESOURCES = "nvidia.com/"
_MOST_CONFIGURATIONS = 30
"""How many configurations of GPU sharing are tried for a pod; each is a look at all that the pool offers."""


def select_family(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    """The pool's nodes are not the family's: its label selects them, or, where it has that, an annotation."""
    rightful = rightful_family(shape, situation.supply.families)
    if rightful is None or rightful.selector is None:
        return Advice()
    key, value = rightful.selector
    if pool.labels.get(key) == value:
        return _state_family(pool, rightful, shape, situation)
    hint = f'add the label {key}: "{value}" to the template of NodePool {pool.name}'
    if pool.taints:
        hint += f", whose taint {min(pool.taints)} {rightful.title}'s device plugin must tolerate"
    changed = replace(pool, labels={**pool.labels, key: value})
    return changing_pool(hint, changed, {"template": {"metadata": {"labels": {key: value}}}})


def _state_family(pool: NodePool, rightful: Family, shape: Shape, situation: Situation) -> Advice:
    hint = f"annotate NodePool {pool.name} with {SHARING}: {rightful.name}, if {rightful.title} has its cards"
    stated = replace(pool, own_annotations={**pool.own_annotations, SHARING: rightful.name})
    if not places(shape, stated, situation):
        return Advice(hint)
    patch = Patch("NodePool", pool.name, {"metadata": {"annotations": {SHARING: rightful.name}}})
    return Advice(hint, patch, pool=stated)


def configure_sharing(pool: NodePool, shape: Shape, situation: Situation) -> Advice | None:
    """A configuration of GPU sharing that the cluster has and under which the pool would take the pod."""
    if not any(name.startswith(_GPU_RESOURCES) for name in shape.requests):
        return None
    known = [labels for family in situation.supply.families for labels in family.configurations(shape.pod)]
    for labels in known[:_MOST_CONFIGURATIONS]:
        changed = replace(pool, labels={**pool.labels, **labels})
        if changed.labels != pool.labels and places(shape, changed, situation):
            named = ", ".join(f'{key}: "{value}"' for key, value in labels.items())
            hint = f"add the label {named} to the template of NodePool {pool.name}"
            return changing_pool(hint, changed, {"template": {"metadata": {"labels": dict(labels)}}})
    return None


def ask_as_shown(misfit: Misfit, shape: Shape, situation: Situation) -> Advice | None:
    """The same amounts by the names that the pool's device plugin gives its GPUs, where the pool then takes the pod.

    First the one name alone, then with it those that HAMi's configuration has changed.
    """
    cause, pool = misfit.cause, situation.snapshot.pool(misfit.target.node_pool)
    if not isinstance(cause, Insufficient) or pool is None:
        return None
    own = _shown_name(misfit, cause, situation)
    of_hami = {old: new for old, new in _renamed_by_hami(situation).items() if old in shape.requests}
    for names in (own, of_hami | own):
        advice = _asking_by(names, pool, shape, situation) if names else None
        if advice is not None:
            return advice
    return None


def _shown_name(misfit: Misfit, cause: Insufficient, situation: Situation) -> dict[str, str]:
    """By the name that is asked the one by which the pool's cards are shown; a MIG profile by that of its own kind."""
    if isinstance(cause, ShownOtherwise):
        return {cause.worst.resource: cause.shown}
    if not isinstance(cause.cards, TooFewParts) or cause.cards.there:
        return {}
    asked = cause.cards.resource
    offered = situation.supply.by_pool.get(misfit.target.node_pool, ())
    devices = next((each.room.devices for each in offered if each.target.name == misfit.target), ())
    parts = (part for device in devices for part in device.partitions)
    alike = sorted({part.resource for part in parts if part.profile and asked == f"{MIG_PREFIX}{part.profile}"})
    return {asked: alike[0]} if alike else {}


def _renamed_by_hami(situation: Situation) -> dict[str, str]:
    """By HAMi's own names those that its configuration gives them, where these differ."""
    configs = [family.config for family in situation.supply.families if isinstance(family, Hami)]
    pairs = (
        (getattr(CHART_DEFAULTS, key), getattr(config, key))
        for config in configs
        for key in ("count", "memory", "memory_percent", "cores", "priority")
    )
    return {old: new for old, new in pairs if old != new}


def _asking_by(names: Mapping[str, str], pool: NodePool, shape: Shape, situation: Situation) -> Advice | None:
    """The pod with new names for resources, where the pool takes it then."""
    spec = shape.spec
    changed = replace(
        spec,
        containers=tuple(_renamed(each, names) for each in spec.containers),
        init_containers=tuple(_renamed(each, names) for each in spec.init_containers),
    )
    if not places(Shape((replace(shape.pod, spec=changed),)), pool, situation):
        return None
    lists = {"containers": spec.containers, "initContainers": spec.init_containers}
    change: dict[str, object] = {
        key: [
            {"name": each.name, "resources": {"limits": _limits(each, names)}}
            for each in containers
            if any(old in each.limits for old in names)
        ]
        for key, containers in lists.items()
        if any(old in each.limits for each in containers for old in names)
    }
    said = " and ".join(f"{new} in place of {old}" for old, new in sorted(names.items()))
    return changing_pod(f"ask for {said}", shape, changed, change, situation)


def _limits(container: Container, names: Mapping[str, str]) -> dict[str, str | None]:
    held = {old: new for old, new in names.items() if old in container.limits}
    after = _renamed(container, names).limits
    return {**dict.fromkeys(held), **{new: str(after[new]) for new in held.values()}}


def _renamed(container: Container, names: Mapping[str, str]) -> Container:
    """The container with what it asks by the old names added to what it asks by the new ones."""
    if names.keys().isdisjoint({*container.requests, *container.limits}):
        return container
    requests, limits = (_with_names(held, names) for held in (container.requests, container.limits))
    return replace(container, requests=requests, limits=limits)


def _with_names(held: Resources, names: Mapping[str, str]) -> Resources:
    added = Resources()
    for name, amount in held.items():
        added = added + Resources({names.get(name, name): amount})
    return added


def ask_otherwise(misfit: Misfit) -> Advice | None:
    """What the family itself says that the pod should ask."""
    hint = words.hint(misfit.cause)
    return Advice(hint) if hint else None


def as_the_reason_says(pool: NodePool, misfit: Misfit, situation: Situation) -> Advice | None:
    """Where cards would never be shown, and where no plugin shows a shared GPU, asking for less helps no pod."""
    cause = misfit.cause
    if isinstance(cause, CardsNeverShown) and isinstance(cause.problem, PluginKeptOff):
        why = cause.problem
        return Advice(f"give {why.daemon_set} a toleration of {why.taint}, or take the taint off NodePool {pool.name}")
    if isinstance(cause, CardsNeverShown):
        return Advice(f"change labels or annotations of NodePool {pool.name}, or the ConfigMap, as the reason says")
    shared = cause.worst.resource if isinstance(cause, Insufficient) else ""
    is_shown = any(each.shown.get(shared, 0) for each in situation.supply.by_pool.get(pool.name, ()))
    if not is_shown and shared.startswith(_GPU_RESOURCES) and shared.endswith(".shared"):
        plain = shared.removesuffix(".shared")
        return Advice(f"ask for {plain}, or label the pool with a configuration that has renameByDefault and {plain}")
    return None
