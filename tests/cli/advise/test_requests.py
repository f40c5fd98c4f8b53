"""`kerf advise requests`: from dumps, checkpoints, a live cluster and Prometheus; what is said without evidence."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from kerf.cli.main import run
from kerf.engine.study.usage.history import WorkloadName, entry_key, entry_text, history_of, shard_of
from kerf.model.usage import ContainerUsage, PodUsage
from tests.cli.canned import kubeconfig, serving
from tests.cli.program import ROOT

Json = dict[str, Any]
EXAMPLE = ("-f", str(ROOT / "examples/002-requests"))
START_S = 1_767_596_400.0
"""2026-01-05T07:00:00Z."""


@pytest.fixture
def kerf(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """One run of `kerf advise requests`: exit code, standard output and error."""

    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(["advise", "requests", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return called


Kerf = Callable[..., tuple[int, str, str]]


def deployment(limits: Mapping[str, str] | None = None, requests: Mapping[str, str] | None = None) -> list[Json]:
    """`default/web` with one pod of it."""
    container = {"name": "main", "resources": {"limits": limits or {}, "requests": requests or {}}}
    template = {"metadata": {"labels": {"pod-template-hash": "5d9"}}, "spec": {"containers": [container]}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9", "controller": True}
    meta = {"name": "web-5d9-aaaaa", "namespace": "default", "labels": {"pod-template-hash": "5d9"}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 1, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**meta, "ownerReferences": [owner], "creationTimestamp": "2026-01-05T07:00:00Z"},
            "spec": {"nodeName": "n", "containers": [container]},
        },
    ]


def metrics(cpu: str, memory: str, at: str = "2026-01-05T07:00:00Z", pod: str = "web-5d9-aaaaa") -> Json:
    """A sample of the pod."""
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": pod, "namespace": "default"},
        "timestamp": at,
        "window": "15s",
        "containers": [{"name": "main", "usage": {"cpu": cpu, "memory": memory}}],
    }


def checkpoint(samples: list[PodUsage], *, junk: bool = False) -> Json:
    """The ConfigMap in which they are remembered for `default/web`."""
    name = WorkloadName("default", "Deployment", "web")
    data = {entry_key(name): entry_text(name, history_of(samples)), **({"junk": "{"} if junk else {})}
    metadata = {"name": shard_of(name), "namespace": "kerf-system", "labels": {"kerf.dev/usage-history": "v1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def written(folder: Path, *objects: Json) -> tuple[str, str]:
    """`-f` and a file with them."""
    path = folder / "in.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return "-f", str(path)


def test_the_known_answer_of_a_dump(kerf: Kerf) -> None:
    """002-4: 25 runs without requests, two samples each: p95 169m plus 15 %, peak 559 MiB plus 20 %."""
    code, out, _ = kerf("job/dagster-run", "-n", "data", *EXAMPLE, "-o", "json")
    told = json.loads(out)

    assert (0, "advice", 25) == (code, told["label"], told["pods"])
    assert [("cpu", 50, "169m", "195m"), ("memory", 50, "559Mi", "671Mi")] == [
        (row["resource"], row["samples"], row["p95"], row["advice"]) for row in told["rows"]
    ]
    assert [{"node": "node-1", "cpuPercent": 97}] == told["crowdedNodes"]


def test_the_patch_alone_is_what_kubectl_takes(kerf: Kerf, tmp_path: Path) -> None:
    """002-10: by containers' names, under the template; a limit moves only where the request would exceed it."""
    limits = {"cpu": "100m", "memory": "4Gi"}
    source = written(tmp_path, *deployment(limits), metrics("200m", "1Gi"))

    code, out, told = kerf("deploy/web", *source, "--patch")

    resources = {"requests": {"cpu": "230m", "memory": "1229Mi"}, "limits": {"cpu": "230m"}}
    expected = {"spec": {"template": {"spec": {"containers": [{"name": "main", "resources": resources}]}}}}
    assert (0, expected) == (code, yaml.safe_load(out))
    assert "note: the samples cover less than a day" in told


