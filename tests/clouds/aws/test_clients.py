"""boto3 behind `Api`, on the wire: an endpoint that answers as a test wants."""

import asyncio
import builtins
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kerf.cloudprovider import Throttled
from kerf.clouds.aws.api import EC2, IAM, PRICING, SSM, ApiFailed
from kerf.clouds.aws.botosettings import masked
from kerf.clouds.aws.buckets import Buckets, Rate
from kerf.clouds.aws.clients import BotoApi, ConnectionFailed, NoCredentials
from kerf.clouds.aws.replies import NotWhole
from kerf.errors import CloudError, InputError, KerfError
from tests.clouds.aws.test_buckets import Clock

Answer = tuple[int, str]
_SPACE = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'


def subnets(*ids: str, next_token: str = "") -> Answer:
    """A page of DescribeSubnets."""
    items = "".join(f"<item><subnetId>{each}</subnetId></item>" for each in ids)
    token = f"<nextToken>{next_token}</nextToken>" if next_token else ""
    inner = f"<requestId>r</requestId><subnetSet>{items}</subnetSet>{token}"
    return 200, f"<DescribeSubnetsResponse {_SPACE}>{inner}</DescribeSubnetsResponse>"


def refusal(code: str, message: str = "no", status: int = 400) -> Answer:
    """An error as EC2 words it."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return status, f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"


CUT_OFF: Answer = (0, "")
"""The connection ends instead of a reply."""


class Endpoint:
    """An HTTP server with a list of answers, the last of which it repeats; it counts what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [subnets("subnet-1")]
        self.asked: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, text = owner.answers[0] if len(owner.answers) == 1 else owner.answers.pop(0)
                if not status:
                    self.connection.close()
                    return
                self.send_response(status)
                if text.startswith("<html"):
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                elif text.startswith("{"):
                    self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the test says what it was about."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A fresh one, and credentials that boto3 can sign with."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    made = Endpoint()
    yield made
    made.close()


def asked(endpoint: str, call: Callable[[BotoApi], Any], clock: Clock | None = None, **rates: Rate) -> Any:
    """What a call on a fresh BotoApi gives; time passes at once."""
    clock = clock or Clock()

    async def run() -> Any:
        api = BotoApi(
            "us-east-1", endpoint=endpoint or None, buckets=Buckets(rates, clock.now_s, clock.sleep), threads=2
        )
        try:
            return await call(api)
        finally:
            api.close()

    return asyncio.run(run())


async def describe(api: BotoApi) -> Any:
    """A read."""
    return await api.call(EC2, "DescribeSubnets")


async def launch(api: BotoApi) -> Any:
    """A write."""
    return await api.call(EC2, "TerminateInstances", InstanceIds=["i-1"])


def test_a_call_gives_the_reply_without_boto3s_own_part(endpoint: Endpoint) -> None:
    """As the API documents it, under its own names."""
    assert {"Subnets": [{"SubnetId": "subnet-1"}]} == asked(endpoint.url, describe)


