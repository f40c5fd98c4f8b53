"""What an account needs before Kerf is installed, as one CloudFormation stack: two roles, their policies, and the queue
of interruptions with the rules that fill it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kerf.clouds.aws.iam import POLICIES, policy_document

Json = dict[str, Any]

RULES: Mapping[str, tuple[str, str]] = {
    "ScheduledChangeRule": ("aws.health", "AWS Health Event"),
    "SpotInterruptionRule": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "RebalanceRule": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceStateChangeRule": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservationInterruptionRule": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""Source and detail-type of the events that the queue gets, by the name of the rule; as Karpenter's five kinds."""
_NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
_RETENTION_S = 300
"""A message that was not read for so long is about an instance that is gone."""
MOST_CLUSTER_NAME, MOST_ROLE_NAME, MOST_QUEUE_NAME = 100, 64, 80
"""Letters of the names of clusters, roles and queues (API references of EKS, IAM and SQS, 2026-11)."""
_KERF = "Kerf-"
_HASH_LETTERS = 8


def bounded(prefix: str, cluster: str, most: int) -> str:
    """`prefix` and the name of a cluster within so many letters; a long name is cut, and a digest of it keeps it apart.

    The same for the same name: what was made by it is found again.
    """
    whole = prefix + cluster
    if len(whole) <= most:
        return whole
    return f"{whole[: most - _HASH_LETTERS - 1]}-{hashlib.sha256(cluster.encode()).hexdigest()[:_HASH_LETTERS]}"


def node_role_name(cluster: str) -> str:
    """The role of nodes where no other is named."""
    return bounded("KerfNode-", cluster, MOST_ROLE_NAME)


def queue_name(cluster: str) -> str:
    """The queue of interruptions where no other is named."""
    return bounded("", cluster, MOST_QUEUE_NAME)


def stack(namespace: str, service_account: str, cluster: str = "") -> Json:
    """The template. Its parameters have the names of the placeholders in `iam`; Kerf's pods get its role by EKS Pod
    Identity, as this service account.

    With a cluster its parameters have defaults, and the name of Kerf's role is within what IAM takes. CloudFormation
    cannot cut a text, so a template for any cluster takes only names that need no cut.
    """
    resources: Json = {"RoleOfNodes": _node_role(), "RoleOfKerf": _controller_role(cluster)}
    resources |= {f"{policy}Policy": _managed_policy(policy) for policy in POLICIES}
    resources["PodIdentity"] = {
        "Type": "AWS::EKS::PodIdentityAssociation",
        "Properties": {
            "ClusterName": {"Ref": "ClusterName"},
            "Namespace": namespace,
            "ServiceAccount": service_account,
            "RoleArn": {"Fn::GetAtt": ["RoleOfKerf", "Arn"]},
        },
    }
    # Without it the kubelet of a node is refused by the API server.
    resources["NodeAccess"] = {
        "Type": "AWS::EKS::AccessEntry",
        "Properties": {
            "ClusterName": {"Ref": "ClusterName"},
            "PrincipalArn": {"Fn::GetAtt": ["RoleOfNodes", "Arn"]},
            "Type": "EC2_LINUX",
        },
    }
    resources |= _interruption()
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Roles, policies and the interruption queue of Kerf for one EKS cluster",
        "Parameters": _parameters(cluster),
        "Resources": dict(sorted(resources.items())),
        "Outputs": {
            "RoleOfKerfArn": {"Value": {"Fn::GetAtt": ["RoleOfKerf", "Arn"]}},
            "Queue": {"Value": {"Ref": "Queue"}},
        },
    }


def _parameters(cluster: str) -> Json:
    most = MOST_CLUSTER_NAME if cluster else MOST_ROLE_NAME - len(_KERF)
    longer = f"at most {most} letters; a longer name: kerf aws cloudformation --cluster-name NAME"
    of_cluster: Json = {"AllowedValues": [cluster]} if cluster else {"ConstraintDescription": longer}
    names = {
        "ClusterName": ("Name of the EKS cluster", most, cluster),
        "NodeRole": ("Name of the role of nodes, which an EC2NodeClass names", MOST_ROLE_NAME, node_role_name(cluster)),
        "Queue": ("Name of the queue of interruptions", MOST_QUEUE_NAME, queue_name(cluster)),
    }
    found = {
        name: {"Type": "String", "Description": text, "MaxLength": most, **({"Default": default} if cluster else {})}
        for name, (text, most, default) in names.items()
    }
    found["ClusterName"] |= of_cluster
    return found


def _node_role() -> Json:
    arns = [{"Fn::Sub": f"arn:${{AWS::Partition}}:iam::aws:policy/{name}"} for name in _NODE_POLICIES]
    return _role({"Ref": "NodeRole"}, {"Fn::Sub": "ec2.${AWS::URLSuffix}"}, ("sts:AssumeRole",), arns)


def _controller_role(cluster: str) -> Json:
    actions = ("sts:AssumeRole", "sts:TagSession")
    arns = [{"Ref": f"{policy}Policy"} for policy in POLICIES]
    usual: Json = {"Fn::Sub": f"{_KERF}${{ClusterName}}"}
    short = bounded(_KERF, cluster, MOST_ROLE_NAME)
    name = usual if short == _KERF + cluster else short
    return _role(name, "pods.eks.amazonaws.com", actions, arns)


def _role(name: Json | str, service: Json | str, actions: tuple[str, ...], policies: list[Json]) -> Json:
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": name,
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "ManagedPolicyArns": policies,
        },
    }


def _managed_policy(policy: str) -> Json:
    # Keys of conditions name the cluster, and CloudFormation fills in values only: so the document is one text.
    text = json.dumps(policy_document(policy))
    name = {"Fn::Sub": f"Kerf{policy}-${{ClusterName}}"}
    properties = {"ManagedPolicyName": name, "PolicyDocument": {"Fn::Sub": text}}
    return {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}


def _interruption() -> Json:
    arn = {"Fn::GetAtt": ["InterruptionQueue", "Arn"]}
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com"]},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        # EventBridge acts for every account: without this any rule of any account could fill the queue.
        "Condition": {"ArnEquals": {"aws:SourceArn": [{"Fn::GetAtt": [name, "Arn"]} for name in RULES]}},
    }
    queue = {"QueueName": {"Ref": "Queue"}, "MessageRetentionPeriod": _RETENTION_S, "SqsManagedSseEnabled": True}
    policy = {
        "Queues": [{"Ref": "InterruptionQueue"}],
        "PolicyDocument": {"Version": "2012-10-17", "Statement": [allowed]},
    }
    rules = {
        name: {
            "Type": "AWS::Events::Rule",
            "Properties": {
                "EventPattern": {"source": [source], "detail-type": [detail]},
                "Targets": [{"Id": "Queue", "Arn": arn}],
            },
        }
        for name, (source, detail) in RULES.items()
    }
    return {
        "InterruptionQueue": {"Type": "AWS::SQS::Queue", "Properties": queue},
        "InterruptionQueuePolicy": {"Type": "AWS::SQS::QueuePolicy", "Properties": policy},
        **rules,
    }
