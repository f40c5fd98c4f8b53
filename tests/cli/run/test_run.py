"""`kerf run` before it runs: what it is told, whom it finds, and what it says when either will not do."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
import trustme

from kerf.telemetry import REGISTRY
from tests.cli.canned import kubeconfig, serving
from tests.cli.program import kerf

DEADLINE_S = 60
ENTRY = [sys.executable, "-c", "from kerf.cli.main import entry; entry()"]


def refused(*arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code and the one line, `error: ` taken off, of a run that does not begin."""
    with_cloud = {"KERF_CLOUD": "kwok", **(environment or {})}
    done = kerf("run", "--health-address=", "--metrics-address=", *arguments, environment=with_cloud)
    assert "" == done.stdout
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert [] == [line for line in rest if not line.startswith("hint: kerf run --help")]
    return done.returncode, first.removeprefix("error: ")


# What it is told.

DURATION = "(KERF_BATCH_IDLE, key batch-idle): expected a duration such as 1m30s or 500ms, got '{}'"
LEVEL = "--log-level (KERF_LOG_LEVEL, key log-level): 'loud' is not one of 'debug', 'info', 'warning', 'error'."


@pytest.mark.parametrize(
    "flags, variable, file, told",
    [
        (("--batch-idle=2",), "3", "4", "2"),
        (("--batch-idle=2",), None, "4", "2"),
        (("--batch-idle=2",), "3", None, "2"),
        ((), "3", "4", "3"),
        ((), "3", None, "3"),
        ((), None, "4", "4"),
        ((), "", "4", "4"),
    ],
)
def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(
    tmp_path: Path, flags: tuple[str, ...], variable: str | None, file: str | None, told: str
) -> None:
    """Seen from which of three wrong values is complained of."""
    environment = {} if variable is None else {"KERF_BATCH_IDLE": variable}
    if file is not None:
        path = tmp_path / "kerf.yaml"
        path.write_text(f"batch-idle: {file}\n", encoding="utf-8")
        flags = (*flags, f"--config={path}")

    assert (2, f"--batch-idle {DURATION.format(told)}") == refused(*flags, environment=environment)


