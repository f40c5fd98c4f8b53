"""Launch templates: one for each image and each way to start it, named by a digest of their content.

The name makes it idempotent: the same content is the same template, whichever life of Kerf made it. The end is what is
hard: an EC2NodeClass leaves templates behind with every change, and a region holds 5,000 of them (EC2 user guide,
2026-11). One that no launch has used for a while goes, and only if its tags say that Kerf made it for this cluster.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.codes import exists_already, is_not_found
from kerf.clouds.aws.deleting import delete_each
from kerf.clouds.aws.images import image_for
from kerf.clouds.aws.nodeclass.model import CUSTOM, NODE_CLASS_LABEL, EC2NodeClass
from kerf.clouds.aws.nodeclass.status import CapacityReservation, Image, Resolved
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import filter_of
from kerf.clouds.aws.tagging import EKS_CLUSTER, OWNED, made_for, read_tags, tag_list
from kerf.clouds.aws.templatedata import TemplateFacts, template_data
from kerf.clouds.aws.userdata.bottlerocket import image_version
from kerf.clouds.aws.userdata.facts import ClusterFacts, NodeFacts, node_kubelet, node_labels, node_taints
from kerf.clouds.aws.userdata.render import render
from kerf.model.constraints import CAPACITY_TYPE, NODE_POOL, Requirements, Taint
from kerf.model.instancetypes import ON_DEMAND
from kerf.ports import Clock

PREFIX = "karpenter.k8s.aws/"
"""Begins the names, as Karpenter's: its policies allow templates by their tags, and people look for this name."""
_UNUSED_S = 600
"""A template that no launch has asked for goes after ten minutes: a launch ends before, and a retry makes it again."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What a template has to know of an instance type: its labels as requirements, pods, EFA devices, reservation."""

    instance_type: str
    requirements: Requirements
    max_pods: int
    efa_count: int = 0
    reservation: CapacityReservation | None = None


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """What a template has to know of a claim.

    `labels` and taints are the claim's, labels without those of one instance. `tags` are those of its instance that all
    launches of the template share, with `karpenter.sh/nodepool`, without which Karpenter's policies forbid the call;
    none has a claim's name or uid in it, or each claim would have a template of its own.
    """

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    capacity_type: str = ON_DEMAND
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    needs_efa: bool = False
    needs_enclave: bool = False
    tenancy: str = "default"
    partition: int = 0


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """A template that exists, and the types, in their order, that are to be launched with it."""

    name: str
    image: Image
    instance_types: tuple[str, ...]
    reservation_id: str = ""


@dataclass(frozen=True, slots=True)
class PlannedTemplate:
    """A template as it would be made; `tags` are its own."""

    name: str
    data: Object
    tags: Mapping[str, str]
    template: LaunchTemplate

    def request(self) -> Object:
        """The parameters of CreateLaunchTemplate, for a dry run too."""
        return {
            "LaunchTemplateName": self.name,
            "LaunchTemplateData": self.data,
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tag_list(self.tags)}],
        }


