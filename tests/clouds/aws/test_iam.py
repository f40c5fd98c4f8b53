"""Policies of the AWS provider: scoped to one cluster, as large as IAM takes them, each statement with its reason."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.clouds.aws.iam import POLICIES, STATEMENTS, filled, policy_document
from kerf.clouds.aws.stack import RULES
from tests.cli.program import kerf

SOURCE = Path(__file__).parents[3] / "src" / "kerf" / "clouds" / "aws"
MOST_CHARACTERS = 6144
"""Of a managed policy, without white space (IAM and AWS STS quotas, 2026-11)."""
MOST_ATTACHED = 10
"""Managed policies of a role, unless the quota was raised (same page)."""
VALUES = {
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "us-gov-west-1",
    "AWS::AccountId": "111122223333",
    "ClusterName": "c" * 100,
    "NodeRole": "r" * 64,
    "Queue": "q" * 80,
}
ASKED = ("--cluster-name", "prod", "--region", "us-east-1", "--account", "111122223333")
READS = ("ec2:Describe", "iam:Get", "iam:List", "eks:Describe", "ssm:Get", "pricing:Get", "sqs:")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_is_as_small_as_iam_takes_it(policy: str) -> None:
    """With the longest names that AWS allows."""
    text = json.dumps(filled(policy_document(policy), VALUES), separators=(",", ":"))

    assert "${" not in text
    assert MOST_CHARACTERS >= len(text)
    assert MOST_ATTACHED >= len(POLICIES)


def test_whatever_changes_something_is_bound_to_the_cluster() -> None:
    """By a tag with its name, by the name of the node role, or by what the cluster's launch templates name."""
    free = [
        statement.sid
        for statement in STATEMENTS
        if not all(action.startswith(READS) for action in statement.actions)
        and "${ClusterName}" not in json.dumps(statement.document)
        and "${NodeRole}" not in json.dumps(statement.document)
    ]

    # Images, subnets and groups belong to no cluster; the role of spot is the account's, and can do no harm.
    assert ["UseWhatNodesAreMadeOf", "CreateTheRoleOfSpot"] == free


def test_no_statement_reads_or_changes_everything() -> None:
    """Resource `*` is for actions that take no resource."""
    for statement in STATEMENTS:
        if statement.resources == ("*",):
            assert all(action.startswith(READS) for action in statement.actions)


def test_statements_have_names_of_their_own_and_a_source() -> None:
    """IAM takes no two of one name; a reviewer looks the reasons up."""
    assert len(STATEMENTS) == len({statement.sid for statement in STATEMENTS})
    assert [] == [each.sid for each in STATEMENTS if not each.source.startswith("https://docs.aws.amazon.com/")]
    assert [] == [each.sid for each in STATEMENTS if not each.sid.isalnum() or not each.serves]


def test_every_call_that_the_code_makes_is_granted() -> None:
    """By its name in the API; calls are written with their service before it."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py")))
    made = set(re.findall(r'\b(?:EC2|SSM|IAM|EKS|SQS|PRICING),\s*"([A-Z][A-Za-z]+)"', text))

    assert "CreateLaunchTemplate" in made
    assert set() == made - {name for statement in STATEMENTS for name in statement.serves}


def test_the_documents_are_printed_for_a_cluster() -> None:
    """All of them by name, or one alone as `aws iam create-policy` takes it."""
    made = kerf("aws", "iam", *ASKED).data
    one = kerf("aws", "iam", *ASKED, "--policy", "EKSIntegration").data

    assert list(POLICIES) == list(made)
    assert made["EKSIntegration"] == one
    assert "arn:aws:eks:us-east-1:111122223333:cluster/prod" == one["Statement"][0]["Resource"]
    assert "role/KerfNode-prod" in json.dumps(made["IAMIntegration"])


@pytest.mark.parametrize("name", ['x"}', "${x}", "", "a b", "x" * 101])
def test_a_name_that_aws_does_not_take_is_refused(name: str) -> None:
    """It would change the document."""
    done = kerf("aws", "iam", "--cluster-name", name, *ASKED[2:])

    assert (2, "") == (done.returncode, done.stdout)
    assert "--cluster-name" in done.stderr


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("us-east-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("eusc-de-east-1", "aws-eusc"),
        ("us-isob-east-1", "aws-iso-b"),
        ("xy-new-1", "aws"),
    ],
)
def test_arns_are_of_the_partition_of_the_region(region: str, partition: str) -> None:
    """A policy with another one grants nothing, and nothing says so."""
    asked = ("aws", "iam", "--cluster-name", "prod", "--region", region, "--account", "111122223333")

    assert {partition} == set(re.findall(r"arn:([a-z-]+):", kerf(*asked).stdout))
    assert kerf(*asked).stdout == kerf(*asked, "--partition", partition).stdout


def test_a_partition_that_is_not_the_regions_is_refused() -> None:
    """A region of which nothing is known may be of any."""
    asked = ("aws", "iam", "--cluster-name", "prod", "--account", "111122223333", "--partition", "aws-cn")
    done = kerf(*asked, "--region", "us-east-1")

    assert (2, "") == (done.returncode, done.stdout)
    assert "--partition': expected aws, the partition of us-east-1, got aws-cn" in done.stderr
    assert "arn:aws-cn:" in kerf(*asked, "--region", "xy-new-1").stdout


BAD_FLAGS = {
    "--cluster-name": ("", "a b", "-a", "a" * 101),
    "--namespace": ("", "x y", "Kerf", "a.b", "-a", "a-", "a" * 64, "a\n"),
    "--service-account": ("", "x y", "Kerf", "a..b", ".a", "a" * 254),
}
BAD_IAM_FLAGS = {
    "--region": ("", "moon", "us-east", "US-EAST-1"),
    "--account": ("", "1", "1" * 13, "a" * 12),
    "--partition": ("", "gcp", "aws:cn"),
    "--node-role": ("", "/a", "a//b", "a" * 65, "a b", "arn:aws:iam::111122223333:role/a"),
    "--queue": ("", "a.fifo", "a" * 81),
}


@pytest.mark.parametrize(
    ("command", "flag", "value"),
    [("cloudformation", flag, value) for flag, values in BAD_FLAGS.items() for value in values]
    + [("iam", flag, value) for flag, values in BAD_IAM_FLAGS.items() for value in values],
)
def test_each_flag_takes_only_what_its_owner_takes(command: str, flag: str, value: str) -> None:
    """What AWS or Kubernetes refuses later is refused before anything is printed."""
    done = kerf("aws", command, *(ASKED if command == "iam" else ()), flag, value)

    assert (2, "") == (done.returncode, done.stdout)
    assert f"'{flag}': expected " in done.stderr


def test_names_at_their_limits_are_taken() -> None:
    """Of a namespace, a service account, and a role with a path."""
    account = ".".join(["a" * 63] * 3 + ["b" * 61])
    made = the_stack("--service-account", account)["Resources"]["PodIdentity"]["Properties"]

    assert account == made["ServiceAccount"]
    assert 0 == kerf("aws", "cloudformation", "--namespace", "n" * 63).returncode
    assert "role/team/nodes/r" in kerf("aws", "iam", *ASKED, "--node-role", "team/nodes/r").stdout


def the_stack(*flags: str) -> Any:
    """The template as it is printed."""
    return yaml.safe_load(kerf("aws", "cloudformation", "--namespace", "kube-system", *flags).stdout)


def test_the_stack_has_every_policy_and_every_rule() -> None:
    """Each policy is attached to Kerf's role, each rule fills the queue, and pods get the role."""
    resources = the_stack()["Resources"]
    attached = resources["RoleOfKerf"]["Properties"]["ManagedPolicyArns"]

    assert [f"{policy}Policy" for policy in POLICIES] == [each["Ref"] for each in attached]
    assert set(RULES) < set(resources)
    assert "kube-system" == resources["PodIdentity"]["Properties"]["Namespace"]
    for policy in POLICIES:
        text = resources[f"{policy}Policy"]["Properties"]["PolicyDocument"]["Fn::Sub"]
        assert policy_document(policy) == json.loads(text)


