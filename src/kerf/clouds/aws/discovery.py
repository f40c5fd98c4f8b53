"""All that an EC2NodeClass selects, under one name; each sort has a module of its own."""

from collections.abc import Sequence

from kerf.clouds.aws import images, securitygroups, subnets
from kerf.clouds.aws.api import Api
from kerf.clouds.aws.images import Images
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import CapacityReservation, Image, PlacementGroup, SecurityGroup, Subnet
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.placementgroups import PlacementGroups
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.reservations import Reservations
from kerf.clouds.aws.securitygroups import SecurityGroups
from kerf.clouds.aws.subnets import Subnets
from kerf.ports import Clock


class AwsDiscovery:
    """What is in an account. Each method raises Unusable where there is nothing, with what was asked for in words.

    `kubernetes` is the cluster's version, e.g. `1.34`; a new one moves the images of aliases.
    """

    def __init__(self, api: Api, clock: Clock, profiles: Profiles, kubernetes: str) -> None:
        self.kubernetes = kubernetes
        self.subnet_space = Subnets(api, clock)
        self.reserved = Reservations(api, clock)
        self._groups, self._images = SecurityGroups(api, clock), Images(api, clock)
        self._placement_groups, self._profiles = PlacementGroups(api, clock), profiles

    async def images(self, node_class: EC2NodeClass) -> Sequence[Image]:
        """Images, newest first."""
        terms = node_class.spec.ami_selector_terms
        found = await self._images.find(node_class, self.kubernetes)
        if not found:
            where = f" for Kubernetes {self.kubernetes}" if node_class.alias else " in this region"
            raise Unusable("AMINotFound", f"no image{where} has {images.wanted(terms)}")
        return found

    async def subnets(self, node_class: EC2NodeClass) -> Sequence[Subnet]:
        """Subnets, most free addresses first."""
        terms = node_class.spec.subnet_selector_terms
        found = await self.subnet_space.find(terms)
        if not found:
            raise Unusable("SubnetsNotFound", f"no subnet has {subnets.wanted(terms)}")
        return found

    async def security_groups(self, node_class: EC2NodeClass) -> Sequence[SecurityGroup]:
        """Security groups, by id."""
        terms = node_class.spec.security_group_selector_terms
        found = await self._groups.find(terms)
        if not found:
            raise Unusable("SecurityGroupsNotFound", f"no security group has {securitygroups.wanted(terms)}")
        return found

    async def reservations(self, node_class: EC2NodeClass) -> Sequence[CapacityReservation]:
        """Reservations, by id. None at all is right: pools can buy otherwise."""
        return await self.reserved.find(node_class.spec.capacity_reservation_selector_terms)

    async def placement_group(self, node_class: EC2NodeClass) -> PlacementGroup | None:
        """The placement group; None where none is asked for."""
        selector = node_class.spec.placement_group_selector
        if selector is None:
            return None
        found = await self._placement_groups.find(selector)
        if found is None:
            named = f"id {selector.id}" if selector.id else f"name {selector.name}"
            raise Unusable("PlacementGroupNotFound", f"no placement group that is available has the {named}")
        return found

    async def instance_profile(self, node_class: EC2NodeClass) -> str:
        """The name of the instance profile, made where the EC2NodeClass names a role."""
        return await self._profiles.ensure(node_class)
