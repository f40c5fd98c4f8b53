"""Causes in words. Every number in them comes from the cause.

One function a question: `cause_text` says why, `misfit_*` why one target refuses a pod. A cause that has no words here
is a mistake, and a test finds it.
"""

from collections.abc import Sequence
from functools import singledispatch

from kerf.engine.explain import relations, sharing
from kerf.engine.explain.lastword import named_node_text, said_text
from kerf.engine.explain.violations import violation_text
from kerf.engine.explain.volumes import quota_text, volume_text
from kerf.errors import brief
from kerf.model import buffercauses, causes
from kerf.model.bounds import MIN_NODES
from kerf.model.causes import Cause, Lack
from kerf.model.constraints import Requirement, Requirements
from kerf.model.gpu import NVIDIA_GPU, NVIDIA_MEMORY
from kerf.model.groups import GroupBehind, GroupIncomplete, GroupInvalid, GroupShort, GroupUntried, MinimumUnreadable
from kerf.model.instancetypes import price_text
from kerf.model.market import TriedAlone
from kerf.model.placeholders import Keeper
from kerf.model.plan import Misfit, Stage
from kerf.model.printable import one_line
from kerf.model.quantities import money_text, quantity_text
from kerf.model.rejections import AnotherIsTried, BoughtInVain, RejectedByScheduler
from kerf.model.schedules import local_text
from kerf.model.times import duration_text, instant_text
from kerf.model.topology import OutOfTurn
from kerf.model.violations import Violation
from kerf.model.windows import (
    WINDOW_GATE,
    WINDOW_LABEL,
    NoWindowLabel,
    NoWindowSelects,
    WindowClosed,
    WindowElsewhere,
    WindowInvalid,
    WindowNeverOpens,
    WindowQuotaExhausted,
)

_KEEPERS = {
    Keeper.WINDOW: "CapacityWindow",
    Keeper.RUN: "CronJob",
    Keeper.REQUEST: "ProvisioningRequest",
    Keeper.CHECK: "ProvisioningRequest",
    Keeper.BUFFER: "CapacityBuffer",
}
_GPU_HOUR = 36_000_000
_OF_DEVICES = ("GPU", "MiB", "cores")
_MOST_REASONS = 3
_MOST_NAMED = 8
"""Of a list that a manifest may make as long as it likes."""


