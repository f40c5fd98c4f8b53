"""Why an instance is not what its EC2NodeClass says now: Karpenter's reasons, in Karpenter's order.

An empty selection says nothing: it is a mistake or a call that failed, and must not make every node look drifted. What
Karpenter launched carries no digest that Kerf knows, so on the day of the switch nothing drifts by it.
"""

from kerf.clouds.aws.images import image_for
from kerf.clouds.aws.instances import Listed
from kerf.clouds.aws.nodeclass.hashing import HASH_VERSION, versioned
from kerf.clouds.aws.nodeclass.status import (
    CAPACITY_RESERVATIONS_READY,
    PLACEMENT_GROUP_READY,
    PlacementGroup,
    Resolved,
)
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import RESERVED

NODE_CLASS, IMAGE, SECURITY_GROUP = "NodeClassDrift", "AMIDrift", "SecurityGroupDrift"
SUBNET, RESERVATION, PLACEMENT_GROUP = "SubnetDrift", "CapacityReservationDrift", "PlacementGroupDrift"


def drifted(held: Listed, digest: str, resolved: Resolved, kind: Requirements | None) -> str | None:
    """The first reason; None where there is none. `kind` is what the instance's type says of itself, None if unknown.

    `digest` is that of the EC2NodeClass now, without its version.
    """
    instance, unknown = held.instance, resolved.unknown
    checks = (
        (NODE_CLASS, held.node_class_hash.startswith(f"{HASH_VERSION}-") and held.node_class_hash != versioned(digest)),
        (IMAGE, _is_old_image(instance.image, resolved, kind)),
        (SECURITY_GROUP, _differs(held.groups, tuple(each.id for each in resolved.security_groups))),
        (SUBNET, bool(resolved.subnets) and instance.subnet not in {each.id for each in resolved.subnets}),
        (RESERVATION, CAPACITY_RESERVATIONS_READY not in unknown and _is_unreserved(held, resolved)),
        (PLACEMENT_GROUP, PLACEMENT_GROUP_READY not in unknown and _is_elsewhere(held, resolved.placement_group)),
    )
    return next((reason for reason, is_so in checks if is_so), None)


def _is_old_image(image: str, resolved: Resolved, kind: Requirements | None) -> bool:
    """Whether a new instance of the type would get another image; of an unknown type, whether none has this one."""
    if not image or not resolved.images:
        return False
    if kind is None:
        return image not in {each.id for each in resolved.images}
    now = image_for(resolved.images, kind)
    return now is None or now.id != image


def _differs(held: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return bool(wanted) and set(held) != set(wanted)


def _is_unreserved(held: Listed, resolved: Resolved) -> bool:
    offering = held.instance.offering
    return offering.capacity_type == RESERVED and offering.reservation not in {
        each.id for each in resolved.reservations
    }


def _is_elsewhere(held: Listed, group: PlacementGroup | None) -> bool:
    """Whether it is in another group than it should be; EC2 can give the name of the group alone."""
    by_id, by_name = held.instance.offering.placement_group, held.placement_group
    if group is None or by_id or not by_name:
        return (by_id or by_name) != (group.id if group is not None else "")
    return bool(group.name) and by_name != group.name