@pytest.mark.parametrize(
    "given, told",
    [
        ("batch-idle: 2", f"--batch-idle {DURATION.format(2)}"),
        ("log-level: loud", f"Invalid value for {LEVEL}"),
        ("dry-run: perhaps", "--dry-run (KERF_DRY_RUN, key dry-run): 'perhaps' is not a valid boolean"),
        ("batch-idel: 2s", "FILE:1: unknown key batch-idel; is batch-idle meant?"),
        ("strategy: cost\nxyz: 1", "FILE:2: unknown key xyz"),
        ("config: other.yaml", "FILE:1: unknown key config"),
        ("follow: pin\nfollow: off", "FILE:2: expected each key once, got follow again"),
        ("batch-idle: [2s]", "FILE:1: batch-idle: expected a text, a number or true/false, got a list"),
        ("region:", "FILE:1: region: expected a text, a number or true/false, got nothing"),
        ("- a", "FILE: expected one key a setting, such as `batch-idle: 2s`, got a list"),
        ("a: [", "FILE:2: expected YAML with one key a setting: "),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, given: str, told: str) -> None:
    """By line and key, with the nearest key that there is."""
    path = tmp_path / "kerf.yaml"
    path.write_text(given + "\n", encoding="utf-8")
    code, text = refused(f"--config={path}")

    assert 2 == code
    assert told.replace("FILE", f"--config {path}") in text


def test_a_file_that_is_not_there_is_named() -> None:
    """With what the system says."""
    assert (2, "--config /nowhere: No such file or directory") == refused("--config=/nowhere")


@pytest.mark.parametrize(
    "flag, told",
    [
        ("--log-level=loud", LEVEL),
        ("--follow=never", "--follow (KERF_FOLLOW, key follow): expected one of auto, reserve, pin, off, got 'never'"),
        ("--unready-after=5", "--unready-after (KERF_UNREADY_AFTER, key unready-after): expected a duration such as"),
        ("--unready-after=0s", "expected a duration such as 1m30s or 500ms, got '0s'"),
        (
            "--managed-selector=a==b==c",
            "--managed-selector (KERF_MANAGED_SELECTOR, key managed-selector): expected KEY",
        ),
        ("--metrics-address=here", "--metrics-address (KERF_METRICS_ADDRESS, key metrics-address): expected HOST:PORT"),
        ("--metrics-address=:65536", "or nothing, got ':65536'"),
        ("--catalog=nowhere", "--catalog nowhere: expected aws[:REGION], alibaba[:REGION], kwok or a file"),
        ("--leader-elect-lease-duration=5s", "which is 1s at least; got 5s, 10s and 2s"),
        ("--leader-elect-lease-duration=15500ms", "--leader-elect-lease-duration in whole seconds"),
        ("--leader-elect-retry-period=500ms", "which is 1s at least; got 15s, 10s and 0.5s"),
        ("--nothing", "No such option '--nothing'."),
    ],
)
def test_a_wrong_flag_is_named_with_its_variable_and_its_key(flag: str, told: str) -> None:
    """Before anything is asked of a cluster: there is none here."""
    code, text = refused(flag)

    assert 2 == code
    assert told in text


# Whom it finds.


@pytest.mark.parametrize(
    "content, told",
    [
        (None, "no such file"),
        ("a: [b", ":1:6: expected YAML: expected ',' or ']', but got '<stream end>'"),
        ("hello", ": expected clusters, users and contexts, got str"),
        ("", ": expected clusters, users and contexts, got nothing"),
        ("{}", ": expected a current-context or --context, got neither (hint: it has none)"),
        ("{current-context: a, contexts: [{name: b}]}", ": no context 'a' (hint: it has b)"),
        ("{current-context: a, contexts: [{name: a}]}", ": Invalid kube-config file. Expected key context in"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, content: str | None, told: str) -> None:
    """One line that names it, and what is wrong in it."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, text = refused(f"--kubeconfig={path}")

    assert 4 == code
    assert text.startswith(f"kubeconfig {path}:")
    assert told in text


def test_without_a_kubeconfig_there_is_no_cluster(tmp_path: Path) -> None:
    """Outside a pod, and in a home without one."""
    environment = {"HOME": str(tmp_path), "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}
    code, text = refused(environment=environment)

    assert 4 == code
    assert text.startswith(f"no cluster: {tmp_path}/.kube/config does not exist and this is no pod (hint: ")


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With those that are."""
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")

    assert (4, f"kubeconfig {path}: no context 'there' (hint: it has here)") == refused(
        f"--kubeconfig={path}", "--context=there"
    )


@pytest.mark.parametrize(
    "command, told",
    [
        (["no-such-plugin"], "the exec plug-in no-such-plugin: [Errno 2] No such file or directory: 'no-such-plugin'"),
        (["sh", "-c", "echo log in first >&2; exit 3"], "the exec plug-in sh: process returned 3. log in first"),
        (["echo", "hello"], "the exec plug-in echo: failed to decode process output: Expecting value"),
        (["echo", "{}"], "the exec plug-in echo: malformed response. missing key 'apiVersion'"),
    ],
)
def test_an_exec_plugin_that_fails_is_no_nameless_user(tmp_path: Path, command: list[str], told: str) -> None:
    """What it says is the error; nothing is asked of the server without a name."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command[0], "args": command[1:]}
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", exec=plugin)
    code, text = refused(f"--kubeconfig={path}")

    assert 4 == code
    assert text.startswith(f"kubeconfig {path}: {told}")


def test_no_server_at_the_address(tmp_path: Path) -> None:
    """The address, and what the system says."""
    path = kubeconfig(tmp_path, "https://127.0.0.1:1")

    assert (4, "https://127.0.0.1:1: Connection refused") == refused(f"--kubeconfig={path}")


def test_a_server_that_is_not_trusted(tmp_path: Path) -> None:
    """Its certificate is of another authority than the kubeconfig's."""
    theirs, ours = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.issue_cert("127.0.0.1").configure_cert(context)
    ours.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with serving(context=context) as url:
        path = kubeconfig(tmp_path, url, cluster={"certificate-authority": str(tmp_path / "ca.pem")})
        code, text = refused(f"--kubeconfig={path}")

    assert 4 == code
    assert text.startswith(f"{url}: its certificate is not trusted: ")
    assert text.endswith(" (hint: see certificate-authority in the kubeconfig)")


PAGE = (200, "<html>Log in</html>")
OLD = {
    "/apis/karpenter.sh/v1": (404, {}),
    "/apis/karpenter.sh": (200, {"versions": [{"groupVersion": f"karpenter.sh/{v}"} for v in ("v1beta1", "v1alpha5")]}),
    "/apis/karpenter.sh/v1beta1": (200, {"resources": [{"name": "nodepools"}]}),
}
CRDS = "(hint: kerf manifests --crds | kubectl apply --server-side -f -)"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    "answers, told",
    [
        ({"/version": PAGE}, "<URL>/version: expected JSON, got text/html: no Kubernetes API"),
        ({"/version": (200, [1])}, "no Kubernetes API: /version: expected an object in JSON, got '[1]'"),
        ({"/version": (401, {"message": "Unauthorized"})}, "<URL>: Unauthorized (401): the server does not know these"),
        ({"/version": (503, "busy")}, "HTTP 503: busy"),
        ({"/apis/karpenter.sh/v1": (404, {})}, f"the cluster has no NodePool of karpenter.sh/v1 {CRDS}"),
        (OLD, f"the cluster has no NodePool of karpenter.sh/v1, only karpenter.sh/v1beta1 {CRDS}"),
        (
            {"/apis/karpenter.sh/v1": (403, {"message": "no"})},
            '<URL>: forbidden: no (hint: grant {nonResourceURLs: ["/apis/karpenter.sh/v1"], verbs: ["get"]})',
        ),
        ({REVIEWS: (403, {"message": "no"})}, "<URL>: forbidden: no (hint: grant {apiGroups"),
        ({REVIEWS: (201, {"status": {"allowed": False}})}, "forbidden: the role lacks "),
    ],
)
def test_a_server_that_will_not_do(tmp_path: Path, answers: dict[str, tuple[int, object]], told: str) -> None:
    """One line: what is missing, and how to get it."""
    with serving(answers) as url:
        code, text = refused(f"--kubeconfig={kubeconfig(tmp_path, url)}")

    assert 4 == code
    assert text.startswith(told.replace("<URL>", url))


AWS = ("--cloud=aws", "--cluster-name=gpu", "--region=us-east-1")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--cloud=aws", "--region=us-east-1"), "--cloud aws: expected --cluster-name "),
        (("--cloud=aws", "--cluster-name=gpu"), "--cloud aws: expected --region "),
        ((*AWS, "--catalog=aws"), "--catalog: expected nothing with --cloud aws"),
        ((*AWS, "--managed-selector=team=ml"), "--managed-selector: expected nothing with --cloud aws"),
        (
            (*AWS, "--aws-endpoint=localhost:9"),
            "--aws-endpoint (KERF_AWS_ENDPOINT, key aws-endpoint): expected a URL such as http://localhost:4566, got "
            "'localhost:9' (hint: begin with http:// or https://, or leave it empty for AWS itself)",
        ),
        ((*AWS, "--aws-endpoint=http://a:x"), "--aws-endpoint (KERF_AWS_ENDPOINT, key aws-endpoint): expected a URL"),
        (("--cluster-name=gpu",), "--cluster-name: expected --cloud aws, got --cloud kwok"),
        (("--interruption-queue=q",), "--interruption-queue: expected --cloud aws, got --cloud kwok"),
    ],
)
def test_what_a_cloud_needs_and_does_not_take_is_said_at_once(flags: tuple[str, ...], told: str) -> None:
    """Before a cluster is asked for anything."""
    code, text = refused(*flags, environment={"AWS_REGION": "", "AWS_DEFAULT_REGION": ""})

    assert (2, True) == (code, text.startswith(told)), text