def test_only_our_rules_fill_the_queue() -> None:
    """EventBridge sends for every account; a rule of another one must not end our nodes."""
    resources = the_stack()["Resources"]
    (statement,) = resources["InterruptionQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    allowed = statement["Condition"]["ArnEquals"]["aws:SourceArn"]

    assert [{"Fn::GetAtt": [name, "Arn"]} for name in RULES] == allowed
    assert set(RULES) == {name for name, each in resources.items() if each["Type"] == "AWS::Events::Rule"}


LONG = "c" * 100


@pytest.mark.parametrize("cluster", ["prod", "c" * 59, "c" * 60, LONG, LONG[:-1] + "d"])
def test_names_of_a_stack_are_within_what_aws_takes(cluster: str) -> None:
    """Roles of 64 letters, queues of 80, policies of 128; a short name stays whole, as in stacks that are there."""
    made = the_stack("--cluster-name", cluster)
    roles, given = made["Resources"]["RoleOfKerf"]["Properties"]["RoleName"], made["Parameters"]
    role = roles["Fn::Sub"].replace("${ClusterName}", cluster) if isinstance(roles, dict) else roles
    names = [each["Properties"]["ManagedPolicyName"]["Fn::Sub"] for each in made["Resources"].values()
             if each["Type"] == "AWS::IAM::ManagedPolicy"]  # fmt: skip

    assert (len(cluster) <= 59) == (role == f"Kerf-{cluster}")
    assert 64 >= max(len(role), len(given["NodeRole"]["Default"]))
    assert 80 >= len(given["Queue"]["Default"])
    assert 128 >= max(len(name.replace("${ClusterName}", cluster)) for name in names)
    assert (cluster, [cluster]) == (given["ClusterName"]["Default"], given["ClusterName"]["AllowedValues"])
    assert made == the_stack("--cluster-name", cluster)


def test_two_long_names_share_no_role() -> None:
    """They differ in their last letter alone; the policies for roles that a user makes have the same names."""
    stacks = (the_stack("--cluster-name", name) for name in (LONG, LONG[:-1] + "d"))
    one, other = (each["Parameters"]["NodeRole"]["Default"] for each in stacks)
    policy = kerf("aws", "iam", "--cluster-name", LONG, *ASKED[2:], "--policy", "IAMIntegration").stdout

    assert one != other
    assert f"role/{one}" in policy


def test_a_stack_for_any_cluster_takes_names_that_need_no_cut() -> None:
    """CloudFormation cannot cut a text, and refuses a longer name before it makes anything."""
    given = the_stack()["Parameters"]

    assert 59 == given["ClusterName"]["MaxLength"]
    assert "kerf aws cloudformation --cluster-name NAME" in given["ClusterName"]["ConstraintDescription"]
    assert [64, 80] == [given[name]["MaxLength"] for name in ("NodeRole", "Queue")]


@pytest.mark.parametrize("flags", [(), ("--cluster-name", LONG)])
def test_cloudformation_takes_the_stack(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """As far as its own linter can tell."""
    path = tmp_path / "kerf.yaml"
    path.write_text(kerf("aws", "cloudformation", *flags).stdout, encoding="utf-8")
    linter = [str(Path(sys.executable).with_name("cfn-lint")), "--regions", "us-east-1", "--", str(path)]
    done = subprocess.run(linter, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stdout)