def test_a_service_that_hangs_holds_up_no_other(endpoint: Endpoint) -> None:
    """A network without a way to SSM: nodes are launched and ended, and spot notices read, all the same."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    deaf = BotoApi("us-east-1", endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}", threads=2)

    async def call(api: BotoApi) -> Any:
        await describe(api)
        # The clients of the deaf endpoint, in the threads of the other: what is asked of SSM never answers.
        api._clients["ssm"] = deaf._made("ssm", aws_access_key_id="a", aws_secret_access_key="s")
        waiting = [asyncio.create_task(api.call(SSM, "GetParameter", Name=f"/{n}")) for n in range(30)]
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            found = await describe(api)
        listening.close()
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return found

    assert {"Subnets": [{"SubnetId": "subnet-1"}]} == asked(endpoint.url, call)
    deaf.close()


def test_all_pages_are_read_and_each_takes_a_token(endpoint: Endpoint) -> None:
    """The second page waits for its token."""
    endpoint.answers, clock = [subnets("a", next_token="t"), subnets("b")], Clock()
    found = asked(
        endpoint.url, lambda api: api.pages(EC2, "DescribeSubnets", "Subnets"), clock, DescribeSubnets=Rate(1, 0.5)
    )

    assert (["a", "b"], [2]) == ([each["SubnetId"] for each in found], clock.slept)
    assert "NextToken=t" in endpoint.asked[1]


def _ec2(inner: str) -> Answer:
    return 200, f"<R {_SPACE}><requestId>r</requestId>{inner}</R>"


PAGED = {
    "DescribeInstances": ("Reservations", "<reservationSet/>"),
    "DescribeLaunchTemplates": ("LaunchTemplates", "<launchTemplates/>"),
    "DescribeSubnets": ("Subnets", "<subnetSet></subnetSet>"),
    "DescribeSecurityGroups": ("SecurityGroups", "<securityGroupInfo/>"),
    "DescribeImages": ("Images", "<imagesSet/>"),
    "DescribeCapacityReservations": ("CapacityReservations", "<capacityReservationSet/>"),
    "DescribeInstanceStatus": ("InstanceStatuses", "<instanceStatusSet/>"),
    "DescribeInstanceTypes": ("InstanceTypes", "<instanceTypeSet/>"),
    "DescribeInstanceTypeOfferings": ("InstanceTypeOfferings", "<instanceTypeOfferingSet/>"),
    "DescribeSpotPriceHistory": ("SpotPriceHistory", "<spotPriceHistorySet/>"),
}


@pytest.mark.parametrize("operation", PAGED)
def test_a_listing_without_its_list_is_torn_and_not_empty(endpoint: Endpoint, operation: str) -> None:
    """What ends claims by it would end all of them: EC2 writes an empty list as an empty element."""
    key, empty = PAGED[operation]
    endpoint.answers = [_ec2(empty)]
    assert [] == asked(endpoint.url, lambda api: api.pages(EC2, operation, key))

    endpoint.answers = [_ec2("")]
    with pytest.raises(NotWhole, match=f"^{operation}: the reply is not whole: it lacks '{key}'$"):
        asked(endpoint.url, lambda api: api.pages(EC2, operation, key))


def test_a_second_page_that_is_torn_is_no_end(endpoint: Endpoint) -> None:
    """The instances of the first page are not all."""
    endpoint.answers = [subnets("a", next_token="t"), _ec2("")]
    with pytest.raises(NotWhole, match="it lacks 'Subnets'"):
        asked(endpoint.url, lambda api: api.pages(EC2, "DescribeSubnets", "Subnets"))


def test_profiles_are_listed_in_xml_too(endpoint: Endpoint) -> None:
    """IAM's replies have their list one level deeper."""
    space = 'xmlns="https://iam.amazonaws.com/doc/2010-05-08/"'
    for inner, found in (("<InstanceProfiles/>", []), ("", None)):
        result = f"<ListInstanceProfilesResult>{inner}<IsTruncated>false</IsTruncated></ListInstanceProfilesResult>"
        tail = "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
        endpoint.answers = [
            (200, f"<ListInstanceProfilesResponse {space}>{result}{tail}</ListInstanceProfilesResponse>")
        ]
        if found is not None:
            assert found == asked(endpoint.url, lambda api: api.pages(IAM, "ListInstanceProfiles", "InstanceProfiles"))
            continue
        with pytest.raises(
            NotWhole, match=r"^ListInstanceProfiles: the reply is not whole: it lacks 'InstanceProfiles'"
        ):
            asked(endpoint.url, lambda api: api.pages(IAM, "ListInstanceProfiles", "InstanceProfiles"))


def test_lists_that_json_leaves_out_are_empty(endpoint: Endpoint) -> None:
    """A price list of nothing, and a queue without messages."""
    endpoint.answers = [(200, '{"FormatVersion": "aws_v1"}')]
    found = asked(endpoint.url, lambda api: api.pages(PRICING, "GetProducts", "PriceList", ServiceCode="AmazonEC2"))

    assert [] == found


