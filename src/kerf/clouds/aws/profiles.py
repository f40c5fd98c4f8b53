"""Instance profiles: what gives an instance the role that its EC2NodeClass names.

A profile has one role for its life: instances find a changed one late or never, and IAM does not say so. So another
role gets another profile, by name too, and the old one stays while a claim has it, and an hour longer, because a launch
may be under way that no list of claims shows yet. Profiles of a user's own (`instanceProfile`) are never touched.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kerf.clouds.aws.api import IAM, Api, ApiFailed
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.codes import exists_already, is_not_found
from kerf.clouds.aws.deleting import delete_each
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.tagging import OWNED, made_for, read_tags, tag_list
from kerf.model.constraints import REGION
from kerf.ports import Clock

PROFILE_ANNOTATION = "karpenter.k8s.aws/instance-profile-name"
"""Annotation of a NodeClaim: the profile that its instance has."""
_KEPT_S = 15 * 60
_PROTECTED_S = 3600
_ROLE_MISSING_S = 60

Object = Mapping[str, Any]


class Profiles:
    """The instance profiles of a cluster in a region."""

    def __init__(self, api: Api, clock: Clock, cluster: str, region: str) -> None:
        self._api, self._cluster, self._region = api, cluster, region
        self._checked: TimedCache[str, bool] = TimedCache(clock, _KEPT_S)
        self._protected: TimedCache[str, bool] = TimedCache(clock, _PROTECTED_S)
        self._missing: TimedCache[str, Unusable] = TimedCache(clock, _ROLE_MISSING_S)

    async def ensure(self, node_class: EC2NodeClass) -> str:
        """The name of the profile for new instances, made with its role where it is missing.

        One that Karpenter made for this EC2NodeClass and that has the role stays. Raises Unusable where the role does
        not exist; ApiFailed, Throttled. Cost: nothing for 15 minutes after it was right.
        """
        before = node_class.instance_profile
        if not node_class.spec.role:
            name = node_class.spec.instance_profile
        else:
            name = profile_name(self._cluster, self._region, node_class)
            if before != name and await self._is_right(before, node_class):
                name = before
            elif self._checked.get(name) is None:
                await self._ensure(name, node_class)
                self._checked.put(name, True)
        if before != name:
            self._protect(before)
            self._protect(name)
        return name

    async def _is_right(self, name: str, node_class: EC2NodeClass) -> bool:
        """Whether a profile was made for this EC2NodeClass and has its role."""
        key = f"{name}/{node_class.spec.role}"
        is_right = self._checked.get(key)
        if is_right is None:
            profile = await self._profile(name) if name else None
            held = profile or {}
            is_made = str(held.get("Path")).startswith(f"{self._path()}{node_class.uid}/")
            is_right = is_made and _roles(held) == [_role(node_class)]
            self._checked.put(key, is_right)
        return is_right

    def _protect(self, name: str) -> None:
        if name:
            self._protected.put(name, True)

    async def _ensure(self, name: str, node_class: EC2NodeClass) -> None:
        role = _role(node_class)
        missing = self._missing.get(role)
        if missing is not None:
            raise missing
        profile = await self._profile(name)
        if profile is None:
            profile = await self._create(name, node_class)
        held = _roles(profile)
        if held == [role]:
            return
        for other in held:
            await self._remove_role(name, other)
        await self._add_role(name, role)

    async def _profile(self, name: str) -> Object | None:
        try:
            reply = await self._api.call(IAM, "GetInstanceProfile", InstanceProfileName=name)
        except ApiFailed as error:
            if is_not_found(error):
                return None
            raise
        with reading("GetInstanceProfile"):
            profile: Object = reply["InstanceProfile"]
            _roles(profile)
        return profile

    async def _create(self, name: str, node_class: EC2NodeClass) -> Object:
        tags = {**made_for(node_class, self._cluster), REGION: self._region, OWNED: "true"}
        path = f"{self._path()}{node_class.uid}/"
        try:
            await self._api.call(IAM, "CreateInstanceProfile", InstanceProfileName=name, Path=path, Tags=tag_list(tags))
        except ApiFailed as error:
            # An earlier life made it and saw no reply.
            if not exists_already(error):
                raise
        return {}

    async def _add_role(self, name: str, role: str) -> None:
        try:
            await self._api.call(IAM, "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=role)
        except ApiFailed as error:
            # It has a role already: ours, which a request with a lost reply has added.
            if error.code == "LimitExceeded":
                return
            if not is_not_found(error) or "role" not in error.message.lower():
                raise
            missing = Unusable("RoleNotFound", f"IAM has no role {role}: correct spec.role, or create the role")
            self._missing.put(role, missing)
            raise missing from error

    async def _remove_role(self, name: str, role: str) -> None:
        try:
            await self._api.call(IAM, "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=role)
        except ApiFailed as error:
            if not is_not_found(error):
                raise

    async def collect(self, current: Iterable[str], used: Iterable[str]) -> tuple[str, ...]:
        """Delete profiles of Kerf that nothing needs; the names that went, sorted. Raises ApiFailed, Throttled.

        Karpenter's profiles lie below the same path, and a listing has no tags: each is read before it is deleted.
        `current` are the profiles in the status of all EC2NodeClasses, `used` those in the annotations of all claims.
        """
        needed = {*current, *used}
        old = [name for name in await self._owned(self._path()) if name not in needed]
        return await delete_each([name for name in old if self._protected.get(name) is None], self._delete_ours)

    async def delete_all(self, node_class: EC2NodeClass) -> tuple[str, ...]:
        """Delete those of an EC2NodeClass that goes and has no claims left; the names, sorted.

        Those that Karpenter made for it go as well: no other controller will. One that may not be deleted holds up no
        other, here and in `collect`.
        """
        return await delete_each(await self._owned(f"{self._path()}{node_class.uid}/"), self._delete)

    async def _owned(self, path: str) -> list[str]:
        """Names of profiles below a path, sorted. The path is read again: not every server heeds the prefix."""
        listed: Sequence[Object] = await self._api.pages(
            IAM, "ListInstanceProfiles", "InstanceProfiles", PathPrefix=path
        )
        with reading("ListInstanceProfiles"):
            return sorted(raw["InstanceProfileName"] for raw in listed if str(raw.get("Path")).startswith(path))

    async def _delete_ours(self, name: str) -> bool:
        """Delete it where its tags say that Kerf made it."""
        profile = await self._profile(name)
        return read_tags(profile or {}).get(OWNED) == "true" and await self._delete(name, profile)

    async def _delete(self, name: str, profile: Object | None = None) -> bool:
        held = profile or await self._profile(name) or {}
        for role in _roles(held):
            await self._remove_role(name, role)
        try:
            await self._api.call(IAM, "DeleteInstanceProfile", InstanceProfileName=name)
        except ApiFailed as error:
            if not is_not_found(error):
                raise
        self._checked.drop(name)
        self._protected.drop(name)
        return True

    def _path(self) -> str:
        return f"/karpenter/{self._region}/{self._cluster}/"


def _roles(profile: Object) -> list[str]:
    """The names of its roles; there is one at most."""
    return [each["RoleName"] for each in profile.get("Roles") or ()]


def _role(node_class: EC2NodeClass) -> str:
    """The name of its role: IAM takes no path before it, and an EC2NodeClass may have one."""
    return node_class.spec.role.rpartition("/")[2]


def profile_name(cluster: str, region: str, node_class: EC2NodeClass) -> str:
    """The name of the profile for an EC2NodeClass and its role; IAM takes 128 letters.

    A digest, so a restart in the middle finds what it made. Karpenter draws names at random and remembers them.
    """
    text = "/".join((region, cluster, node_class.uid, node_class.spec.role))
    return f"{cluster[:100]}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