class Templates:
    """The launch templates of a cluster."""

    def __init__(self, api: Api, clock: Clock, cluster: ClusterFacts) -> None:
        self._api, self._clock, self._cluster = api, clock, cluster
        self._used_s: dict[str, float] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def ensure(
        self, node_class: EC2NodeClass, resolved: Resolved, claim: ClaimFacts, machines: Iterable[MachineFacts]
    ) -> tuple[LaunchTemplate, ...]:
        """The templates with which these types can be launched, made where they are missing, by their first type.

        A type that no image runs on is in none. Raises Unusable where that is so of all, and for what is wrong with
        user data; ApiFailed, Throttled. Cost: one call for each template that this life has not seen.
        """
        planned = self.planned(node_class, resolved, claim, machines)
        for each in planned:
            # A burst of claims asks for one template at once: the first makes it, the others wait for that.
            async with self._making.setdefault(each.name, asyncio.Lock()):
                if each.name not in self._used_s:
                    await self._create(each)
                self._used_s[each.name] = self._clock.now_s()
        return tuple(each.template for each in planned)

    def planned(
        self, node_class: EC2NodeClass, resolved: Resolved, claim: ClaimFacts, machines: Iterable[MachineFacts]
    ) -> tuple[PlannedTemplate, ...]:
        """What `ensure` would make. Raises Unusable."""
        groups: dict[tuple[Image, int, int, CapacityReservation | None], list[str]] = {}
        names = []
        for machine in machines:
            names.append(machine.instance_type)
            image = image_for(resolved.images, machine.requirements)
            if image is not None:
                efa_count = machine.efa_count if claim.needs_efa else 0
                key = image, machine.max_pods, efa_count, machine.reservation
                groups.setdefault(key, []).append(machine.instance_type)
        if not groups:
            raise Unusable("AMINotFound", f"no image of {node_class.name} runs on {', '.join(names[:5]) or 'nothing'}")
        return tuple(self._plan(node_class, resolved, claim, key, tuple(types)) for key, types in groups.items())

    def _plan(
        self,
        node_class: EC2NodeClass,
        resolved: Resolved,
        claim: ClaimFacts,
        key: tuple[Image, int, int, CapacityReservation | None],
        types: tuple[str, ...],
    ) -> PlannedTemplate:
        image, max_pods, efa_count, reservation = key
        # Karpenter's policies allow only launch templates that name their pool.
        pool = {NODE_POOL: claim.labels[NODE_POOL]} if NODE_POOL in claim.labels else {}
        tags = {**made_for(node_class, self._cluster.name), **pool, **claim.tags}
        facts = TemplateFacts(
            image_id=image.id,
            user_data=render(node_class.family, self._node(node_class, claim, image, max_pods)),
            capacity_type=claim.capacity_type,
            efa_count=efa_count,
            reservation=reservation,
            tenancy=claim.tenancy,
            partition=claim.partition,
            needs_enclave=claim.needs_enclave,
            is_ipv6=self._cluster.is_ipv6,
            region=self._cluster.region,
            tags=tags,
        )
        data = template_data(node_class, resolved, facts)
        name = template_name(self._cluster.name, node_class.name, data)
        template = LaunchTemplate(name, image, types, reservation.id if reservation else "")
        return PlannedTemplate(name, data, {**tags, OWNED: "true"}, template)

    def _node(self, node_class: EC2NodeClass, claim: ClaimFacts, image: Image, max_pods: int) -> NodeFacts:
        labels = {**claim.labels, CAPACITY_TYPE: claim.capacity_type}
        alias = node_class.alias
        return NodeFacts(
            cluster=self._cluster,
            kubelet=node_kubelet(node_class.spec.kubelet, max_pods, self._cluster.dns_ip),
            labels=node_labels(labels, is_custom=node_class.family == CUSTOM),
            taints=node_taints(claim.taints, claim.startup_taints),
            custom=node_class.spec.user_data,
            is_raid0=node_class.is_raid0,
            image_version=image_version(alias[1] if alias else "", image.name),
        )

    async def _create(self, planned: PlannedTemplate) -> None:
        try:
            await self._api.call(EC2, "CreateLaunchTemplate", **planned.request())
        except ApiFailed as error:
            # Its name is its content, so another caller made this one.
            if not exists_already(error):
                raise

    def forget(self, name: str) -> None:
        """A launch was refused because the template is gone: make it again next time."""
        self._used_s.pop(name, None)

    async def collect(self) -> tuple[str, ...]:
        """Delete what no launch has used for ten minutes; the names that went, sorted. Raises ApiFailed, Throttled.

        A template that this life has never seen is as if used now: another replica may have just made it, or an
        earlier life has left it.
        """
        now_s = self._clock.now_s()
        found = await self._owned(())
        old = [name for name in found if now_s - self._used_s.setdefault(name, now_s) >= _UNUSED_S]
        self._used_s = {name: used_s for name, used_s in self._used_s.items() if name in found}

        async def delete(name: str) -> bool:
            # A launch may have asked for it while another one was deleted.
            return now_s - self._used_s.get(name, now_s) >= _UNUSED_S and await self._delete(name)

        return await delete_each(old, delete)

    async def delete_all(self, node_class: EC2NodeClass) -> tuple[str, ...]:
        """Delete those of an EC2NodeClass that goes; the names, sorted. Raises ApiFailed, Throttled.

        One that may not be deleted holds up no other, here and in `collect`.
        """
        return await delete_each(await self._owned(((NODE_CLASS_LABEL, node_class.name),)), self._delete)

    async def _owned(self, tags: Sequence[tuple[str, str]]) -> list[str]:
        """Names of templates that Kerf made for this cluster, sorted; by their own tags, should a filter be ignored."""
        wanted = [(EKS_CLUSTER, self._cluster.name), (OWNED, "true"), *tags]
        filters = [filter_of(f"tag:{key}", [value]) for key, value in wanted]
        listed = await self._api.pages(EC2, "DescribeLaunchTemplates", "LaunchTemplates", Filters=filters)
        with reading("DescribeLaunchTemplates"):
            held = [(raw["LaunchTemplateName"], read_tags(raw)) for raw in listed]
        return sorted(name for name, each in held if all(each.get(key) == value for key, value in wanted))

    async def _delete(self, name: str) -> bool:
        try:
            await self._api.call(EC2, "DeleteLaunchTemplate", LaunchTemplateName=name)
        except ApiFailed as error:
            if not is_not_found(error):
                raise
        self._used_s.pop(name, None)
        if (making := self._making.get(name)) is not None and not making.locked():
            del self._making[name]
        return True


def template_name(cluster: str, node_class: str, data: Object) -> str:
    """The name of a template with this content. Two clusters, and two EC2NodeClasses, never share one."""
    text = json.dumps([cluster, node_class, data], sort_keys=True, separators=(",", ":"))
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:32]
