"""`kerf aws`: what an AWS account needs before Kerf acts in it; asks no account."""

import json
import re
from typing import Any

import click

from kerf.cli.echo import echo
from kerf.cli.exits import DONE
from kerf.clouds.aws.iam import POLICIES, filled, policy_document
from kerf.clouds.aws.partitions import AWS, partition_of
from kerf.clouds.aws.stack import node_role_name, queue_name, stack
from kerf.errors import brief

_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAMES = {
    "cluster_name": (r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", "1 to 100 letters, digits, - and _, not - or _ first"),
    "node_role": (r"([\w+=,.@-]+/)*[\w+=,.@-]{1,64}", "1 to 64 letters, digits and +=,.@-_, its path before it"),
    "queue": (r"[A-Za-z0-9_-]{1,80}", "1 to 80 letters, digits, - and _"),
    "region": (r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}", "a name such as us-east-1"),
    "account": (r"\d{12}", "twelve digits"),
    "partition": (r"aws(-[a-z]+)*", "aws, or a name such as aws-cn"),
    "namespace": (rf"(?=.{{1,63}}$){_LABEL}", "1 to 63 of a-z, 0-9 and -, with no - at an end"),
    "service_account": (rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*", "1 to 253 of a-z, 0-9, - and ., as Kubernetes takes"),
}
"""What AWS and Kubernetes take as a name of each, and that in words; a quote or a brace would change the document."""


@click.group()
def aws() -> None:
    """Print what Kerf needs in an AWS account: policies, roles, the queue of interruptions."""


def _checked(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    pattern, words = _NAMES[parameter.name or ""]
    if value is not None and not re.fullmatch(pattern, value, re.ASCII):
        raise click.BadParameter(f"expected {words}, got {brief(value)}")
    return value


def _partition(region: str, given: str | None) -> str:
    """That of the region, which a partition that is given may not contradict. Raises click.BadParameter."""
    named = partition_of(region)
    if given and named and given != named:
        raise click.BadParameter(
            f"expected {named}, the partition of {region}, got {given}", param_hint="'--partition'"
        )
    return given or named or AWS


@aws.command()
@click.option("--cluster-name", required=True, callback=_checked, metavar="NAME", help="Name of the EKS cluster.")
@click.option("--region", required=True, callback=_checked, help="Region, such as us-east-1.")
@click.option("--account", required=True, callback=_checked, help="The twelve digits of the account.")
@click.option("--partition", callback=_checked, help="Partition: aws-cn, aws-us-gov, ... [default: that of the region]")
@click.option("--node-role", callback=_checked, metavar="NAME", help="Role of the nodes. [default: KerfNode-CLUSTER]")
@click.option(
    "--queue", callback=_checked, metavar="NAME", help="Queue of interruptions. [default: the cluster's name]"
)
@click.option(
    "--policy", type=click.Choice(POLICIES), help="Print only this policy, as aws iam create-policy takes it."
)
def iam(**flags: Any) -> int:
    """Print the IAM policies of Kerf's role as JSON, for roles that you create yourself.

    \b
    kerf aws iam --cluster-name prod --region us-east-1 --account 111122223333 --policy NodeLifecycle > policy.json
    aws iam create-policy --policy-name KerfNodeLifecycle-prod --policy-document file://policy.json
    """
    cluster = flags["cluster_name"]
    values = {
        "AWS::Partition": _partition(flags["region"], flags["partition"]),
        "AWS::Region": flags["region"],
        "AWS::AccountId": flags["account"],
        "ClusterName": cluster,
        "NodeRole": flags["node_role"] or node_role_name(cluster),
        "Queue": flags["queue"] or queue_name(cluster),
    }
    made = {policy: filled(policy_document(policy), values) for policy in POLICIES}
    echo(json.dumps(made[flags["policy"]] if flags["policy"] else made, indent=2))
    return DONE


@aws.command()
@click.option(
    "--namespace",
    default="kerf-system",
    show_default=True,
    callback=_checked,
    metavar="NAME",
    help="Where Kerf will run.",
)
@click.option(
    "--service-account",
    default="kerf",
    show_default=True,
    callback=_checked,
    metavar="NAME",
    help="Service account of Kerf's pods.",
)
@click.option(
    "--cluster-name",
    callback=_checked,
    metavar="NAME",
    help="Make the stack for this EKS cluster only. Needed if the name has more than 59 letters. [default: any]",
)
def cloudformation(namespace: str, service_account: str, cluster_name: str | None) -> int:
    """Print a CloudFormation stack with roles, policies and the queue.

    \b
    kerf aws cloudformation > kerf.yaml
    aws cloudformation deploy --stack-name kerf-prod --template-file kerf.yaml --capabilities CAPABILITY_NAMED_IAM \\
      --parameter-overrides ClusterName=prod NodeRole=KerfNode-prod Queue=prod
    """
    # Not above: help and completion do not wait for it.
    import yaml

    # Read back from JSON: YAML would write equal parts once, and references to them.
    made = json.loads(json.dumps(stack(namespace, service_account, cluster_name or "")))
    echo(yaml.safe_dump(made, sort_keys=False, width=10_000), nl=False)
    return DONE