def test_a_page_that_is_its_own_next_page_ends(endpoint: Endpoint) -> None:
    """A cache in between that leaves out the token of a request would be asked for ever."""
    endpoint.answers = [subnets("a", next_token="t")]
    with pytest.raises(NotWhole, match=r"^DescribeSubnets: the reply is not whole: its next page is itself$"):
        asked(endpoint.url, lambda api: api.pages(EC2, "DescribeSubnets", "Subnets"))
    assert 2 == len(endpoint.asked)


@pytest.mark.parametrize(
    "answer", [refusal("RequestLimitExceeded", status=503), refusal("ThrottlingException"), refusal("x", status=503)]
)
def test_a_throttled_read_is_repeated_more_and_more_slowly(endpoint: Endpoint, answer: Answer) -> None:
    """Three times; then its bucket has been emptied three times as well."""
    endpoint.answers, clock = [answer] * 3 + [subnets("a")], Clock()
    asked(endpoint.url, describe, clock, DescribeSubnets=Rate(10, 1000))

    assert [0.5, 1, 2] == clock.slept
    assert 4 == len(endpoint.asked)


def test_a_read_that_stays_throttled_says_so(endpoint: Endpoint) -> None:
    """After four tries, with how long to wait."""
    endpoint.answers = [refusal("RequestLimitExceeded", status=503)]
    with pytest.raises(Throttled, match="again in 5 s"):
        asked(endpoint.url, describe)
    assert 4 == len(endpoint.asked)


@pytest.mark.parametrize(
    "answer", [refusal("RequestLimitExceeded", status=503), refusal("InternalError", status=500), CUT_OFF]
)
def test_a_write_is_never_repeated_here(endpoint: Endpoint, answer: Answer) -> None:
    """It may have happened: only who knows its token can say it again."""
    endpoint.answers = [answer]
    with pytest.raises(CloudError):
        asked(endpoint.url, launch)
    assert 1 == len(endpoint.asked)


def test_a_refusal_has_its_code(endpoint: Endpoint) -> None:
    """The caller decides by it."""
    endpoint.answers = [refusal("InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist")]
    with pytest.raises(ApiFailed, match=r"^TerminateInstances: InvalidInstanceID\.NotFound: The instance ID") as caught:
        asked(endpoint.url, launch)
    assert "InvalidInstanceID.NotFound" == caught.value.code


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("ExpiredToken", "the credentials have expired"),
        ("AuthFailure", "AWS does not know these credentials"),
        ("RequestExpired", "the clock of this machine is wrong"),
        ("InvalidSignatureException", "the secret key is wrong, or the clock of this machine is"),
    ],
)
def test_what_is_wrong_with_credentials_is_said(endpoint: Endpoint, code: str, hint: str) -> None:
    """A person reads a reason, not only a code."""
    endpoint.answers = [refusal(code)]
    with pytest.raises(ApiFailed, match=hint):
        asked(endpoint.url, describe)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, "<html><body>moved"), "the reply cannot be read"),
        (CUT_OFF, "the connection failed before the reply"),
        (refusal("InternalError", "we broke", 500), "AWS failed: InternalError we broke"),
    ],
)
def test_no_reply_is_one_line(endpoint: Endpoint, answer: Answer, said: str) -> None:
    """HTML, a lost connection, and an error of AWS itself: a write may have happened."""
    endpoint.answers = [answer]
    with pytest.raises(ConnectionFailed, match=said) as caught:
        asked(endpoint.url, launch)
    assert "\n" not in str(caught.value)


LOGIN = "<html><head><title>Log in</title></head><body><p>Proxy</p></body></html>"


@pytest.mark.parametrize("status", [200, 403, 407, 502, 503])
def test_a_page_of_a_proxy_is_no_reply_and_no_refusal(endpoint: Endpoint, status: int) -> None:
    """A well-formed page reads like a reply in which nothing is set: no subnets, and an instance that was ended."""
    endpoint.answers = [(status, LOGIN)]
    said = f"what answers there is not AWS, perhaps a proxy: a page in HTML, with status {status}"
    with pytest.raises(ConnectionFailed, match=f"^DescribeSubnets: {said}$"):
        asked(endpoint.url, describe)
    assert 4 == len(endpoint.asked)
    with pytest.raises(ConnectionFailed, match=f"^TerminateInstances: {said}$"):
        asked(endpoint.url, launch)