def test_no_cloud_is_assumed() -> None:
    """One line before a cluster is asked for anything; a variable or a file may name it as well."""
    code, text = refused(environment={"KERF_CLOUD": ""})

    assert (2, True) == (code, text.startswith("--cloud (KERF_CLOUD, key cloud): expected aws or kwok, got nothing")), (
        text
    )


def with_nodes(*provider_ids: str) -> dict[str, tuple[int, object]]:
    """What a server answers that has these nodes, each with its `providerID`."""
    nodes = [
        {"metadata": {"name": f"node-{at}"}, "spec": {"providerID": each} if each else {}}
        for at, each in enumerate(provider_ids)
    ]
    return {"/api/v1/nodes": (200, {"metadata": {"resourceVersion": "1"}, "items": nodes})}


@pytest.mark.parametrize(
    "provider_id",
    [
        "aws:///eu-west-1a/i-0123456789abcdef0",
        "gce://project/zone/vm",
        "azure:///subscriptions/a",
        "cn-hangzhou.i-bp1",
        "x",
    ],
)
def test_machines_are_not_acted_out_beside_those_of_a_real_cloud(tmp_path: Path, provider_id: str) -> None:
    """Wherever in the list the real node is: pods would be bound to Nodes that have no machine, and never run."""
    with serving(with_nodes("kwok:///a/1", "", "kind://docker/kind/kind-control-plane", provider_id)) as url:
        code, text = refused(f"--kubeconfig={kubeconfig(tmp_path, url)}", "--log-level=error")

    assert 2 == code
    assert text.startswith("--cloud kwok: expected a test cluster, got node node-3 of a real cloud: providerID "), text
    assert text.endswith("--acted-out-on-real-cluster acts out machines here all the same)"), text


