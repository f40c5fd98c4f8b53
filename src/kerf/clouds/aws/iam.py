"""What the AWS provider may do: one table of statements, of which policies, a CloudFormation stack and a test are made.

Scoped by tags as Karpenter's six policies, so a role can only start, tag and end what carries the tags of its cluster.
A statement names the calls of the provider that need it; an action that no call has by its name is one that EC2 checks
beside the call, and says so. No line is there for later: without it a test fails. Placeholders are CloudFormation's,
such as `${AWS::Region}`, and `${ClusterName}`, `${NodeRole}` and `${Queue}`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Conditions = Mapping[str, Mapping[str, str | list[str]]]

_ARN = "arn:${AWS::Partition}"
_EC2 = f"{_ARN}:ec2:${{AWS::Region}}"
_OWNED = "kubernetes.io/cluster/${ClusterName}"
_CLUSTER = "eks:eks-cluster-name"
_POOL = "karpenter.sh/nodepool"
_NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass"

_CREATED = tuple(
    f"{_EC2}:*:{kind}/*"
    for kind in ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
)
_PROFILES = (f"{_ARN}:iam::${{AWS::AccountId}}:instance-profile/*",)

ACTIONS_TABLE = "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html"
"""Which resources and condition keys each action of EC2 is checked with."""
FLEET = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-prerequisites.html"
"""A fleet of type instant calls RunInstances, CreateTags and, for a template with a profile, PassRole in our name."""
PASS_ROLE = "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"
IAM_TABLE = (
    "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsidentityandaccessmanagementiam.html"
)
SPOT_ROLE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html"


@dataclass(frozen=True)
class Statement:
    """One statement of a policy. `serves` are the operations of the provider that need it, by the names of the API."""

    policy: str
    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    source: str
    serves: tuple[str, ...]
    conditions: Conditions = field(default_factory=dict)

    @property
    def document(self) -> Json:
        """As IAM takes it."""
        made: Json = {"Sid": self.sid, "Effect": "Allow"}
        made["Action"], made["Resource"] = list(self.actions), _one_or_all(self.resources)
        if self.conditions:
            made["Condition"] = {operator: dict(keys) for operator, keys in self.conditions.items()}
        return made


def _one_or_all(values: tuple[str, ...]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def _tagged(place: str, more: Mapping[str, str] | None = None) -> Conditions:
    """Whose `place` (RequestTag, ResourceTag) names the cluster, and some NodePool."""
    cluster = {f"aws:{place}/{_OWNED}": "owned", **(more or {})}
    return {"StringEquals": cluster, "StringLike": {f"aws:{place}/{_POOL}": "*"}}


def _profile_tagged(*places: str) -> Conditions:
    """Whose tags name the cluster, its region, and some EC2NodeClass."""
    owned = {f"aws:{place}/{_OWNED}": "owned" for place in places}
    region = {f"aws:{place}/topology.kubernetes.io/region": "${AWS::Region}" for place in places}
    named = {f"aws:{place}/{_CLUSTER}": "${ClusterName}" for place in places if place == "RequestTag"}
    return {
        "StringEquals": {**owned, **region, **named},
        "StringLike": {f"aws:{place}/{_NODE_CLASS}": "*" for place in places},
    }


_LOOKS = (
    "DescribeCapacityReservations",
    "DescribeImages",
    "DescribeInstanceStatus",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribeLaunchTemplates",
    "DescribePlacementGroups",
    "DescribeSecurityGroups",
    "DescribeSpotPriceHistory",
    "DescribeSubnets",
)
_STARTING = ("ec2:RunInstances", "ec2:CreateFleet")
_STARTED_BY = ("CreateFleet", "RunInstances")

STATEMENTS = (
    Statement(
        "NodeLifecycle",
        "UseWhatNodesAreMadeOf",
        _STARTING,
        (
            f"{_EC2}::image/*",
            f"{_EC2}::snapshot/*",
            *(f"{_EC2}:*:{kind}/*" for kind in ("security-group", "subnet", "capacity-reservation", "placement-group")),
        ),
        f"{ACTIONS_TABLE}; {FLEET}",
        _STARTED_BY,
    ),
    Statement(
        "NodeLifecycle",
        "UseLaunchTemplatesOfTheCluster",
        _STARTING,
        (f"{_EC2}:*:launch-template/*",),
        f"{ACTIONS_TABLE}; {FLEET}",
        _STARTED_BY,
        {
            "StringEquals": {f"aws:ResourceTag/{_OWNED}": "owned"},
            "StringLike": {f"aws:ResourceTag/{_NODE_CLASS}": "*"},
        },
    ),
    Statement(
        "NodeLifecycle",
        "LaunchWithTheTagsOfTheCluster",
        _STARTING,
        tuple(arn for arn in _CREATED if "launch-template" not in arn),
        f"{ACTIONS_TABLE}; {FLEET}",
        _STARTED_BY,
        _tagged("RequestTag", {f"aws:RequestTag/{_CLUSTER}": "${ClusterName}"}),
    ),
    Statement(
        "NodeLifecycle",
        "CreateLaunchTemplatesWithTheTagsOfTheCluster",
        ("ec2:CreateLaunchTemplate",),
        (f"{_EC2}:*:launch-template/*",),
        ACTIONS_TABLE,
        ("CreateLaunchTemplate",),
        {
            "StringEquals": {
                f"aws:RequestTag/{_OWNED}": "owned",
                f"aws:RequestTag/{_CLUSTER}": "${ClusterName}",
            },
            "StringLike": {f"aws:RequestTag/{_NODE_CLASS}": "*"},
        },
    ),
    Statement(
        "NodeLifecycle",
        "TagAtCreation",
        ("ec2:CreateTags",),
        _CREATED,
        f"{ACTIONS_TABLE}: tags in a creating call are checked as CreateTags; {FLEET}",
        (*_STARTED_BY, "CreateLaunchTemplate"),
        {
            "StringEquals": {
                f"aws:RequestTag/{_OWNED}": "owned",
                f"aws:RequestTag/{_CLUSTER}": "${ClusterName}",
                "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
            },
        },
    ),
    Statement(
        "NodeLifecycle",
        "EndInstancesOfTheCluster",
        ("ec2:TerminateInstances",),
        (f"{_EC2}:*:instance/*",),
        ACTIONS_TABLE,
        ("TerminateInstances",),
        _tagged("ResourceTag"),
    ),
    Statement(
        "NodeLifecycle",
        "DeleteLaunchTemplatesOfTheCluster",
        ("ec2:DeleteLaunchTemplate",),
        (f"{_EC2}:*:launch-template/*",),
        ACTIONS_TABLE,
        ("DeleteLaunchTemplate",),
        {
            "StringEquals": {f"aws:ResourceTag/{_OWNED}": "owned"},
            "StringLike": {f"aws:ResourceTag/{_NODE_CLASS}": "*"},
        },
    ),
    Statement(
        "IAMIntegration",
        "PassTheNodeRole",
        ("iam:PassRole",),
        (f"{_ARN}:iam::${{AWS::AccountId}}:role/${{NodeRole}}",),
        f"{PASS_ROLE}; {FLEET}",
        (*_STARTED_BY, "AddRoleToInstanceProfile"),
        {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
    ),
    Statement(
        "IAMIntegration",
        "CreateInstanceProfiles",
        ("iam:CreateInstanceProfile",),
        _PROFILES,
        IAM_TABLE,
        ("CreateInstanceProfile",),
        _profile_tagged("RequestTag"),
    ),
    Statement(
        "IAMIntegration",
        "TagInstanceProfiles",
        ("iam:TagInstanceProfile",),
        _PROFILES,
        f"{IAM_TABLE}: tags of CreateInstanceProfile are checked as TagInstanceProfile",
        ("CreateInstanceProfile", "TagInstanceProfile"),
        _profile_tagged("RequestTag"),
    ),
    Statement(
        "IAMIntegration",
        "ChangeInstanceProfilesOfTheCluster",
        ("iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"),
        _PROFILES,
        IAM_TABLE,
        ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"),
        _profile_tagged("ResourceTag"),
    ),
    Statement(
        "IAMIntegration",
        "CreateTheRoleOfSpot",
        ("iam:CreateServiceLinkedRole",),
        (f"{_ARN}:iam::*:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot",),
        f"{SPOT_ROLE}: EC2 makes it with the first spot request of an account, in our name",
        ("CreateFleet",),
        {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
    ),
    Statement(
        "EKSIntegration",
        "ReadTheCluster",
        ("eks:DescribeCluster",),
        (f"{_ARN}:eks:${{AWS::Region}}:${{AWS::AccountId}}:cluster/${{ClusterName}}",),
        "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
        ("DescribeCluster",),
    ),
    Statement(
        "Interruption",
        "ReadTheQueue",
        ("sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage"),
        (f"{_ARN}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:${{Queue}}",),
        "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html",
        ("GetQueueUrl", "ReceiveMessage", "DeleteMessage"),
    ),
    Statement(
        "ResourceDiscovery",
        "LookAroundInTheRegion",
        tuple(f"ec2:{name}" for name in _LOOKS),
        ("*",),
        f"{ACTIONS_TABLE}: these take no resource",
        _LOOKS,
        {"StringEquals": {"aws:RequestedRegion": "${AWS::Region}"}},
    ),
    Statement(
        "ResourceDiscovery",
        "ReadPublicParameters",
        ("ssm:GetParameter",),
        (f"{_ARN}:ssm:${{AWS::Region}}::parameter/aws/service/*",),
        "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html",
        ("GetParameter",),
    ),
    Statement(
        "ResourceDiscovery",
        "ReadPrices",
        ("pricing:GetProducts",),
        ("*",),
        "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awspricelist.html",
        ("GetProducts",),
    ),
    Statement(
        "ResourceDiscovery",
        "ReadInstanceProfiles",
        ("iam:GetInstanceProfile", "iam:ListInstanceProfiles"),
        (f"{_ARN}:iam::${{AWS::AccountId}}:instance-profile/*",),
        IAM_TABLE,
        ("GetInstanceProfile", "ListInstanceProfiles"),
    ),
)
POLICIES = tuple(dict.fromkeys(statement.policy for statement in STATEMENTS))
"""In the order of the table."""


def policy_document(policy: str) -> Json:
    """A policy with its placeholders. At most 6,144 characters without spaces, IAM's limit of a managed policy."""
    return {
        "Version": "2012-10-17",
        "Statement": [statement.document for statement in STATEMENTS if statement.policy == policy],
    }


def filled(document: Json, values: Mapping[str, str]) -> Json:
    """The document with placeholders replaced, e.g. `{"AWS::Region": "us-east-1"}`; one without a value stays."""
    text = json.dumps(document)
    for name in sorted(values):
        text = text.replace(f"${{{name}}}", values[name])
    made: Json = json.loads(text)
    return made
