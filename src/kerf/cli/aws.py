"""`kerf aws`: what an AWS account needs before Kerf acts in it; asks no account."""

import json
import re
from typing import Any

import click
import yaml

from kerf.cli.echo import echo
from kerf.cli.exits import DONE
from kerf.clouds.aws.iam import POLICIES, filled, policy_document
from kerf.clouds.aws.stack import node_role_name, queue_name, stack

_NAMES = {
    "cluster_name": re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", re.ASCII),
    "node_role": re.compile(r"[\w+=,.@/-]{1,128}", re.ASCII),
    "queue": re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII),
    "region": re.compile(r"[a-z]{2}(-[a-z]+)+-\d", re.ASCII),
    "account": re.compile(r"\d{12}", re.ASCII),
    "partition": re.compile(r"aws(-[a-z]+)*", re.ASCII),
}
"""What AWS takes as a name of each; a quote or a brace would change the document."""


@click.group()
def aws() -> None:
    """What an AWS account needs before Kerf acts in it: policies, roles, the queue of interruptions."""


def _checked(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    name = parameter.name or ""
    if value is not None and not _NAMES[name].fullmatch(value):
        raise click.BadParameter(f"expected {_NAMES[name].pattern}, got {value[:80]!r}")
    return value


@aws.command()
@click.option("--cluster-name", required=True, callback=_checked, metavar="NAME", help="Of the EKS cluster.")
@click.option("--region", required=True, callback=_checked, help="Such as us-east-1.")
@click.option("--account", required=True, callback=_checked, help="The twelve digits of the account.")
@click.option("--partition", default="aws", show_default=True, callback=_checked, help="aws-cn, aws-us-gov, ...")
@click.option("--node-role", callback=_checked, metavar="NAME", help="Role of the nodes. [default: KerfNode-CLUSTER]")
@click.option("--queue", callback=_checked, metavar="NAME", help="Of interruptions. [default: the cluster's name]")
@click.option("--policy", type=click.Choice(POLICIES), help="One of them alone, as aws iam create-policy takes it.")
def iam(**flags: Any) -> int:
    """The IAM policies of Kerf's role as JSON, for roles that you create yourself.

    \b
    kerf aws iam --cluster-name prod --region us-east-1 --account 111122223333 --policy NodeLifecycle > policy.json
    aws iam create-policy --policy-name KerfNodeLifecycle-prod --policy-document file://policy.json
    """
    cluster = flags["cluster_name"]
    values = {
        "AWS::Partition": flags["partition"],
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
@click.option("--namespace", default="kerf-system", show_default=True, metavar="NAME", help="Where Kerf will run.")
@click.option("--service-account", default="kerf", show_default=True, metavar="NAME", help="Of Kerf's pods.")
@click.option(
    "--cluster-name",
    callback=_checked,
    metavar="NAME",
    help="Of the EKS cluster: a stack for it alone; needed for a name of more than 59 letters. [default: any]",
)
def cloudformation(namespace: str, service_account: str, cluster_name: str | None) -> int:
    """A CloudFormation stack with the roles, their policies, and the queue with its rules.

    \b
    kerf aws cloudformation > kerf.yaml
    aws cloudformation deploy --stack-name kerf-prod --template-file kerf.yaml --capabilities CAPABILITY_NAMED_IAM \\
      --parameter-overrides ClusterName=prod NodeRole=KerfNode-prod Queue=prod
    """
    # Read back from JSON: YAML would write equal parts once, and references to them.
    made = json.loads(json.dumps(stack(namespace, service_account, cluster_name or "")))
    echo(yaml.safe_dump(made, sort_keys=False, width=10_000), nl=False)
    return DONE