def test_a_page_that_does_not_say_what_it_is_is_no_reply(endpoint: Endpoint) -> None:
    """AWS gives each reply an id, or says that it is XML or JSON."""
    endpoint.answers = [(200, f"<!-- welcome -->{LOGIN}")]
    with pytest.raises(ConnectionFailed, match="neither XML nor JSON, without a request id, with status 200"):
        asked(endpoint.url, describe)


def test_a_list_in_json_is_no_reply(endpoint: Endpoint) -> None:
    """botocore fails by it with an error of Python, which would be taken for one of ours."""
    endpoint.answers = [(200, "[]")]
    with pytest.raises(ConnectionFailed, match="GetParameter: what answers there is not AWS: the reply cannot be read"):
        asked(endpoint.url, lambda api: api.call(SSM, "GetParameter", Name="x"))


DATED = "<item><instanceId>i-1</instanceId><launchTime>{}</launchTime></item>"


@pytest.mark.parametrize("date", ["yesterday", "", "99999999999999999999"])
def test_a_date_that_is_none_is_no_reply(endpoint: Endpoint, date: str) -> None:
    """botocore fails by it in a module of its own, with whatever error the date causes."""
    instances = f"<instancesSet>{DATED.format(date)}</instancesSet>"
    endpoint.answers = [_ec2(f"<reservationSet><item>{instances}</item></reservationSet>")]
    with pytest.raises(ConnectionFailed, match="DescribeInstances: what answers there is not AWS: the reply cannot be"):
        asked(endpoint.url, lambda api: api.pages(EC2, "DescribeInstances", "Reservations"))


def test_a_reply_that_is_nested_without_end_is_no_reply(endpoint: Endpoint) -> None:
    """Python's own parser gives up."""
    endpoint.answers = [(200, '{"Parameter":' + "[" * 20_000 + "]" * 20_000 + "}")]
    with pytest.raises(ConnectionFailed, match="GetParameter: what answers there is not AWS: the reply cannot be read"):
        asked(endpoint.url, lambda api: api.call(SSM, "GetParameter", Name="x"))


def test_a_page_for_a_moment_is_asked_again(endpoint: Endpoint) -> None:
    """As any other reply that was lost."""
    endpoint.answers = [(200, LOGIN), subnets("subnet-1")]

    assert {"Subnets": [{"SubnetId": "subnet-1"}]} == asked(endpoint.url, describe)


