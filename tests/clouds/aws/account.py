"""An account of AWS in memory, behind `Api`: it keeps what is made, filters as EC2 does, and fails when told to."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kerf.clouds.aws.api import Api, ApiFailed, Reply
from kerf.errors import CloudError

Object = dict[str, Any]
ROLE = "KarpenterNodeRole-demo"


class ManualClock:
    """A clock that stands until it is moved."""

    def __init__(self, now_s: float = 1_800_000_000) -> None:
        self.seconds = now_s

    def now_s(self) -> float:
        """See kerf.ports.Clock."""
        return self.seconds

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Nothing here waits."""
        raise AssertionError("nothing here waits")


def tags(**given: str) -> list[Object]:
    """Tags as the API has them; `__` in a key is a slash."""
    return [{"Key": key.replace("__", "/"), "Value": value} for key, value in given.items()]


class Account(Api):
    """What one region holds. `calls` are all requests so far: (operation, parameters).

    `forbidden` are operations that a policy refuses; `kept` are names of templates and profiles that it lets nobody
    delete; `hides_templates`: launches do not find theirs yet; `broken` are errors that the next call of an operation
    meets; `answers` are replies that take the place of the account's own.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Object]] = []
        self.forbidden: set[str] = set()
        self.kept: set[str] = set()
        self.hides_templates = False
        self.broken: dict[str, CloudError] = {}
        self.answers: dict[str, Object] = {}
        self.subnets: list[Object] = []
        self.groups: list[Object] = []
        self.images: list[Object] = []
        self.parameters: dict[str, str] = {}
        self.reservations: list[Object] = []
        self.placement_groups: list[Object] = []
        self.templates: dict[str, Object] = {}
        self.profiles: dict[str, Object] = {}
        self.roles = {ROLE}

    def named(self, operation: str) -> list[Object]:
        """The parameters of all calls of an operation."""
        return [parameters for name, parameters in self.calls if name == operation]

    async def call(self, service: str, operation: str, **parameters: object) -> Reply:
        """See kerf.clouds.aws.api.Api."""
        self.calls.append((operation, parameters))
        if operation in self.answers:
            return self.answers[operation]
        if operation in self.broken:
            raise self.broken.pop(operation)
        named = {parameters.get("LaunchTemplateName"), parameters.get("InstanceProfileName")}
        if operation in self.forbidden or (operation.startswith("Delete") and named & self.kept):
            code = "UnauthorizedOperation" if service == "ec2" else "AccessDenied"
            raise ApiFailed(operation, code, f"not authorized to perform: {service}:{operation}")
        reply: Reply = getattr(self, f"_{service}_{operation}")(parameters)
        return reply

    async def pages(self, service: str, operation: str, key: str, **parameters: object) -> Sequence[Any]:
        """See kerf.clouds.aws.api.Api."""
        reply = await self.call(service, operation, **parameters)
        return tuple(reply[key])

    def _ec2_DescribeSubnets(self, wanted: Object) -> Object:  # noqa: N802
        return {"Subnets": matching(self.subnets, wanted, {"subnet-id": "SubnetId"})}

    def _ec2_DescribeSecurityGroups(self, wanted: Object) -> Object:  # noqa: N802
        fields = {"group-id": "GroupId", "group-name": "GroupName"}
        return {"SecurityGroups": matching(self.groups, wanted, fields)}

    def _ec2_DescribeImages(self, wanted: Object) -> Object:  # noqa: N802
        fields = {"image-id": "ImageId", "name": "Name", "state": "State"}
        owners = wanted.get("Owners")
        found = [each for each in self.images if owners is None or each["Owner"] in owners]
        return {"Images": matching(found, wanted, fields)}

    def _ssm_GetParameter(self, wanted: Object) -> Object:  # noqa: N802
        if wanted["Name"] not in self.parameters:
            raise ApiFailed("GetParameter", "ParameterNotFound", "")
        return {"Parameter": {"Name": wanted["Name"], "Value": self.parameters[wanted["Name"]]}}

    def _ec2_DescribeCapacityReservations(self, wanted: Object) -> Object:  # noqa: N802
        ids = wanted.get("CapacityReservationIds")
        known = {each["CapacityReservationId"] for each in self.reservations}
        if ids and not set(ids) <= known:
            raise ApiFailed("DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound", "")
        found = [each for each in self.reservations if ids is None or each["CapacityReservationId"] in ids]
        fields = {"state": "State", "owner-id": "OwnerId", "instance-match-criteria": "InstanceMatchCriteria"}
        return {"CapacityReservations": matching(found, wanted, fields)}

    def _ec2_DescribePlacementGroups(self, wanted: Object) -> Object:  # noqa: N802
        names = [*wanted.get("GroupNames", ()), *wanted.get("GroupIds", ())]
        found = [each for each in self.placement_groups if {each["GroupName"], each["GroupId"]} & set(names)]
        if not found:
            raise ApiFailed("DescribePlacementGroups", "InvalidPlacementGroup.Unknown", "")
        return {"PlacementGroups": matching(found, wanted, {"state": "State"})}

    def _ec2_CreateLaunchTemplate(self, wanted: Object) -> Object:  # noqa: N802
        self._dry("CreateLaunchTemplate", wanted)
        name = wanted["LaunchTemplateName"]
        if name in self.templates:
            raise ApiFailed("CreateLaunchTemplate", "InvalidLaunchTemplateName.AlreadyExistsException", "")
        listed = wanted["TagSpecifications"][0]["Tags"]
        self.templates[name] = {"LaunchTemplateName": name, "Tags": listed, "Data": wanted["LaunchTemplateData"]}
        return {"LaunchTemplate": self.templates[name]}

    def _ec2_DescribeLaunchTemplates(self, wanted: Object) -> Object:  # noqa: N802
        return {"LaunchTemplates": matching(self.templates.values(), wanted, {})}

    def _ec2_DeleteLaunchTemplate(self, wanted: Object) -> Object:  # noqa: N802
        if wanted["LaunchTemplateName"] not in self.templates:
            raise ApiFailed("DeleteLaunchTemplate", "InvalidLaunchTemplateName.NotFoundException", "")
        return {"LaunchTemplate": self.templates.pop(wanted["LaunchTemplateName"])}

    def _ec2_CreateFleet(self, wanted: Object) -> Object:  # noqa: N802
        name = wanted["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["LaunchTemplateName"]
        if self.hides_templates or name not in self.templates:
            raise ApiFailed("CreateFleet", "InvalidLaunchTemplateName.NotFoundException", f"{name} does not exist")
        return self._dry("CreateFleet", wanted)

    def _ec2_RunInstances(self, wanted: Object) -> Object:  # noqa: N802
        return self._dry("RunInstances", wanted)

    def _dry(self, operation: str, wanted: Object) -> Object:
        if wanted.get("DryRun"):
            raise ApiFailed(operation, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        return {}

    def _iam_GetInstanceProfile(self, wanted: Object) -> Object:  # noqa: N802
        return {"InstanceProfile": self._profile("GetInstanceProfile", wanted)}

    def _profile(self, operation: str, wanted: Object) -> Object:
        name = wanted["InstanceProfileName"]
        if name not in self.profiles:
            raise ApiFailed(operation, "NoSuchEntity", f"Instance Profile {name} cannot be found.")
        return self.profiles[name]

    def _iam_CreateInstanceProfile(self, wanted: Object) -> Object:  # noqa: N802
        name = wanted["InstanceProfileName"]
        if name in self.profiles:
            raise ApiFailed("CreateInstanceProfile", "EntityAlreadyExists", "")
        self.profiles[name] = {**wanted, "Roles": []}
        return {"InstanceProfile": self.profiles[name]}

    def _iam_AddRoleToInstanceProfile(self, wanted: Object) -> Object:  # noqa: N802
        profile, role = self._profile("AddRoleToInstanceProfile", wanted), wanted["RoleName"]
        if role not in self.roles:
            message = f"The role with name {role} cannot be found."
            raise ApiFailed("AddRoleToInstanceProfile", "NoSuchEntity", message)
        if profile["Roles"]:
            raise ApiFailed("AddRoleToInstanceProfile", "LimitExceeded", "Cannot exceed quota for InstanceSessions")
        profile["Roles"] = [{"RoleName": role}]
        return {}

    def _iam_RemoveRoleFromInstanceProfile(self, wanted: Object) -> Object:  # noqa: N802
        profile = self._profile("RemoveRoleFromInstanceProfile", wanted)
        profile["Roles"] = [each for each in profile["Roles"] if each["RoleName"] != wanted["RoleName"]]
        return {}

    def _iam_DeleteInstanceProfile(self, wanted: Object) -> Object:  # noqa: N802
        if self._profile("DeleteInstanceProfile", wanted)["Roles"]:
            raise ApiFailed("DeleteInstanceProfile", "DeleteConflict", "must remove roles first")
        return self.profiles.pop(wanted["InstanceProfileName"])

    def _iam_ListInstanceProfiles(self, wanted: Object) -> Object:  # noqa: N802
        # Without heed of PathPrefix, as moto does: what is deleted must not depend on a server.
        return {"InstanceProfiles": list(self.profiles.values())}


def matching(things: Any, wanted: Object, fields: Mapping[str, str]) -> list[Object]:
    """Those that all filters fit, in their order; `fields` are the fields of filters that are no tags.

    As EC2 does: any value of a filter, with wildcards; all filters.
    """
    return [each for each in things if all(_fits(each, filter_, fields) for filter_ in wanted.get("Filters", ()))]


def _fits(thing: Object, filter_: Object, fields: Mapping[str, str]) -> bool:
    name, values = filter_["Name"], filter_["Values"]
    held = {tag["Key"]: tag["Value"] for tag in thing.get("Tags", ())}
    if name == "tag-key":
        return any(value in held for value in values)
    actual = held.get(name[4:]) if name.startswith("tag:") else thing[fields[name]]
    return actual is not None and any(fnmatchcase(str(actual), value) for value in values)