def counted(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def lost_text(keys: Sequence[str]) -> str:
    """What is said of other pods that lose their place; empty where none does."""
    if not keys:
        return ""
    return f"; {counted(len(keys), 'other pod')} {'loses its' if len(keys) == 1 else 'lose their'} place: {some(keys)}"


def counted_launches(number: int) -> str:
    """`1 launch`, `3 launches`."""
    return "1 launch" if number == 1 else f"{number} launches"


def cause_text(cause: Cause) -> str:
    """The cause as one sentence without its end, in one line: a text it quotes cannot look like another line.

    Raises TypeError for one that has no words.
    """
    return one_line(words(cause))


@singledispatch
def words(cause: Cause) -> str:
    """What `cause_text` makes one line of; a module registers here the words of its own causes."""
    return volume_text(cause) or relations.reason(cause)


@words.register
def _(cause: causes.UntoleratedTaint) -> str:
    return f"did not tolerate taint {cause.taint}"


@words.register
def _(cause: causes.LabelMismatch) -> str:
    has = f"has {cause.held}" if cause.held is not None else f"has no label {cause.asked.key}"
    more = f" and {cause.more} more values" if cause.more else ""
    return f"the pod asks {cause.asked}, {cause.owner} {has}{more}"


@words.register
def _(cause: Violation) -> str:
    return f"Kerf refused its own plan for the pod, which broke a rule: {violation_text(cause)}"


@words.register
def _(cause: OutOfTurn) -> str:
    left = "the pods before it leave no node to be bought where its constraints on other pods hold"
    return left if type(cause.why) is Cause else f"{left}: {words(cause.why)}"


@words.register
def _(cause: causes.HostPortTaken) -> str:
    return f"host port {cause.port}/{cause.protocol} is taken"


@words.register
def _(cause: causes.NotPlannedFor) -> str:
    return f"the pod has {some(cause.constraints, _MOST_NAMED)}, which this version does not plan for"


@words.register
def _(cause: causes.Insufficient) -> str:
    return f"Insufficient {cause.worst.resource}"


@words.register
def _(cause: causes.ShownOtherwise) -> str:
    return f"Insufficient {cause.worst.resource}, which {cause.title} shows as {cause.shown} here"


@words.register
def _(cause: causes.ForeignFamily) -> str:
    selector = f'label {cause.selector[0]}: "{cause.selector[1]}"' if cause.selector else "its own label"
    return (
        f"the pod asks for slices of {cause.title}, whose device plugin does not select these nodes "
        f"(selector: {selector})"
    )


@words.register
def _(cause: causes.CardsNeverShown) -> str:
    found = [f"{name}: {cause_text(problem)}" for name, problem in cause.others[:_MOST_REASONS]]
    more = len(cause.others) - len(found)
    return "; ".join([cause_text(cause.problem), *found, *([f"and {more} more reasons"] if more else [])])


@words.register
def _(cause: causes.NoCards) -> str:
    return f"{cause.instance_type} has no GPU"


@words.register
def _(cause: causes.NoneRegistered) -> str:
    return f"{cause.node} has registered no GPU"


@words.register
def _(cause: causes.LimitReached) -> str:
    def text(amount: int) -> str:
        return quantity_text(cause.resource, amount)

    in_use = f"{text(cause.used)} in use, " if cause.used else ""
    return (
        f"limit {cause.resource} {text(cause.limit)} of NodePool {cause.pool}: {in_use}"
        f"{text(cause.planned)} planned, {text(cause.more)} more needed{_by_cards(cause)}"
    )


def _by_cards(cause: causes.LimitReached) -> str:
    """How many the GPUs of the node show, where that is another number than theirs; empty elsewhere."""
    if not cause.cards:
        return ""
    return f" ({counted(cause.cards, 'GPU')} shown as {cause.more})"


@words.register
def _(cause: causes.BacksOff) -> str:
    until = instant_text(cause.until_s)
    tried = "one node is tried at a time: " if cause.is_tried else ""
    return f"{cause.instance_type} backs off in NodePool {cause.pool} until {until}: {tried}{cause.said}"


@words.register
def _(cause: causes.NoOfferingAllowed) -> str:
    return f"{cause.instance_type} has no offering that the NodePool's zones and capacity types allow"


@words.register
def _(cause: causes.OfferingsSoldOut) -> str:
    when = f", tried again at {instant_text(cause.again_s)}" if cause.again_s else ""
    return f"{cause.instance_type} is sold out ({', '.join(cause.capacity_types)}){when}"


@words.register
def _(cause: causes.ReservationUsedUp) -> str:
    return f"reservation {cause.reservation} of {cause.instance_type} has no instance left"


@words.register
def _(cause: causes.MinValuesUnmet) -> str:
    return (
        f"minValues requirement is not met for label {cause.label}: NodePool {cause.pool} asks for {cause.wanted} "
        f"values, and the types that can hold the pod have {cause.found}"
    )


@words.register
def _(cause: causes.OverPriceCap) -> str:
    per_gpu = " per GPU" if cause.per_gpu else ""
    return f"price {money_text(cause.price_micro)}{per_gpu} > cap {money_text(cause.cap_micro)}"


@words.register
def _(cause: causes.TypeOverPriceCap) -> str:
    return f"{cause.instance_type}: {cause_text(cause.excess)}"


@words.register
def _(cause: causes.NoOfferingLeft) -> str:
    return f"no offering is left for {cause.asked}"


@words.register
def _(cause: causes.PoolDeleting) -> str:
    return "it is being deleted"


@words.register
def _(cause: causes.PoolInvalid) -> str:
    return "it is invalid: " + "; ".join(filter(None, (cause.spec, cause.annotations)))


@words.register
def _(cause: causes.PoolStatic) -> str:
    return "it is static (spec.replicas), its nodes follow that number and not the pods"


@words.register
def _(cause: causes.NodeClassNotFound) -> str:
    return f"NodeClassNotFound: {cause.kind} {cause.name}"


@words.register
def _(cause: causes.NodeClassUnready) -> str:
    return f"{cause.kind} {cause.name} is not ready: {cause.reason}"


@words.register
def _(cause: causes.PoolClosed) -> str:
    return f"NodePool {cause.pool} takes no nodes: {cause_text(cause.problem)}"


@words.register
def _(cause: causes.NoTypeMatches) -> str:
    found = _all_of(cause.asked, cause.labels)
    asked = f": {found}" if found else ""
    return f"no instance type here satisfies the requirements of NodePool {cause.pool}{asked}"


@words.register
def _(cause: causes.TypeUnmatched) -> str:
    return f"{cause.instance_type} does not satisfy {_all_of(cause.asked, cause.labels) or 'the other requirements'}"


def _all_of(asked: tuple[Requirement, ...], labels: tuple[Requirement, ...]) -> str:
    stated = [f"label {key}={value} of its template" for key, value in sorted(Requirements(labels).labels().items())]
    return " and ".join([*map(str, asked), *stated])


@words.register
def _(cause: causes.TypeNotSold) -> str:
    return f"{cause.instance_type}: {cause.why}"


@words.register
def _(cause: causes.TypeUnknown) -> str:
    nearest = f" (nearest known: {cause.nearest})" if cause.nearest else ""
    return f"unknown instance type {cause.instance_type}{nearest}"


@words.register
def _(cause: causes.NamedTypesUnusable) -> str:
    return f"NodePool {cause.pool} offers no instance type: " + "; ".join(map(cause_text, cause.types))


@words.register
def _(cause: causes.NothingOffered) -> str:
    return "no NodePool offers any instance type"


# Pods.


@words.register
def _(cause: causes.InvalidPod) -> str:
    return str(cause.problem)


@words.register
def _(cause: causes.AsksTooMuch) -> str:
    others = f", {counted(cause.relations, 'constraint')} on other pods among them" if cause.relations else ""
    return f"the pod's spec counts as {cause.entries} entries{others}; Kerf plans for at most {cause.most}"


@words.register
def _(cause: causes.Gated) -> str:
    gates = some(cause.gates, _MOST_NAMED)
    if cause.by_kueue:
        return f"held by Kueue, which has not admitted it: {gates}"
    return f"held back by scheduling gates: {gates}"


@words.register
def _(cause: causes.NodeNamed) -> str:
    return named_node_text(cause)


@words.register
def _(cause: RejectedByScheduler | AnotherIsTried | BoughtInVain) -> str:
    return said_text(cause, words)


@words.register
def _(cause: causes.OverResourceQuota) -> str:
    return quota_text(cause)


@words.register
def _(cause: causes.UnstatedForQuota) -> str:
    names = ", ".join(cause.resources)
    return f"ResourceQuota {cause.namespace}/{cause.name}: each container must state {names}, which it limits"


@words.register
def _(cause: causes.NoRoomOfRequest) -> str:
    if not cause.is_there:
        return f"ProvisioningRequest {cause.request}, whose room it asks for, does not exist"
    return f"ProvisioningRequest {cause.request} has no room for it" if cause.request else "no node that is up has room"


@words.register
def _(cause: causes.NoIdleCapacity) -> str:
    return "NoIdleCapacity: no node has room to spare for it, and none is bought for an opportunistic pod"


@words.register
def _(cause: causes.Paced) -> str:
    wait = duration_text(cause.wait_s)
    return f"paced: NodePool {cause.pool} makes {counted_launches(cause.per_minute)} a minute; next in {wait}"


@words.register
def _(cause: TriedAlone) -> str:
    return f"the last nodes of {cause.instance_type} failed in NodePool {cause.pool}, so one is tried first"


@words.register
def _(cause: causes.AwaitsRequest) -> str:
    return f"waits until ProvisioningRequest {cause.request} is provisioned, and takes a place of it"


@words.register
def _(cause: causes.TemplateMissing) -> str:
    return f"there is no PodTemplate {cause.template}"


@words.register
def _(cause: causes.TemplateInvalid) -> str:
    return f"PodTemplate {cause.template}: {cause.problem}"


@words.register
def _(cause: buffercauses.ScalableMissing) -> str:
    return f"there is no {cause.scalable}"


@words.register
def _(cause: buffercauses.ScalableUnknown) -> str:
    return f"pods of {cause.kind} are not known: scalableRef may name a Deployment, ReplicaSet or StatefulSet of apps"


@words.register
def _(cause: buffercauses.ScalableInvalid) -> str:
    return f"{cause.scalable}: {cause.problem}"


@words.register
def _(cause: buffercauses.StrategiesIgnored) -> str:
    number = len(cause.buffers)
    named = f"{number} CapacityBuffers ({some(cause.buffers)}) are"
    named = f"CapacityBuffer {cause.buffers[0]} is" if number == 1 else named
    return f"{named} of another strategy than {cause.followed}: no room is kept"


@words.register
def _(cause: buffercauses.NothingNamed) -> str:
    return "it names neither a podTemplateRef nor a scalableRef"


@words.register
def _(cause: causes.RoomLimited) -> str:
    return f"{_KEEPERS[cause.kept.keeper]} {cause.kept.name}: {room_text(cause)}"


def room_text(cause: causes.RoomLimited) -> str:
    """How much room is kept and why no more, without what keeps it."""
    room = f"{cause.granted} of {counted(cause.wanted, 'pod')}" if cause.granted else counted(cause.wanted, "pod")
    return f"{'' if cause.granted else 'no '}room is kept for {room}: {cause_text(cause.why)}"


@words.register
def _(cause: causes.RoomUnbounded) -> str:
    if not cause.namespace:
        return (
            f'it is for pods of any namespace, and no NodePool has the annotation {cause.use}: "*"; state its '
            "namespaces, or annotate a NodePool"
        )
    return (
        f"no ResourceQuota of namespace {cause.namespace} limits {cause.resource}, and no NodePool names the namespace "
        f"in {cause.use}; add one of them"
    )


@words.register
def _(cause: causes.NoPoolNames) -> str:
    whose = f"namespace {cause.namespace}" if cause.namespace else '"*", as pods of any namespace need'
    return f"no NodePool names {whose} in {cause.use}; add it there"


@words.register
def _(cause: causes.MostRoom) -> str:
    return f"room is kept for {cause.most} pods at most"


# CapacityWindows: each begins with the code that operators search for.


@words.register
def _(cause: WindowInvalid) -> str:
    return f"WindowInvalid: CapacityWindow {cause.window} opens nothing: {cause.problem}"


@words.register
def _(cause: WindowNeverOpens) -> str:
    return f"WindowClosed: CapacityWindow {cause.window} never opens again"


@words.register
def _(cause: WindowClosed) -> str:
    when = local_text(cause.opens_s, cause.time_zone)
    return f"WindowClosed: CapacityWindow {cause.window} is closed and opens at {when}"


@words.register
def _(cause: NoWindowLabel) -> str:
    return f"WindowNotFound: its gate {WINDOW_GATE} waits for a window, and it has not the label of one"


@words.register
def _(cause: NoWindowSelects) -> str:
    return f"WindowNotFound: no CapacityWindow selects the pod (label {WINDOW_LABEL}={cause.label})"


@words.register
def _(cause: WindowElsewhere) -> str:
    where = f"selects it only in namespaces {', '.join(cause.namespaces)}, not in {cause.namespace}"
    return f"WindowNotFound: CapacityWindow {cause.window} {where}"


@words.register
def _(cause: WindowQuotaExhausted) -> str:
    whose = f"namespace {cause.namespace}" if cause.namespace else "all its pods"
    left, wanted = _hours(cause.left), _hours(cause.wanted)
    return f"QuotaExhausted: CapacityWindow {cause.window} has {left} left for {whose}, the pod would reserve {wanted}"


def _hours(card_seconds: int) -> str:
    return f"{card_seconds / _GPU_HOUR:.3f}".rstrip("0").rstrip(".") + " GPU-hours"


# Groups; what follows the group's name.


@words.register
def _(cause: MinimumUnreadable) -> str:
    if cause.got is None:
        return f"{cause.key}: expected a number of pods beside {cause.beside}, got none"
    return f"{cause.key}: expected a number of pods, 1 or more, got {brief(cause.got)}"


@words.register
def _(cause: GroupInvalid) -> str:
    return cause_text(cause.problem)


@words.register
def _(cause: GroupIncomplete) -> str:
    there = "1 pod is" if cause.there == 1 else f"{cause.there} pods are"
    return f"{there} there, {cause.least} are needed"


@words.register
def _(cause: GroupShort) -> str:
    return f"{cause.ready} of {cause.least} have room"


@words.register
def _(cause: GroupBehind) -> str:
    return f"{cause.ready} of {cause.least} have room only in the place of groups that go before it"


@words.register
def _(_: GroupUntried) -> str:
    return "not tried in this round, other groups come first"


# Floors.


@words.register
def _(cause: causes.BelowFloor) -> str:
    stated = "spec.replicas" if cause.is_static else MIN_NODES
    return f"NodePool {cause.pool} keeps {cause.floor} nodes ({stated}) and has {cause.held}"


@words.register
def _(cause: causes.FloorUnmet) -> str:
    obstacle = cause.obstacle
    if isinstance(obstacle, causes.PoolClosed):
        why = f"it takes no nodes: {cause_text(obstacle.problem)}"
    else:
        why = cause_text(obstacle)
    stated = "spec.replicas" if cause.is_static else MIN_NODES
    return f"NodePool {cause.pool} has {cause.held} of {cause.floor} nodes ({stated}): {why}"


@words.register
def _(cause: causes.LimitLeavesNoRoom) -> str:
    return f"its limit {cause.resource} leaves no room for a {cause.instance_type}"


@words.register
def _(cause: causes.MostOfOnePlan) -> str:
    return f"one plan buys at most {cause.most} nodes for it, the next plan more"


@words.register
def _(cause: causes.PoolOffersNothing) -> str:
    return "it offers no instance type"


# Why one target refuses a pod.


def misfit_reason(misfit: Misfit) -> str:
    """The cause, or for a window its code."""
    codes = {
        WindowInvalid: "WindowInvalid",
        WindowClosed: "WindowClosed",
        WindowNeverOpens: "WindowClosed",
        WindowQuotaExhausted: "QuotaExhausted",
    }
    return codes.get(type(misfit.cause)) or cause_text(misfit.cause)


def misfit_text(misfit: Misfit) -> str:
    """The reason, and where no quantity says more, what is known beside it."""
    detail = _device_detail(misfit)
    return f"{misfit_reason(misfit)}: {detail}" if detail and not missing_text(misfit) else misfit_reason(misfit)


def missing_text(misfit: Misfit) -> str:
    """What is lacking, such as `2 cpu, 8Gi memory`; empty where no quantity would help."""
    cause = misfit.cause
    match cause:
        case causes.LimitReached():
            return quantity_text(cause.resource, cause.more)
        case WindowClosed():
            return duration_text(cause.wait_s)
        case WindowQuotaExhausted():
            return _hours(cause.wanted)
    return some([_lack_text(lack) for lack in misfit.missing], _MOST_NAMED)


def _lack_text(lack: Lack) -> str:
    if lack.of in _OF_DEVICES:
        return sharing.missing_text((lack,))
    return f"{quantity_text(lack.of, lack.amount)} {lack.of}"


def misfit_sentence(misfit: Misfit) -> str:
    """The misfit as one sentence with its figures, and with its target where the cause does not name it."""
    detail = _device_detail(misfit)
    if detail:
        return f"{detail} ({misfit.target})"
    cause, reason = misfit.cause, misfit_reason(misfit)
    if isinstance(cause, causes.Insufficient):
        worst = cause.worst
        needed, free = (quantity_text(worst.resource, amount) for amount in (worst.needed, worst.free))
        figures = f"needs {needed} {worst.resource}, {free} free"
        cards = f"; and {sharing.detail(cause.cards) or cause_text(cause.cards)}" if cause.cards is not None else ""
        return f"{reason}: {figures}, {missing_text(misfit)} missing{cards} ({misfit.target})"
    return reason if isinstance(cause, _NAMING_THEIR_TARGET) else f"{reason} ({misfit.target})"


_NAMING_THEIR_TARGET = (
    causes.LabelMismatch,
    causes.LimitReached,
    causes.BacksOff,
    causes.PoolClosed,
    causes.NoTypeMatches,
    causes.NamedTypesUnusable,
)


def _device_detail(misfit: Misfit) -> str:
    """What a family knows beside its codes; empty where it knows no more."""
    return sharing.detail(misfit.cause) if misfit.stage == Stage.DEVICES else ""


@words.register
def _(cause: causes.OfPool) -> str:
    return f"NodePool {cause.pool}: {cause_text(cause.known)}"


@words.register
def _(cause: causes.OverlayNotApplied) -> str:
    return f"NodeOverlay {cause.overlay} is not applied: {cause_text(cause.why)}"


@words.register
def _(cause: causes.OverlayInvalid) -> str:
    return cause.problem


@words.register
def _(cause: causes.OverlayContradicts) -> str:
    return f"conflict with another overlay: {cause.other}"


@words.register
def _(cause: causes.OverlayDisagrees) -> str:
    unit = " MiB" if cause.resource == NVIDIA_MEMORY else ""
    per_card = f", {cause.memory_mib} on each of {cause.cards} cards" if cause.memory_mib else ""
    return (
        f"NodeOverlay {cause.overlay} announces {cause.announced}{unit} of {cause.resource} on {cause.instance_type}; "
        f"planned with {cause.planned}{unit}{per_card}, which is what its cards register"
    )


@words.register
def _(cause: causes.OverlayShares) -> str:
    cards = "1 card" if cause.cards == 1 else f"{cause.cards} cards"
    return (
        f"NodeOverlay {cause.overlay} announces {cause.announced} of {NVIDIA_GPU} on {cause.instance_type}, which has "
        f"{cards}: read as time-slicing with {cause.replicas} replicas a card, because nothing else says how its cards "
        "are shared"
    )


@words.register
def _(cause: causes.SearchFailed) -> str:
    return f"the search for the cheapest nodes failed ({cause.error}): nodes are filled first-fit and may cost more"


@words.register
def _(_: causes.SolverFailed) -> str:
    return "the solver of linear programs gave no answer: nodes are filled one by one and may cost more"


@words.register
def _(cause: causes.TooManyKinds) -> str:
    return (
        f"{cause.kinds:,} kinds of pods need nodes, more than the {cause.most:,} for which this budget looks for the "
        "cheapest mix: nodes are filled one by one and may cost more; a lower bound, if the plan has one, shows "
        "how much at most"
    )


@words.register
def _(cause: causes.FilledOneByOne) -> str:
    ports = f"{counted(cause.ports, 'pod')} with host ports" if cause.ports else ""
    verb = "goes" if cause.apart == 1 else "go"
    apart = f"{counted(cause.apart, 'pod')} that {verb} by who shares the node" if cause.apart else ""
    whose = " and ".join(filter(None, (apart, ports)))
    return f"the search for the cheapest mix leaves out {whose}: their nodes are filled one by one and may cost more"


@words.register
def _(cause: causes.NotCompared) -> str:
    return (
        f"first-fit was not tried for {cause.pods:,} pods among {cause.types:,} types, which takes too long: it might "
        f"{'serve more of them or ' if cause.serves else ''}cost less (--strategy first-fit)"
    )


@words.register
def _(cause: causes.ServedMost) -> str:
    return (
        f"limits leave {counted(cause.left, 'pod')} without a node: these nodes serve {counted(cause.more, 'pod')} "
        "more than those that cost least for each pod, and may cost more for each"
    )


@words.register
def _(cause: causes.FarFromBound) -> str:
    above = _above(cause.price_micro, cause.bound_micro)
    begin = f"the nodes for {cause.pods:,} pods cost {above} more than is proven that they must"
    if cause.parts_micro is None:
        longer = "" if cause.is_longest else " (--budget 30s looks longer)"
        return f"{begin}: the search for a cheaper mix ended before its prices had settled{longer}"
    if cause.parts_micro <= cause.bound_micro:
        return f"{begin}: they are few of each kind, and nodes cannot be bought in parts"
    over = _above(cause.price_micro, cause.parts_micro)
    return (
        f"{begin}, and {over} more than the cheapest mix that was found would cost in parts of nodes: no more than "
        "that is lost by whole nodes, and the rest of the gap is mixes that were not found, or a bound that is weak "
        "for such pods"
    )


def _above(part: int, whole: int) -> str:
    """How much more it is, in percent, rounded up to one decimal."""
    tenths = max(0, -((whole - part) * 1000 // whole))
    return f"{tenths // 10}.{tenths % 10} %"


@words.register
def _(cause: causes.BoundAbovePlan) -> str:
    bound, price = price_text(cause.bound_micro), price_text(cause.price_micro)
    return f"no lower bound is stated: {bound} per hour was proven for nodes that cost {price}, which is a bug of Kerf"


@words.register
def _(cause: causes.NeverFilled) -> str:
    others = f" and {cause.others} like it" if cause.others else ""
    return f"no node is planned for pod {cause.pod}{others}: {cause.error}"