def test_an_endpoint_where_nothing_listens_is_said() -> None:
    """As with a wrong region, whose name does not exist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        with pytest.raises(ConnectionFailed, match="nothing answers there"):
            asked("http://127.0.0.1:9", launch)


def test_no_credentials_are_said(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nothing is asked of AWS without them."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(NoCredentials, match="there are no AWS credentials"):
        asked(endpoint.url, launch)
    assert [] == endpoint.asked


ENDPOINT = "AWS_ENDPOINT_URL: expected a URL such as http://localhost:4566, got 'localhost:9' (hint: begin with http://"
TOKEN = (
    "AWS_WEB_IDENTITY_TOKEN_FILE: expected a file that can be read, got '/nowhere/token': No such file or directory ("
)


@pytest.mark.parametrize(
    ("variables", "region", "said"),
    [
        (
            {"AWS_PROFILE": "nope"},
            "us-east-1",
            "AWS_PROFILE: expected a profile of the AWS config or credentials file, got 'nope' (hint: aws configure",
        ),
        ({"AWS_ENDPOINT_URL": "localhost:9"}, "us-east-1", ENDPOINT),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token", "AWS_ROLE_ARN": "arn:a"}, "us-east-1", TOKEN),
        ({}, "us east", "region of AWS: expected a name such as us-east-1, got 'us east'"),
        ({"AWS_CONFIG_FILE": "<torn>"}, "us-east-1", "AWS_CONFIG_FILE: expected sections with key = value, got '"),
        (
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "<torn>"},
            "us-east-1",
            "variables and files of AWS: expected what boto3 can use, got: The provided profile or the current env",
        ),
    ],
)
def test_what_boto3_cannot_use_is_wrong_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], region: str, said: str
) -> None:
    """By the name of the variable, with what was expected and what came; nothing is asked of AWS."""
    (tmp_path / "torn").write_text("[profile\nx\n", encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_CONFIG_FILE": "/nowhere", **variables}.items():
        monkeypatch.setenv(name, value.replace("<torn>", str(tmp_path / "torn")))

    async def call() -> None:
        api = BotoApi(region)
        try:
            await describe(api)
        finally:
            api.close()

    with pytest.raises(InputError) as caught:
        asyncio.run(call())
    assert str(caught.value).startswith(said)


FILES = """
[profile irsa]
role_arn = arn:aws:iam::111122223333:role/kerf
web_identity_token_file = /nowhere/own
[profile chain]
role_arn = arn:aws:iam::111122223333:role/other
source_profile = irsa
[profile circle]
role_arn = arn:aws:iam::111122223333:role/other
source_profile = circle
[profile keys]
aws_access_key_id = a
aws_secret_access_key = s
web_identity_token_file = /nowhere/own
[default]
role_arn = arn:aws:iam::111122223333:role/kerf
web_identity_token_file = /nowhere/default
"""
OWN = "profile irsa: web_identity_token_file: expected a file that can be read, got '/nowhere/own': No such file or dir"
DEFAULT = "profile default: web_identity_token_file: expected a file that can be read, got '/nowhere/default': No such"


@pytest.mark.parametrize(
    ("variables", "region", "said"),
    [
        ({"AWS_PROFILE": "irsa"}, "us-east-1", OWN),
        ({"AWS_DEFAULT_PROFILE": "irsa"}, "us-east-1", OWN),
        ({"AWS_PROFILE": "chain"}, "us-east-1", OWN),
        ({}, "us-east-1", DEFAULT),
        ({"AWS_PROFILE": "circle"}, "us-east-1", ""),
        ({"AWS_PROFILE": "keys"}, "us-east-1", ""),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}, "us-east-1", ""),
        ({"AWS_PROFILE": "keys"}, "us east", "region of AWS: expected a name such as us-east-1, got 'us east'"),
        ({"AWS_PROFILE": "keys", "AWS_CA_BUNDLE": "/nowhere/ca"}, "us-east-1", "AWS_CA_BUNDLE: expected a file that"),
        ({"AWS_PROFILE": "keys", "AWS_CA_BUNDLE": "<folder>"}, "us-east-1", ""),
        (
            {"AWS_PROFILE": "keys", "AWS_STS_REGIONAL_ENDPOINTS": "zzz"},
            "us-east-1",
            "variables and files of AWS: expected what boto3 can use, got: STS regional endpoints option zzz is inv",
        ),
        ({"AWS_PROFILE": "keys", "AWS_ENDPOINT_URL_EKS": "localhost:9"}, "us-east-1", ENDPOINT),
        ({"AWS_PROFILE": "keys", "AWS_DEFAULTS_MODE": "zzz"}, "us-east-1", "variables and files of AWS: expected what"),
    ],
)
def test_settings_are_checked_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], region: str, said: str
) -> None:
    """No address is asked, not even of an instance's metadata; what only a call can show is left to the call."""
    (tmp_path / "config").write_text(FILES, encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    files = {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_CONFIG_FILE": str(tmp_path / "config")}
    for name, value in {**files, **variables}.items():
        monkeypatch.setenv(name, value.replace("<folder>", str(tmp_path)))

    def no_address(*_arguments: Any) -> None:
        raise AssertionError("an address was asked")

    monkeypatch.setattr(socket.socket, "connect", no_address)
    if not said:
        BotoApi(region).check()
        return
    with pytest.raises(InputError) as caught:
        BotoApi(region).check()
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SESSION_TOKEN", "HIDDEN\n"),
        ("AWS_ACCESS_KEY_ID", "HIDDEN\r\n"),
        ("AWS_SECRET_ACCESS_KEY", "HIDDEN\n"),
        ("AWS_SECRET_ACCESS_KEY", "HID DEN"),
        ("AWS_SESSION_TOKEN", "HIDD\u00c9N"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer HIDDEN\n"),
    ],
)
def test_a_key_that_no_header_can_have_is_wrong_input(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Before anything is asked, by the name of the variable, and without a letter of its value."""
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        BotoApi("us-east-1")
    assert str(caught.value).startswith(f"{name}: expected printable letters of ASCII alone, got others among them (")
    assert "HID" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "kind", "said"),
    [
        ({"AWS_PROFILE": "split"}, InputError, "variables and files of AWS: expected credentials that a header can"),
        ({"AWS_PROFILE": "process"}, NoCredentials, "DescribeSubnets: the AWS credentials could not be got: the cred"),
        ({"AWS_ENDPOINT_URL": "http://me:SECRET@127.0.0.1:9"}, ConnectionFailed, "DescribeSubnets: nothing answers"),
        ({"HTTP_PROXY": "http://me:SECRET@127.0.0.1:9"}, CloudError, "DescribeSubnets: Failed to connect to proxy"),
        ({"AWS_ENDPOINT_URL": "http:me:SECRET@127.0.0.1:9"}, InputError, "AWS_ENDPOINT_URL: expected a URL such as"),
    ],
)
def test_no_text_has_a_part_of_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], kind: type[KerfError], said: str
) -> None:
    """Not of a file of credentials, of what its program writes, nor of a URL with a password."""
    (tmp_path / "keys").write_text(
        "[split]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = s\naws_session_token = SECRET\n SECRET\n"
        "[process]\ncredential_process = sh -c 'echo SECRET >&2; exit 1'\n",
        encoding="utf-8",
    )
    if "AWS_PROFILE" in variables:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    given = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "keys"), "AWS_CONFIG_FILE": "/nowhere", **variables}
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(kind) as caught:
        asked(
            "" if "AWS_PROFILE" not in variables and "HTTP_PROXY" not in variables else "http://localhost:9", describe
        )
    assert str(caught.value).startswith(said)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('URL: "http://me:SECRET@h:9/x?key=SECRET" failed', 'URL: "http://***@h:9/x?***" failed'),
        ("http:me:SECRET@h:9", "***@h:9"),
        ("me:SECRET//x@h", "***@h"),
        ("me:SEC@RET@h and a:SECRET@b", "***@h and ***@b"),
        ("https://h/?a=SECRET&b=http://SECRET", "https://h/?***"),
        ("arn:aws:iam::1:role/k wants a@b, why?", "arn:aws:iam::1:role/k wants a@b, why?"),
        ("http://h:9/a@b", "http://***@b"),
    ],
)
def test_what_may_be_secret_is_masked(text: str, said: str) -> None:
    """A name with a password before a host, and what follows the mark of a query."""
    assert said == masked(text)


def test_masking_costs_the_length_of_a_text() -> None:
    """An error can quote whatever answered: four thousand letters with colons once took half a minute."""
    for text in ("a:" * 500_000, "http://" * 100_000, "x:y@" * 200_000, "a?" * 500_000):
        assert len(masked(text)) <= len(text) + 4


def test_a_token_that_is_gone_while_kerf_runs_is_a_failed_call(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was there at the start: the loops go on, and try again."""
    (token := tmp_path / "token").write_text("t", encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": f"arn:aws:iam::{'1' * 12}:role/k",
    }.items():
        monkeypatch.setenv(name, value)

    async def call(api: BotoApi) -> Any:
        token.unlink()
        return await describe(api)

    with pytest.raises(NoCredentials, match=r"^DescribeSubnets: the AWS credentials could not be got: .*No such file"):
        asked(endpoint.url, call)


def test_a_token_that_is_not_needed_may_be_missing(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment go before it."""
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")

    assert {"Subnets": [{"SubnetId": "subnet-1"}]} == asked(endpoint.url, describe)


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kerf itself does not need it."""
    real = builtins.__import__

    def without_boto3(name: str, *arguments: Any, **given: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return real(name, *arguments, **given)

    monkeypatch.setattr(builtins, "__import__", without_boto3)
    with pytest.raises(InputError, match=r"pip install 'kerf-autoscaler\[aws\]'"):
        BotoApi("us-east-1")
