"""The page of AWS's messages has a line for each reason that the code can give, and none that it cannot.

The sets are read from the code: constants, and the words that are passed to the types of reasons. Messages are those of
an account in memory, and of an endpoint that answers what each line is about.
"""

import ast
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from kerf.cli.run.clouds import _START_S
from kerf.cloudprovider import InsufficientCapacity, InterruptionKind
from kerf.clouds.aws import cluster, drift
from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.clients import _HINTS
from kerf.clouds.aws.fleet import NO_ADDRESSES, SOLD_OUT
from kerf.clouds.aws.interruption import _ENDING, _HEALTH, _KINDS, _STATE_CHANGE, _STATES
from kerf.clouds.aws.nodeclass.status import CONDITIONS
from kerf.clouds.aws.refusals import _REASONS, _WORDS
from kerf.controllers.nodeclaim import stages
from kerf.engine import lifecycle
from kerf.errors import CloudError
from kerf.model import events
from kerf.model.constraints import Taint
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import READY, STAGES
from tests.clouds.aws.account import Account
from tests.clouds.aws.test_clients import asked
from tests.docs.test_documents_run import ROOT
from tests.docs.test_eks import EXAMPLES, account, node_class, reconciled

PAGE = (ROOT / "docs" / "reference" / "aws-messages.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "kerf"
AWS = SOURCE / "clouds" / "aws"
PASSED_ON = ("error.reason", "worst.reason")
"""Reasons that were made elsewhere."""


def section(title: str) -> str:
    """The text under a heading, as far as the next one of its height."""
    height = title.index(" ")
    rest = PAGE.split(f"\n{title}\n")[1]
    return re.split(rf"\n#{{2,{height}}} ", rest)[0]


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of the table whose first line begins so; a code span keeps its marks."""
    lines = text[text.index(head) :].splitlines()
    found = [line.strip("| ").split(" | ") for line in lines[2 : next((i for i, x in enumerate(lines) if not x), None)]]
    return [[cell.strip() for cell in row] for row in found]


def spans(cell: str) -> list[str]:
    """The code spans of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def pattern(span: str) -> "re.Pattern[str]":
    """A message of the page: three dots stand for what differs."""
    return re.compile(re.escape(span).replace(re.escape("..."), ".*"))


# Reasons in the code.


class Words:
    """The words that a module passes as an argument to calls of one name."""

    def __init__(self, path: Path) -> None:
        self._tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        self._module = import_module(".".join(parts).removesuffix(".__init__"))

    def passed(self, name: str, place: int) -> Iterator[str]:
        """Each word at that place of the arguments."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and _called(node) == name and len(node.args) > place:
                yield from self._meant(node.args[place])

    def _meant(self, node: ast.expr) -> Iterator[str]:
        if ast.unparse(node) in PASSED_ON:
            return
        if isinstance(node, ast.Constant):
            yield str(node.value)
        elif isinstance(node, ast.IfExp):
            yield from (*self._meant(node.body), *self._meant(node.orelse))
        elif isinstance(node, ast.JoinedStr):
            end = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            yield from (f"{operation}{end}" for operation in self.passed("_try", 0))
        else:
            assert isinstance(node, ast.Name), ast.unparse(node)
            yield from self._named(node.id)

    def _named(self, name: str) -> Iterator[str]:
        held = getattr(self._module, name, None)
        if held is not None:
            yield str(held)
            return
        given = [each for each in ast.walk(self._tree) if isinstance(each, ast.Assign)]
        values = [each.value for each in given if ast.unparse(each.targets[0]) == name]
        assert values, name
        for value in values:
            yield from self._meant(value)


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def words(name: str, place: int, besides: str = "") -> set[str]:
    """What is passed to calls of that name, in all modules of the provider but one."""
    calling = [path for path in sorted(AWS.rglob("*.py")) if f"{name}(" in path.read_text(encoding="utf-8")]
    paths = [path for path in calling if path.name != besides]
    return {word for path in paths for word in Words(path).passed(name, place)} - {""}


def test_every_reason_of_an_ec2_node_class_has_its_line() -> None:
    """And every line a reason."""
    on_page = [spans(row[1])[0] for row in rows(section("## EC2NodeClass not ready"), "| condition |")]

    assert words("Unusable", 0) | words("ConditionVerdict", 0) == set(on_page)


def test_every_condition_of_an_ec2_node_class_is_named() -> None:
    """Those of a table row or of the text."""
    text = section("## EC2NodeClass not ready")

    assert [] == [name for name in (*CONDITIONS, READY) if f"`{name}`" not in text]


def test_every_reason_of_a_failed_launch_has_its_line() -> None:
    """From codes, from words, and from Kerf itself."""
    tables = {reason for _, reason in (*_REASONS, *_WORDS)}
    known = tables | words("LaunchFailed", 1, besides="refusals.py") | {"LaunchFailed"}
    text = section("## Launches").split("**Another failure.**")[1]

    assert known == {spans(row[0])[0] for row in rows(text, "| reason |")}


def test_every_reason_of_a_sold_out_offering_has_its_line() -> None:
    """EC2's codes, and Kerf's own words."""
    launches = (AWS / "launch.py").read_text(encoding="utf-8") + (AWS / "interruption.py").read_text(encoding="utf-8")
    own = re.findall(r'dict\.fromkeys\(\(.*, "(.+)"\)|sold_out\[.*\] = "(.+)"', launches)
    table = rows(section("## Launches"), "| code |")

    assert 3 == len(own)
    assert SOLD_OUT | {a or b for a, b in own} == {spans(row[0])[0] for row in table}
    assert any(NO_ADDRESSES in row[1] for row in table)


MISSING = (
    lifecycle.NotLaunched(),
    lifecycle.NoNode(),
    lifecycle.NodeNotReady(),
    lifecycle.StartupTaintLeft(Taint("a", "", "NoSchedule")),
    lifecycle.EphemeralTaintLeft(Taint("a", "", "NoSchedule")),
    lifecycle.NoRegister(1),
    lifecycle.FewerCards(1, 2),
    lifecycle.UnhealthyCards(1, 2),
    lifecycle.SmallerCard(1, 2),
    lifecycle.FewerParts("a", 1, 2, True),
    lifecycle.TooLittle("a", 1, 2),
)
STAGE_ROWS = rows(section("## Stages of a NodeClaim"), "| stage |")


def test_every_stage_has_its_lines() -> None:
    """The reasons of what is missing, and those that no deadline counts for."""
    assert set(lifecycle.Missing.__args__) == {type(each) for each in MISSING}
    known = {stages.reason_of(each) for each in MISSING} | {"Reserved", "Relabelled"}
    assert known == {spans(row[1])[0] for row in STAGE_ROWS}
    assert set(STAGES) == {row[0] for row in STAGE_ROWS}


@pytest.mark.parametrize("missing", MISSING, ids=lambda each: type(each).__name__)
def test_a_stage_says_what_the_page_says(missing: lifecycle.Missing) -> None:
    """Shortfalls of cards are not spelled out."""
    (row,) = [each for each in STAGE_ROWS if spans(each[1])[0] == stages.reason_of(missing)]

    is_short = isinstance(missing, get_args(lifecycle.Shortfall))
    assert is_short or pattern(spans(row[2])[0]).fullmatch(stages.message_of(missing))


def test_every_way_to_be_given_up_has_its_line() -> None:
    """One a stage."""
    table = rows(section("## Stages of a NodeClaim"), "| reason | means |")

    assert [f"{stage}TimedOut" for stage in STAGES] == [spans(row[0])[0] for row in table]


def test_every_reason_of_drift_has_its_line() -> None:
    """Karpenter's, in its order."""
    known = [drift.NODE_CLASS, drift.IMAGE, drift.SECURITY_GROUP, drift.SUBNET, drift.RESERVATION]

    on_page = [spans(row[0])[0] for row in rows(section("## Stages of a NodeClaim"), "| reason | the instance")]
    assert [*known, drift.PLACEMENT_GROUP] == on_page


def test_every_announcement_has_its_line() -> None:
    """The kinds of messages, the states that end an instance, and the events of one; advice is an event's reason."""
    text = section("## Interruptions")
    said = (*_KINDS, _STATE_CHANGE, _HEALTH, *_STATES, *_ENDING)

    assert [] == [each for each in said if each not in text]
    assert [] == [kind for kind in InterruptionKind if kind.is_advice and f"`{kind}`" not in text]


def test_every_hint_about_credentials_has_its_line() -> None:
    """By code."""
    table = rows(section("## The log"), "| code |")

    assert {f"`{code}`": hint for code, hint in _HINTS.items()} == {row[0]: row[1] for row in table}


def shapes(path: Path, name: str) -> set[str]:
    """The messages that a module gives to errors of that name, with three dots for what differs."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    texts = [node.args[0] for node in calls if ast.unparse(node.func) == name]
    parts = [text.values for text in texts if isinstance(text, ast.JoinedStr)]
    return {"".join(str(each.value) if isinstance(each, ast.Constant) else "..." for each in text) for text in parts}


def test_every_message_of_a_node_class_that_is_not_ready_has_its_line() -> None:
    """A claim that ends by it, and one that waits."""
    module = AWS / "nodeclasses.py"
    ended = {span for row in rows(section("## Launches"), "| message,") for span in spans(row[0])}
    waiting = {span for row in rows(section("## The log"), "| controller |") for span in spans(row[1])}

    assert shapes(module, "NodeClassNotReady")
    assert set() == shapes(module, "NodeClassNotReady") - ended
    assert shapes(module, "CloudError")
    assert set() == shapes(module, "CloudError") - waiting


def test_every_failure_of_a_call_has_its_line() -> None:
    """Without a reply, or without credentials."""
    text = section("## The log")
    said = shapes(AWS / "clients.py", "ConnectionFailed") | shapes(AWS / "clients.py", "NoCredentials")

    assert [] == [each for each in said if re.sub(r"(\.\.\. ?)+$", "...", each) not in text]


# Messages.


def refuse(operation: str, code: str, message: str = "no") -> Callable[[Account], None]:
    """The next such call is refused."""

    def change(held: Account) -> None:
        held.broken[operation] = ApiFailed(operation, code, message)

    return change


def forbid(operation: str) -> Callable[[Account], None]:
    """A policy forbids the operation."""
    return lambda held: held.forbidden.add(operation)


PROFILE = "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
OLD = [{"alias": "al2@latest"}]
SAID: dict[str, tuple[dict[str, Any], Callable[[Account], None]]] = {
    "AMINotFound": ({}, lambda held: held.parameters.clear()),
    "UnsupportedAlias": ({"amiSelectorTerms": OLD}, lambda held: None),
    "SubnetsNotFound": ({}, lambda held: held.subnets.clear()),
    "SecurityGroupsNotFound": ({}, lambda held: held.groups.clear()),
    "RoleNotFound": ({}, lambda held: held.roles.clear()),
    "PlacementGroupNotFound": ({"placementGroupSelector": {"name": "near"}}, lambda held: None),
    "Unauthorized": ({}, forbid("DescribeSubnets")),
    "Refused": ({}, refuse("CreateInstanceProfile", "LimitExceeded")),
    "AWSUnavailable": ({}, refuse("DescribeSubnets", "InternalError")),
    "DependenciesNotReady": ({}, lambda held: held.subnets.clear()),
    "AwaitingInstanceProfile": ({}, refuse("RunInstances", "InvalidParameterValue", PROFILE)),
    "CreateLaunchTemplateAuthCheckFailed": ({}, refuse("CreateLaunchTemplate", "UnauthorizedOperation")),
    "CreateFleetAuthCheckFailed": ({}, forbid("CreateFleet")),
    "RunInstancesAuthCheckFailed": ({}, forbid("RunInstances")),
    "CreateLaunchTemplateRefused": ({}, refuse("CreateLaunchTemplate", "InvalidParameterValue")),
    "CreateFleetRefused": ({}, refuse("CreateFleet", "InvalidParameterValue")),
    "RunInstancesRefused": ({}, refuse("RunInstances", "InvalidParameterCombination")),
    "UserDataInvalid": ({"userData": "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx"}, lambda held: None),
    "UserDataSizeLimitExceeded": ({"userData": "#" * 17_000}, lambda held: None),
    "InvalidKubeletConfiguration": ({"kubelet": {"maxPods": -1}}, lambda held: None),
    "InvalidSpec": ({"subnetSelectorTerms": "all"}, lambda held: None),
}


@pytest.mark.parametrize("reason", SAID)
def test_an_ec2_node_class_says_what_the_page_says(reason: str) -> None:
    """Under the condition that the page names."""
    spec, change = SAID[reason]
    held, raw = account(tagged=True), node_class(EXAMPLES / "eks" / "nodeclass.yaml")
    change(held)
    raw["metadata"] |= {"uid": "u", "generation": 1}
    conditions = reconciled({**raw, "spec": {**raw["spec"], **spec}}, held)["conditions"]
    said = [each for each in conditions if each["reason"] == reason and each["type"] != READY and each["message"]]
    (row,) = [each for each in rows(section("## EC2NodeClass not ready"), "| condition |") if f"`{reason}`" == each[1]]

    assert said, conditions
    assert all(row[0] in ("any", f"`{each['type']}`") for each in said)
    for each in said:
        assert any(pattern(span).fullmatch(each["message"]) for span in spans(row[2])), each["message"]
    assert {each["status"] for each in said} == ({"Unknown"} if "status Unknown" in row[3] else {"False"})


def test_a_cluster_without_service_cidr_says_what_the_page_says() -> None:
    """It takes another cluster, so it stands alone."""
    raw = node_class(EXAMPLES / "eks" / "nodeclass.yaml")
    raw["metadata"] |= {"uid": "u", "generation": 1}
    conditions = reconciled(raw, account(tagged=True), service_cidr="")["conditions"]
    (row,) = [row for row in rows(section("## EC2NodeClass not ready"), "| condition |") if "CIDR" in row[1]]

    said = {(f"`{each['type']}`", f"`{each['reason']}`", f"`{each['message']}`") for each in conditions}
    assert tuple(row[:3]) in said


def test_a_sold_out_launch_says_what_the_page_says() -> None:
    """The event on the claim."""
    error = InsufficientCapacity(
        {OfferingKey("g4dn.xlarge", "us-east-1a", "on-demand"): "InsufficientInstanceCapacity"}
    )

    event = events.insufficient_capacity("gpu-4f2a9", str(error))
    assert f"```text\n{event.message}\n```" in section("## Launches")
    assert f"`{event.reason}`" in section("## Launches")


# The start.

Answer = tuple[int, str, str]
"""Status, code and body."""
CUT_OFF: Answer = (0, "", "")
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}


def eks(status: int, code: str, message: str) -> Answer:
    """An error as EKS words it."""
    return status, code, json.dumps({"message": message})


def sts(code: str, message: str) -> Answer:
    """An error as STS words it."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return 400, "", f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{error}</ErrorResponse>'


class Endpoint(ThreadingHTTPServer):
    """An HTTP server that gives one answer to everything."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answer = answer
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Endpoint

    def do_GET(self) -> None:
        """The answer."""
        status, code, body = self.server.answer
        if not status:
            self.connection.close()
            return
        self.send_response(status)
        if code:
            self.send_header("x-amzn-errortype", code)
        kind = "text/html" if body.startswith("<html") else "text/xml" if body.startswith("<") else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self) -> None:
        """The same."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test says what it was about."""


USER = "User: arn:aws:sts::111122223333:assumed-role/KerfNode-prod/i-1 is not authorized to perform"
REFUSALS: dict[str, Answer] = {
    "no policy": eks(403, "AccessDeniedException", f"{USER}: eks:DescribeCluster on resource: x"),
    "expired": eks(403, "ExpiredTokenException", "The security token included in the request is expired"),
    "unknown": eks(403, "UnrecognizedClientException", "The security token included in the request is invalid."),
    "clock": eks(
        403, "InvalidSignatureException", "Signature expired: 20261125T080000Z is now earlier than 20261125T0"
    ),
    "clock, other words": eks(400, "RequestExpired", "Request has expired."),
    "no such cluster": eks(404, "ResourceNotFoundException", "No cluster found for name: prod."),
    "AWS fails": eks(500, "ServerException", "oops"),
    "throttled": eks(429, "ThrottlingException", "Rate exceeded"),
    "a page in HTML": (200, "", "<html>log in</html>"),
    "something in JSON": (200, "", "{}"),
    "no cluster yet": (200, "", json.dumps({"cluster": {"name": "prod", "status": "CREATING"}})),
    "cut off": CUT_OFF,
}
TRUST = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
NO_PROVIDER = "No OpenIDConnect provider found in your account for https://oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE"
START_ROWS = rows(section("## The start: exit code 4"), "| message,")


def line(url: str) -> str:
    """What a start on that endpoint ends with, after the cluster's name; no time passes between the tries."""
    with pytest.raises(CloudError) as caught:
        asked(url, lambda api: cluster.describe(api, "prod", "us-east-1"))
    return str(caught.value)


def row_of(text: str) -> str:
    """The message of the one row of the page that it fits."""
    (row,) = [each for each in START_ROWS if pattern(spans(each[0])[0]).fullmatch(text)]
    return row[0]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Where an answer is given, until the test ends."""
    made = []

    def begin(answer: Answer) -> str:
        made.append(Endpoint(answer))
        return made[-1].url

    yield begin
    for each in made:
        each.shutdown()
        each.server_close()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which boto3 finds no credentials."""
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    for name in (*KEYS, "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return monkeypatch


def test_every_line_of_the_start_is_one_that_kerf_writes(
    bare: pytest.MonkeyPatch, serve: Callable[[Answer], str], tmp_path: Path
) -> None:
    """Each refusal has one row, and each row a refusal."""
    seen = []
    nowhere = "http://127.0.0.1:9"
    seen.append(row_of(line(nowhere)))

    bare.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", serve((400, "", "no association")))
    seen.append(row_of(line(nowhere)))
    bare.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")

    (tmp_path / "token").write_text("token", encoding="utf-8")
    bare.setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/Kerf-prod")
    bare.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    for code, message in (("AccessDenied", TRUST), ("InvalidIdentityToken", NO_PROVIDER)):
        bare.setenv("AWS_ENDPOINT_URL_STS", serve(sts(code, message)))
        seen.append(row_of(line(nowhere)))
    bare.delenv("AWS_WEB_IDENTITY_TOKEN_FILE")

    for name, value in KEYS.items():
        bare.setenv(name, value)
    seen.append(row_of(line(nowhere)))
    seen += [row_of(line(serve(answer))) for answer in REFUSALS.values()]
    # Of a server that is silent: `cli/run/test_run.py` waits for it.
    seen.append(row_of(f"DescribeCluster: no answer within {_START_S:g} s"))

    assert sorted(row[0] for row in START_ROWS) == sorted(seen)


# Links.


@pytest.mark.parametrize("page", ["docs/reference/aws-messages.md", "docs/guides/eks.md"])
def test_every_place_on_a_page_that_is_linked_exists(page: str) -> None:
    """Headings, as GitHub makes anchors of them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", text)

    assert links
    for path, anchor in links:
        target = (ROOT / page).parent / path if path else ROOT / page
        heads = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert anchor in anchors, f"{path}#{anchor}"
