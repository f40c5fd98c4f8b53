"""The guide for EKS and its examples: what they show of an EC2NodeClass is what the provider writes, and every command
of AWS, Helm and kubectl that the pages name has the form that its program takes."""

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore import xform_name

from kerf.clouds.aws.discovery import AwsDiscovery
from kerf.clouds.aws.dryruns import DryRuns
from kerf.clouds.aws.iam import POLICIES
from kerf.clouds.aws.nodeclass.reconcile import NodeClassStatus
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.stack import stack
from kerf.clouds.aws.templates import Templates
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.model.times import instant_s
from tests.cli.program import kerf
from tests.clouds.aws.account import Account, ManualClock
from tests.docs.test_documents_run import ROOT

Object = dict[str, Any]
EXAMPLES = ROOT / "examples"
NOW = "2026-11-25T09:00:00Z"


def documents(path: Path) -> list[Object]:
    """The objects of a file."""
    return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader))


def node_class(path: Path) -> Object:
    """The EC2NodeClass of a file."""
    (found,) = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each["kind"] == "EC2NodeClass"]
    made: Object = found
    return made


def account(*, tagged: bool) -> Account:
    """What the guide has made by then; without the tags of the subnets where it was not followed."""
    made = Account()
    discovery = [{"Key": "karpenter.sh/discovery", "Value": "prod"}]
    made.subnets = [
        {
            "SubnetId": f"subnet-{letter}",
            "AvailabilityZone": f"us-east-1{letter}",
            "AvailabilityZoneId": f"use1-az{number}",
            "AvailableIpAddressCount": 250,
            "Tags": discovery if tagged else [],
        }
        for number, letter in enumerate("ab", 1)
    ]
    made.groups = [
        {
            "GroupId": "sg-1",
            "GroupName": "eks-cluster-sg-prod",
            "Tags": discovery,
        }
    ]
    for number, (folder, sort) in enumerate(
        (("x86_64", "standard"), ("x86_64", "nvidia"), ("arm64", "standard"), ("arm64", "nvidia"))
    ):
        path = f"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/{folder}/{sort}/recommended/image_id"
        image = {"ImageId": f"ami-{number}", "Name": f"amazon-eks-node-al2023-{folder}-{sort}-1.34-v20261120"}
        made.parameters[path] = image["ImageId"]
        made.images.append(
            {
                **image,
                "Architecture": folder,
                "State": "available",
                "CreationDate": "2026-11-20T00:00:00.000Z",
                "Owner": "amazon",
            }
        )
    made.roles = {"KerfNode-prod"}
    return made


def reconciled(raw: Object, held: Account, service_cidr: str = "10.100.0.0/16") -> Object:
    """The status that the provider writes on an EC2NodeClass, at the instant of the example."""
    clock, cluster = ManualClock(instant_s(NOW)), ClusterFacts("prod", "https://prod", "Y2E=", service_cidr)
    profiles, templates = Profiles(held, clock, "prod", "us-east-1"), Templates(held, clock, cluster)
    discovery = AwsDiscovery(held, clock, profiles, "1.34")
    status = NodeClassStatus(discovery, DryRuns(held, clock, templates, "prod"), clock)
    return asyncio.run(status.reconcile({**raw, "status": {}})).status


@pytest.mark.parametrize("name", ["ready", "untagged", "no-plugin"])
def test_an_example_shows_what_the_provider_writes(name: str) -> None:
    """The spec is that of the guide; the status is what an account with and without the tags gives."""
    raw = node_class(EXAMPLES / "eks-running" / f"{name}.yaml")

    assert node_class(EXAMPLES / "eks" / "nodeclass.yaml")["spec"] == raw["spec"]
    assert reconciled(raw, account(tagged=name != "untagged")) == raw["status"]


@pytest.mark.parametrize("name", ["ready", "untagged", "no-plugin"])
def test_pool_and_pod_of_an_example_are_those_of_the_guide(name: str) -> None:
    """What the cluster adds is left out: identity, node and status."""
    running = {each["kind"]: each for each in documents(EXAMPLES / "eks-running" / f"{name}.yaml")}
    (pool,), (pod,) = (documents(EXAMPLES / "eks" / f"{each}.yaml") for each in ("nodepool", "pod"))

    assert pool["spec"] == running["NodePool"]["spec"]
    assert pod["spec"] == {key: value for key, value in running["Pod"]["spec"].items() if key != "nodeName"}