def test_the_flag_for_real_clusters_is_of_the_cloud_that_acts_out() -> None:
    """With a cloud that launches machines it has no meaning."""
    code, text = refused(*AWS, "--acted-out-on-real-cluster")

    assert (2, "--acted-out-on-real-cluster: expected --cloud kwok, got --cloud aws") == (code, text)


def test_a_cloud_that_does_not_answer_ends_the_start_with_one_line(tmp_path: Path) -> None:
    """Exit 4: there is an API server, and something that is not AWS."""
    with serving() as url:
        flags = (*AWS, f"--aws-endpoint={url}", f"--kubeconfig={kubeconfig(tmp_path, url)}", "--log-level=error")
        code, text = refused(*flags, environment={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"})

    assert 4 == code
    assert text.startswith("AWS us-east-1, cluster gpu: DescribeCluster: "), text


def test_a_cloud_that_is_silent_ends_the_start_before_kubelet_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read is tried four times, for a minute each: the pod would be ended without a word."""
    monkeypatch.setattr("kerf.cli.run.clouds._START_S", 0.5)
    with serving() as url, socket.create_server(("127.0.0.1", 0)) as deaf:
        silent = f"--aws-endpoint=http://127.0.0.1:{deaf.getsockname()[1]}"
        flags = (*AWS, silent, f"--kubeconfig={kubeconfig(tmp_path, url)}", "--log-level=error")
        code, text = refused(*flags, environment={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"})

    assert (4, "AWS us-east-1, cluster gpu: DescribeCluster: no answer within 0.5 s") == (code, text)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AWS_PROFILE": "nope"}, "AWS_PROFILE: expected a profile of the AWS config or credentials file, got 'nope'"),
        (
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": ""},
            "AWS_WEB_IDENTITY_TOKEN_FILE: expected a file that can be read, got '/nowhere'",
        ),
    ],
)
def test_what_boto3_cannot_use_ends_the_start_with_one_line(
    tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    """Exit 2: no other try helps."""
    with serving() as url:
        flags = (*AWS, f"--kubeconfig={kubeconfig(tmp_path, url)}", "--log-level=error")
        code, text = refused(*flags, environment=variables)

    assert (2, True) == (code, text.startswith(said)), text


@pytest.mark.parametrize(
    ("flags", "variables", "said"),
    [
        (("--region=us east",), {}, "region of AWS: expected a name such as us-east-1, got 'us east'"),
        (
            (),
            {"AWS_STS_REGIONAL_ENDPOINTS": "zzz"},
            "variables and files of AWS: expected what boto3 can use, got: STS",
        ),
        ((), {"AWS_SESSION_TOKEN": "t\n"}, "AWS_SESSION_TOKEN: expected printable letters of ASCII alone"),
    ],
)
def test_settings_of_aws_are_checked_before_the_api_server_is_asked(
    tmp_path: Path, flags: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    """It is down; who has two mistakes is told first of that which is theirs."""
    down = kubeconfig(tmp_path, "http://127.0.0.1:9")
    code, text = refused(
        *AWS,
        f"--kubeconfig={down}",
        *flags,
        environment={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"} | variables,
    )

    assert (2, True) == (code, text.startswith(said)), text


# It runs.


@contextmanager
def running(tmp_path: Path, url: str, *flags: str) -> Iterator["subprocess.Popen[str]"]:
    """A replica that is killed when the test ends before it."""
    command = [
        *ENTRY,
        "run",
        "--cloud=kwok",
        f"--kubeconfig={kubeconfig(tmp_path, url)}",
        "--health-address=127.0.0.1:0",
        *flags,
    ]
    environment = {**os.environ, "KERF_METRICS_ADDRESS": "127.0.0.1:0"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        # What never comes is not waited for: the log ends with the process.
        deadline = threading.Timer(DEADLINE_S, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()


def until(process: "subprocess.Popen[str]", *texts: str) -> list[str]:
    """The lines of the log until each of the texts was in one."""
    lines: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if all(any(text in each for each in lines) for text in texts):
            return lines
    raise AssertionError(f"ended without {texts}: {''.join(lines)}")


def test_json_logs_are_one_object_a_line(tmp_path: Path) -> None:
    """To the very end, which SIGTERM brings with exit 0; what libraries say is no exception."""
    with serving() as url, running(tmp_path, url, "--log-format=json") as process:
        lines = until(process, '"leading"')
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines += process.stderr.readlines()
        code = process.wait(30)

    told = [json.loads(line) for line in lines]
    assert 0 == code
    assert {"connected", "started", "leading", "stopping"} <= {each["event"] for each in told}
    assert all({"timestamp", "level", "controller"} <= each.keys() for each in told)


@pytest.mark.parametrize("flag", ["--health-address", "--metrics-address"])
def test_an_address_in_use_is_one_line(tmp_path: Path, flag: str) -> None:
    """Exit 1: nothing is wrong with the cluster, nor with the flag."""
    with serving() as url:
        address = url.removeprefix("http://")
        done = kerf(
            "run", "--cloud=kwok", f"--kubeconfig={kubeconfig(tmp_path, url)}",
            "--health-address=", "--metrics-address=",
            f"{flag}={address}", "--log-level=error",
        )  # fmt: skip

    assert (1, f"error: {flag} {address}: Address already in use\n") == (done.returncode, done.stderr)


def fetched(lines: list[str], name: str, path: str) -> tuple[int, str]:
    """Status and body of a GET at the address that the log names so."""
    started = next(line for line in lines if "event=started" in line)
    address = started.partition(f"{name}=")[2].split()[0]
    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_who_has_not_read_everything_is_not_ready(tmp_path: Path) -> None:
    """Alive, leading, and yet not ready: the services cannot be listed, and that is what it says."""
    with serving({"/api/v1/services": (500, {"message": "etcd is tired"})}) as url, running(tmp_path, url) as process:
        lines = until(process, "event=leading", "resource=services")
        status, told = fetched(lines, "health", "/readyz")
        alive = fetched(lines, "health", "/healthz")

    assert (503, (200, "ok\n")) == (status, alive)
    assert "services: not listed yet: HTTP 500: etcd is tired\n" in told


def test_every_metric_says_what_it_counts(tmp_path: Path) -> None:
    """Each has its HELP, and the calls to the API are counted by verb, resource and answer."""
    with serving({"/api/v1/services": (500, {"message": "etcd is tired"})}) as url, running(tmp_path, url) as process:
        lines = until(process, "event=leading", "resource=services")
        status, told = fetched(lines, "metrics", "/metrics")

    names = {name for family in REGISTRY.collect() for name in (family.name, f"{family.name}_total")}
    helped = {line.split()[2] for line in told.splitlines() if line.startswith("# HELP ") and len(line.split()) > 3}
    assert 200 == status
    assert {family.name for family in REGISTRY.collect()} == {name.removesuffix("_total") for name in helped & names}
    assert "kerf_leading 1.0\n" in told
    assert 'kerf_api_calls_total{answer="500",resource="services",verb="list"}' in told
    assert 'kerf_api_calls_total{answer="201",resource="leases.coordination.k8s.io",verb="create"}' in told
    assert 'kerf_api_call_seconds_count{verb="list"}' in told