def test_checkpoints_and_samples_are_one_history(kerf: Kerf, tmp_path: Path) -> None:
    """A sample that is remembered already counts once; a broken entry beside it is a warning."""
    old = [
        PodUsage("default", "web-1", START_S - 3600 * n, 15, (ContainerUsage("main", 500, 2**30),)) for n in range(30)
    ]
    source = written(tmp_path, *deployment(), checkpoint(old, junk=True), metrics("100m", "1Mi"))

    code, out, err = kerf("deployment/web", *source, "-o", "json")

    assert (0, [30, 30], ["500m", "1Gi"]) == (
        code,
        [row["samples"] for row in json.loads(out)["rows"]],
        [row["peak"] for row in json.loads(out)["rows"]],
    )
    assert "warning: left out: ConfigMap kerf-system/kerf-usage-17: data.junk: expected a checkpoint" in err


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (("deployment/web",), 3, "Deployment default/web: no advice, because nothing is known"),
        (("deployment/wob",), 1, "error: deployment/wob not found; nearest known: default/web"),
        (("job/web",), 1, "error: job/web not found; the input has no job"),
        (("node/web",), 2, "expected one of pod, deployment, statefulset, replicaset, job, cronjob, then"),
        (("deployment/web", "--prometheus", "file:///etc"), 2, "expected a URL such as http://"),
        (("deployment/web", "--prometheus", "http://127.0.0.1:1"), 1, "cannot be reached: Connection refused"),
        (("deployment/web", "--prometheus", "http://x", "--prometheus-token-file", "/no"), 2, "No such file"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    kerf: Kerf, tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    """Without evidence exit code 3; nothing is guessed."""
    got, out, err = kerf(*arguments, *written(tmp_path, *deployment(), metrics("1", "1", pod="gone")))

    assert code == got
    assert told in out + err
    assert "Traceback" not in err


def test_a_cluster_is_asked_and_without_a_metrics_server_that_is_one_line(kerf: Kerf, tmp_path: Path) -> None:
    """The samples of now with what is remembered; a 404 is a note, and then there is no advice."""
    workload, pod = deployment()
    answers: dict[str, tuple[int, object]] = {
        "/apis": (200, {"groups": []}),
        "/apis/apps/v1/deployments": (200, listed("Deployment", workload)),
        "/api/v1/pods": (200, listed("Pod", pod)),
        "/apis/metrics.k8s.io/v1beta1/pods": (200, listed("PodMetrics", metrics("200m", "1Gi"))),
    }
    with serving(answers) as url:
        code, out, _ = kerf("deployment/web", "--kubeconfig", kubeconfig(tmp_path, url), "-o", "json")
    assert (0, ["230m", "1229Mi"]) == (code, [row["advice"] for row in json.loads(out)["rows"]])

    answers["/apis/metrics.k8s.io/v1beta1/pods"] = (404, {"message": "not found"})
    with serving(answers) as url:
        code, out, err = kerf("deployment/web", "--kubeconfig", kubeconfig(tmp_path, url))
    assert 3 == code
    assert "note: without usage: the cluster has no metrics.k8s.io (hint: install metrics-server)\n" in err


def listed(kind: str, *items: Json) -> Json:
    """A list as the API gives it, whose items do not say what they are."""
    versions = {"PodMetrics": "metrics.k8s.io/v1beta1", "Deployment": "apps/v1"}
    head = {"kind": f"{kind}List", "apiVersion": versions.get(kind, "v1"), "metadata": {"resourceVersion": "1"}}
    return {**head, "items": [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in items]}


# Prometheus.


class Series(ThreadingHTTPServer):
    """A Prometheus: `answers` are by metric name, an empty matrix for others.

    `fails` answers everything instead; `moved` is where it redirects to.
    """

    daemon_threads = True

    def __init__(
        self, answers: Mapping[str, list[Json]], fails: tuple[int, str] | None, token: str, moved: str
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Queries)
        self.answers, self.fails, self.token, self.moved = answers, fails, token, moved
        self.asked = list[Json]()


class _Queries(BaseHTTPRequestHandler):
    server: Series

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.asked.append({"path": parts.path, **asked})
        if self.server.moved and not parts.path.startswith("/prom"):
            self.send_response(302)
            self.send_header("Location", f"{self.server.moved}{self.path}")
            self.end_headers()
            return
        status, body = self.server.fails or (200, "")
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            status, body = 401, "Unauthorized"
        if not body:
            found = [held for metric, held in self.server.answers.items() if f"{metric}{{" in asked["query"]]
            data = {"resultType": "matrix", "result": found[0] if found else []}
            body = json.dumps({"status": "success", "data": data})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def prometheus(
    answers: Mapping[str, list[Json]] | None = None,
    *,
    fails: tuple[int, str] | None = None,
    token: str = "",
    moved: str = "",
) -> Iterator[tuple[str, list[Json]]]:
    """A server while it runs: its URL, and what was asked of it."""
    with Series(answers or {}, fails, token, moved) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.asked
        finally:
            server.shutdown()
            thread.join()


def series(*values: float | str, **labels: str) -> Json:
    """Of the container `main`, a value a minute."""
    points = [[START_S - 60 * number, str(value)] for number, value in enumerate(values)]
    return {"metric": {"pod": "web-5d9-zzzzz", "container": "main", **labels}, "values": points}


def test_prometheus_shows_pods_that_are_gone(kerf: Kerf, tmp_path: Path) -> None:
    """Cores become milli; what is no number, or negative, is left out; only pods of that name are asked for."""
    answers = {
        "container_cpu_usage_seconds_total": [series(0.1, 0.2, "NaN", "+Inf", -1)],
        "container_memory_working_set_bytes": [series(2**30)],
    }
    with prometheus(answers) as (url, asked):
        code, out, _ = kerf(
            "deployment/web", *written(tmp_path, *deployment()), "--prometheus", f"{url}/", "-o", "json"
        )

    assert (0, [(2, "230m"), (1, "1229Mi")]) == (
        code,
        [(row["samples"], row["advice"]) for row in json.loads(out)["rows"]],
    )
    assert {"/api/v1/query_range"} == {each["path"] for each in asked}
    assert 'namespace="default",pod=~"web-[a-z0-9]+-[a-z0-9]{5}",container!=""' in asked[0]["query"]
    assert 30 * 86_400 == float(asked[0]["end"]) - float(asked[0]["start"]) <= float(asked[0]["step"]) * 11_000


@pytest.mark.parametrize(
    "metric, labels, value",
    [
        ("hami_vgpu_memory_used_bytes", ("pod", "container"), 1000 * 2**20),
        ("vGPU_device_memory_usage_in_bytes", ("podname", "ctrname"), 1000 * 2**20),
        ("DCGM_FI_DEV_FB_USED", ("exported_pod", "exported_container"), 1000),
    ],
)
def test_gpu_memory_is_advised_to_pods_of_hami(
    kerf: Kerf, tmp_path: Path, metric: str, labels: tuple[str, str], value: float
) -> None:
    """As a limit, which is what HAMi reads; a percentage beside it would be refused and is taken away."""
    source = written(tmp_path, *deployment({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}))
    point = {"metric": dict(zip(labels, ("web-5d9-zzzzz", "main"), strict=True)), "values": [[START_S, str(value)]]}
    marker = f"({labels[0]}, {labels[1]}) ({metric}"
    with prometheus({marker: [point]}) as (url, _):
        code, out, _ = kerf("deployment/web", *source, "--prometheus", url, "--patch")

    (container,) = yaml.safe_load(out)["spec"]["template"]["spec"]["containers"]
    expected = {"limits": {"nvidia.com/gpumem": "1200", "nvidia.com/gpumem-percentage": None}}
    assert (0, expected) == (code, container["resources"])


def test_a_token_stays_with_its_host(kerf: Kerf, tmp_path: Path) -> None:
    """A redirect to another host is an error that names it, and that host is asked nothing."""
    token = tmp_path / "token"
    token.write_text("secret", encoding="utf-8")
    source = written(tmp_path, *deployment())
    with prometheus() as (other, asked), prometheus(moved=other) as (url, _):
        code, _, err = kerf("deployment/web", *source, "--prometheus", url, "--prometheus-token-file", str(token))

    assert (1, []) == (code, asked)
    assert f"error: --prometheus {url}: it redirects to {other}, which is not asked (hint: --prometheus {other})" in err


def test_a_redirect_within_the_host_is_followed(kerf: Kerf, tmp_path: Path) -> None:
    """As of a proxy that adds a path."""
    with prometheus(moved="/prom") as (url, asked):
        code, _, _ = kerf("deployment/web", *written(tmp_path, *deployment()), "--prometheus", url)

    assert 3 == code, "nothing is known of the workload there"
    assert {"/prom/api/v1/query_range", "/api/v1/query_range"} == {each["path"] for each in asked}


@pytest.mark.parametrize(
    "fails, told",
    [
        ((401, "no"), "it does not let us in (401) (hint: --prometheus-token-file FILE)"),
        ((200, "<html>"), "expected JSON of Prometheus, got '<html>'"),
        ((200, '{"status": "error", "error": "too many"}'), "too many"),
        (
            (200, '{"status": "success", "data": {"result": [7]}}'),
            "expected a matrix of samples, pairs of time and value",
        ),
        ((400, '{"status": "error", "error": "parse\\nerror"}'), "HTTP 400: parse error"),
        ((502, "<html>"), "HTTP 502: Bad Gateway"),
    ],
)
def test_a_prometheus_that_answers_otherwise_is_one_line(
    kerf: Kerf, tmp_path: Path, fails: tuple[int, str], told: str
) -> None:
    """With its address; exit code 1."""
    with prometheus(fails=fails) as (url, _):
        code, out, err = kerf("deployment/web", *written(tmp_path, *deployment()), "--prometheus", url)

    assert (1, "") == (code, out)
    assert f"error: --prometheus {url}: " in err
    assert told in err
    assert 1 == err.count("\n")


def test_a_token_lets_us_in_and_no_samples_are_no_evidence(kerf: Kerf, tmp_path: Path) -> None:
    """A server that knows nothing of these pods is no error, and no advice."""
    token = tmp_path / "token"
    token.write_text("secret\n", encoding="utf-8")
    source = written(tmp_path, *deployment())
    with prometheus(token="secret") as (url, _):
        code, out, err = kerf("deployment/web", *source, "--prometheus", url, "--prometheus-token-file", str(token))

    assert (3, "") == (code, err)
    assert "no advice" in out