# Commands of the guide.


def commands(page: Path) -> list[str]:
    """Each command of a page's sh blocks and of its code spans, as one line; parts of a pipe are commands."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`((?:aws|helm|kubectl) [^`]+)`", text)
    return [part.strip() for line in lines for part in line.split(" | ")]


PAGES = [ROOT / "docs" / "guides" / "eks.md", ROOT / "docs" / "reference" / "aws-messages.md"]
ALL = sorted({command for page in PAGES for command in commands(page)})
KNOWN = ("aws", "docker", "done", "for", "helm", "journalctl", "kerf", "kubectl")
OWN = {("cloudformation", "deploy"), ("configure", "list-profiles"), ("eks", "wait"), ("ecr", "get-login-password")}
"""Commands of the AWS CLI that are no operation of an API."""
GLOBAL = {"--region", "--query", "--output"}


def test_no_command_is_of_a_program_that_no_test_looks_at() -> None:
    """By its first word."""
    assert {command.split()[0] for command in ALL} <= set(KNOWN)


@pytest.mark.parametrize("command", [each for each in ALL if each.startswith("aws ")])
def test_the_aws_cli_has_the_command(command: str) -> None:
    """The operation, its flags and those that it needs: the CLI makes both from the models that boto3 has too."""
    service, name, *rest = shlex.split(command)[1:]
    given = {word for word in rest if word.startswith("--")}
    if (service, name) in OWN:
        return
    model = botocore.session.get_session().get_service_model(service)
    (operation,) = [each for each in model.operation_names if xform_name(each, "-") == name]
    shape = model.operation_model(operation).input_shape
    flags = {f"--{xform_name(each, '-')}" for each in shape.members} if shape else set()
    needed = {f"--{xform_name(each, '-')}" for each in shape.required_members} if shape else set()
    # In the text a command is named, and not typed in.
    is_whole = " --" in command or not needed

    assert given - GLOBAL <= flags
    assert not is_whole or needed <= given


@pytest.mark.parametrize("command", [each for each in ALL if each.startswith("kerf ")])
def test_kerf_takes_the_command(command: str) -> None:
    """Those that ask no cluster, as they stand, each word of a loop in turn; of the others the flags."""
    words = shlex.split(command.partition(" > ")[0].replace("$policy", "NodeLifecycle"))[1:]
    if words[0] in ("aws", "manifests", "--version"):
        assert 0 == kerf(*words).returncode
    else:
        assert 0 == kerf(words[0], "--help").returncode
        assert [] == [word for word in words if word.startswith("-")]


def test_the_loop_names_all_policies() -> None:
    """Of `kerf aws iam`."""
    (loop,) = [each for each in ALL if each.startswith("for policy in ")]

    assert f"for policy in {' '.join(POLICIES)}; do" == loop


def test_every_resource_of_the_stack_is_explained() -> None:
    """In the table of the guide, by its name, and no other."""
    text = PAGES[0].read_text(encoding="utf-8")
    table = text[text.index("| resource |") :].split("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]

    assert sorted(stack("kerf-system", "kerf")["Resources"]) == sorted(named)


def test_the_settings_of_karpenter_that_are_not_there_do_nothing_in_the_chart() -> None:
    """Each that the last table names is one that the chart ignores, or refuses with the cloud aws."""
    table = PAGES[0].read_text(encoding="utf-8").split("| not supported |")[1]
    ignored = (ROOT / "docs" / "reference" / "chart.md").read_text(encoding="utf-8").split("## Ignored values")[1]
    named = [name for name in re.findall(r"\(`(\w+)`\)", table) if name != "managedSelector"]

    assert ["reservedENIs", "assumeRoleARN"] == named
    assert [] == [name for name in (*named, "enableZonalShift", "isolatedVPC") if f"settings.{name}`" not in ignored]
