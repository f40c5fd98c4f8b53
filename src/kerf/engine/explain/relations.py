"""Why a node refuses a pod for the sake of other pods, in words."""

from functools import singledispatch

from kerf.engine.explain import sharing
from kerf.model.causes import Cause
from kerf.model.constraints import Requirements
from kerf.model.topology import (
    AffinityCircle,
    KeptOffByDaemonSet,
    NeverMet,
    NoRoomBeside,
    NotNear,
    NoTopologyLabel,
    SkewExceeded,
    TooFewDomains,
    TooNear,
    Unwelcome,
)

_MOST_TERMS = 4
"""Of a pod's other terms that are said: a pod may have thousands."""


@singledispatch
def reason(cause: Cause) -> str:
    """The cause in words; of any other cause those of its sharing family."""
    return sharing.reason(cause)


@reason.register
def _(cause: NoTopologyLabel) -> str:
    return f"{cause.constraint}: the node has no label {cause.key}"


@reason.register
def _(cause: SkewExceeded) -> str:
    there = ", ".join(f"{domain} {count}" for domain, count in cause.counts)
    return (
        f"topology spread over {cause.key}: {_in(cause.key, cause.domain)} has {cause.count} of the pods with "
        f"{_selected(cause.selector)}, the fewest is {cause.least}, so the skew would be {cause.skew} "
        f"(maxSkew {cause.max_skew}; {there})"
    )


@reason.register
def _(cause: TooFewDomains) -> str:
    return f"{reason(cause.skew)}, for minDomains is {cause.min_domains} and there are {cause.domains}"


@reason.register
def _(cause: NotNear) -> str:
    where = _in(cause.key, cause.domain) if cause.domain else "a node to be bought"
    meant = _meant(cause.selector, cause.namespaces)
    if cause.also:
        others = " and ".join(map(_selected, cause.also[:_MOST_TERMS]))
        others += f" and {len(cause.also) - _MOST_TERMS} more" if len(cause.also) > _MOST_TERMS else ""
        return f"pod affinity: {where} has no pod with {meant} that its other terms mean as well ({others})"
    return f"pod affinity: {where} has no pod with {meant}"


@reason.register
def _(cause: TooNear) -> str:
    found = f"{_pods(cause.count)} with {_meant(cause.selector, cause.namespaces)}"
    return f"pod anti-affinity: {_in(cause.key, cause.domain)} has {found}"


@reason.register
def _(cause: Unwelcome) -> str:
    found = f"{_pods(cause.count)} whose anti-affinity keeps it off ({cause.workload})"
    return f"anti-affinity of running pods: {_in(cause.key, cause.domain)} has {found}"


@reason.register
def _(cause: NeverMet) -> str:
    if cause.both:
        return f"{cause.constraint}: nothing can satisfy both {' and '.join(cause.both)}"
    return f"its {cause.constraint} selects nothing, so no node can ever take it"


@reason.register
def _(cause: NoRoomBeside) -> str:
    beside = f"pod affinity: it must be on one node with a pod with {_meant(cause.selector, cause.namespaces)}"
    if cause.claim:
        beside = (
            f"it must be on one node with all pods that share claim {cause.claim}, whose volume is a part of a node"
        )
    if not cause.held:
        return f"{beside}, and no node that can be bought can have both"
    return f"{beside}, and no node that can be bought has room beside {_pods(cause.held)} of its kind"


@reason.register
def _(cause: KeptOffByDaemonSet) -> str:
    nodes = f"each node that can be bought for it gets a pod of DaemonSet {cause.daemon_set}"
    if cause.constraint:
        return f"{nodes}, and its {cause.constraint} over {cause.key} lets it run beside none"
    return f"{nodes}, whose anti-affinity over {cause.key} keeps it off"


@reason.register
def _(cause: AffinityCircle) -> str:
    if cause.count > len(cause.pods):
        names = [*cause.pods, f"{cause.count - len(cause.pods)} more"]
    else:
        names = [*cause.pods, cause.pods[0]]
    circle = ", which must be with ".join(names)
    if cause.is_one:
        return f"pod affinity in a circle: {circle}; none of them runs, so none can be the first"
    return f"pod affinity: it waits for pods that wait in a circle: {circle}; none of them runs"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"


def _in(key: str, domain: str) -> str:
    return f"{key}={domain}"


def _selected(selector: Requirements) -> str:
    if selector.is_never:
        return "no labels at all"
    return str(selector) or "any labels"


def _meant(selector: Requirements, namespaces: tuple[str, ...]) -> str:
    where = f" in namespace {', '.join(namespaces)}" if namespaces else ""
    return f"{_selected(selector)}{where}"
