"""The figures of a plan: what it costs, its lower bound, and how much of the cards that are paid for is used."""

from collections import defaultdict
from collections.abc import Iterator

from kerf.model.gpu import Slice
from kerf.model.instancetypes import InstanceType, price_text
from kerf.model.plan import GpuUse
from kerf.model.promises import planned_type
from kerf.model.snapshot import ClusterNode
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After

_CARD = 10_000
"""A whole card, in the unit of what is paid and allocated."""
_EIGHTHS = 8


def violations(after: After) -> Iterator[Violation]:
    """Figures that cannot be. Cost: launches."""
    proposal, cost = after.proposal, after.proposal.cost
    if cost is not None:
        bought = sum(launch.price_micro for launch in proposal.launches)
        saved = sum(deletion.saved_micro for deletion in proposal.deletions)
        after_micro = cost.before_micro + bought - saved
        if cost.after_micro != after_micro:
            right, wrong = price_text(after_micro), price_text(cost.after_micro)
            yield violation(PlanRule.COST, "the plan", right, wrong, PlanPart(PartKind.FIGURES))
        for_pods = sum(launch.price_micro for launch in proposal.launches if launch.pods)
        if cost.bound is not None and cost.bound.micro > for_pods:
            least, got = price_text(cost.bound.micro), price_text(for_pods)
            yield violation(PlanRule.BOUND, "the plan", f"at least the bound, {least}", got, PlanPart(PartKind.BOUND))
    if proposal.gpus is not None and _are_all_placed(after) and proposal.gpus.allocated > proposal.gpus.paid:
        expected, got = f"at most {_cards(proposal.gpus.paid)} cards", f"{_cards(proposal.gpus.allocated)} cards"
        yield violation(PlanRule.ALLOCATED, "the plan", expected, got)
    for launch in proposal.launches:
        paid = sum(shape.eighths * _CARD // _EIGHTHS for shape in launch.devices)
        if launch.allocated > paid:
            expected, got = f"at most {_cards(paid)} cards", f"{_cards(launch.allocated)} cards"
            yield violation(PlanRule.ALLOCATED, launch.name, expected, got, PlanPart(PartKind.LAUNCH, launch.name))


def _are_all_placed(after: After) -> bool:
    """Whether each pod of a node that goes has a place: the figure still counts the cards of one that ends with its
    node, or of which nothing is planned yet."""
    placed = {placement.pod.pod for deletion in after.gone.values() for placement in deletion.moved}
    placed |= {pod.pod for launch in after.proposal.launches for pod in launch.pods}
    nodes = (after.snapshot.node(name) for name in after.gone)
    pods = (pod for node in nodes if node is not None for pod in node.pods)
    return all(pod.key in placed or pod.is_ended or pod.is_daemon for pod in pods)


def _cards(share: int) -> str:
    return f"{share / _CARD:g}"


def gpu_use(after: After) -> GpuUse:
    """The cards that are paid for once the plan is carried out, and how much of them is allocated."""
    taking = defaultdict[str, list[Slice]](list)
    for name, placed in after.coming.items():
        for each, by in placed:
            if by is not None:
                taking[name] += each.slices
    paid = allocated = 0
    for node in after.snapshot.nodes:
        if node.name in after.gone:
            continue
        kind = _kind(after, node)
        devices = {device.index: device for device in node.devices}
        for part in taking[node.name]:
            if part.device in devices:
                devices[part.device] = devices[part.device].taking(part.memory_mib, part.cores)
        for index, device in devices.items():
            eighths = _EIGHTHS if kind is None else kind.eighths_of(index)
            paid += eighths * _CARD // _EIGHTHS
            allocated += device.allocated_percent_points * eighths // _EIGHTHS
    for launch in after.proposal.launches:
        paid += sum(shape.eighths * _CARD // _EIGHTHS for shape in launch.devices)
        allocated += launch.allocated
    return GpuUse(paid, min(paid, allocated))


def _kind(after: After, node: ClusterNode) -> InstanceType | None:
    claim = node.claim
    return None if claim is None else after.world.market.find(planned_type(claim), claim.node_class)
