"""`kerf snapshot`, and the plan of that moment made again."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.cli.main import run
from kerf.kube import resources
from kerf.kube.resources import Resource
from tests.catalog.test_kwok_catalogue import entry
from tests.cli.canned import kubeconfig, serving
from tests.cli.plan.test_plan import hami_map
from tests.cli.program import CLUSTER, POOL_000, POOL_003, ROOT, THREE, WORKLOAD_000, WORKLOAD_003, files

NOW = "2026-01-05T12:00:00Z"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kerf-system/leases/kerf-leader-election"
TOKEN = "/api/v1/namespaces/kerf-system/serviceaccounts/kerf-decisions/token"
PROXY = "/api/v1/namespaces/kerf-system/pods/kerf-0:8080/proxy/debug/decisions"
SOLD_OUT = {"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand", "reason": "sold out"}
LEADER = {
    "settings": {
        "strategy": "first-fit",
        "follow": "pin",
        "preferencePolicy": "Ignore",
        "minValuesPolicy": "Strict",
        "pluginNamespaces": ["gpus"],
    },
    "catalogue": {"name": "aws", "region": "us-east-1"},
    "market": {
        "soldOut": [{**SOLD_OUT, "until": "2026-01-05T12:03:00.5Z"}],
        "backOffs": [
            {"nodePool": "g5", "instanceType": "g5.xlarge", "until": "2026-01-05T12:05:00Z", "reason": "never joined"}
        ],
    },
    "decisions": [
        {
            "at": "2026-01-05T11:59:00Z",
            "stateVersion": 7,
            "launches": [],
            "launchesCount": 0,
            "deletions": [],
            "deletionsCount": 0,
            "relabels": 0,
            "placedOnNodes": 0,
            "unplaced": {"limits": 2},
        }
    ],
}


def lists() -> dict[str, tuple[int, object]]:
    """The cluster of the tests' data, as a server answers for it."""
    served = [each for each in vars(resources).values() if isinstance(each, Resource)]
    paths = {(each.api_version, each.kind): each.path() for each in served}
    found: dict[str, list[Any]] = {}
    for raw in yaml.safe_load_all((ROOT / CLUSTER).read_text(encoding="utf-8")):
        found.setdefault(paths[raw["apiVersion"], raw["kind"]], []).append(raw)
    return {
        "/apis": (200, {"groups": [{"name": "karpenter.k8s.aws"}]}),
        **{
            path: (200, {"kind": f"{kind}List", "apiVersion": api, "metadata": {}, "items": found.get(path, [])})
            for (api, kind), path in paths.items()
        },
    }


def answering(leader: object = None) -> dict[str, tuple[int, object]]:
    """The same with a leader, whose pod answers this."""
    held, token = {"spec": {"holderIdentity": "kerf-0_uuid"}}, {"status": {"token": "t"}}
    return {**lists(), LEASE: (200, held), TOKEN: (201, token), PROXY: (200, LEADER if leader is None else leader)}


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


class Here:
    """Runs commands in this process and keeps what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capsys, self.folder, self.err = capsys, folder, ""

    def __call__(self, *arguments: str) -> str:
        """Standard output; it must not fail."""
        code = run(arguments)
        printed = self._capsys.readouterr()
        self.err = printed.err
        assert code in (0, 3), printed.err
        return printed.out

    def dump(self, *arguments: str) -> str:
        """The path of a dump."""
        path = self.folder / "dump"
        path.write_text(self("snapshot", *arguments), encoding="utf-8")
        return str(path)


@pytest.fixture
def kerf(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The program."""
    return Here(capsys, tmp_path)


def header(path: str) -> Any:
    """The first object of a dump."""
    return json.loads(Path(path).read_text(encoding="utf-8"))["items"][0]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_live_plan_is_made_again_without_the_cluster(kerf: Here, output: str) -> None:
    """Byte for byte, in every form of output, and nothing has to be said again: not the instant, not the place."""
    with serving(lists()) as server:
        target = ("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)
        dump = kerf.dump(*target, "-o", output)
        live = [kerf("plan", *target, "-o", form) for form in ("wide", "json")]

    assert live == [kerf("plan", "--replay", dump, "-o", form) for form in ("wide", "json")]
    assert "is not in the cluster" in live[0]


def test_the_instant_is_that_of_the_clock_to_the_microsecond(kerf: Here) -> None:
    """Objects that state later or earlier instants do not move it."""
    with serving(lists()) as server:
        dump = kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server))
    first, second = (kerf("plan", "--replay", dump, "-o", "json") for _ in range(2))

    assert first == second
    assert header(dump)["takenAt"] > NOW


@pytest.mark.parametrize("paths", [(CLUSTER,), (POOL_000, WORKLOAD_000)])
def test_manifests_are_planned_from_their_dump_as_from_themselves(kerf: Here, paths: tuple[str, ...]) -> None:
    """Replayed, and read as any other input."""
    dump, direct = kerf.dump(*files(*paths)), kerf("plan", *files(*paths))

    assert direct == kerf("plan", "--replay", dump) == kerf("plan", "-f", dump)


def test_what_files_lack_is_said_of_their_dump_too(kerf: Here) -> None:
    """A node without its pods, and pods whose PriorityClass is not there."""
    pod = {"containers": [{"name": "a", "image": "b"}], "priorityClassName": "gone"}
    objects = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": pod},
    ]
    path = kerf.folder / "part.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
    pool = ROOT / POOL_000
    direct = kerf("plan", "-f", str(path), "-f", str(pool))
    dump = kerf.dump("-f", str(path), "-f", str(pool))

    assert "the input has no pod with a node" in direct
    assert "the input has no PriorityClass gone" in direct
    assert direct == kerf("plan", "--replay", dump)


def test_a_dump_of_a_dump_is_the_same(kerf: Here) -> None:
    """So a full one can be cut later."""
    with serving(answering()) as server:
        first = Path(kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)).read_text()
    again = kerf("snapshot", "-f", str(kerf.folder / "dump"))

    assert first == again


def test_what_the_leader_remembers_is_replayed(kerf: Here) -> None:
    """Its stock-outs, back-offs, settings and catalogue; what is over at another --now counts no more."""
    with serving(answering()) as server:
        dump = kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)
    kerf("plan", "--replay", dump)

    assert LEADER["decisions"] == header(dump)["decisions"]
    assert LEADER["settings"] == header(dump)["settings"]
    assert "note: replayed with the leader's 1 sold-out offering and 1 back-off\n" in kerf.err
    kerf("plan", "--replay", dump, "--now", "2026-01-05T12:04:00Z")
    assert "0 sold-out offerings and 1 back-off\n" in kerf.err


def test_a_type_that_the_leader_backs_off_from_is_not_planned(kerf: Here) -> None:
    """The plan of files alone would buy it."""
    backed_off = {"nodePool": "gpu-pool-1", "instanceType": "g5.2xlarge", "until": "2030-01-01T00:00:00Z"}
    dump = kerf.dump(*files(POOL_000, WORKLOAD_000), "--now", NOW)
    content = json.loads(Path(dump).read_text(encoding="utf-8"))
    content["items"][0]["market"]["backOffs"] = [backed_off]
    Path(dump).write_text(json.dumps(content), encoding="utf-8")

    assert "launch  g5.2xlarge" in kerf("plan", "-f", dump)
    assert "launch  g5.2xlarge" not in kerf("plan", "--replay", dump)


@pytest.mark.parametrize(
    "answers, why",
    [
        ({}, "no replica holds the Lease kerf-leader-election in namespace kerf-system"),
        ({TOKEN: (403, {"message": "no tokens"})}, 'forbidden: no tokens (hint: grant {apiGroups: [""]'),
        ({TOKEN: (404, {"message": "no account"})}, "no account"),
        ({PROXY: (403, {"message": "no proxy"})}, 'resources: ["pods/proxy"]'),
        ({PROXY: (503, {"message": "this replica does not lead"})}, "HTTP 503: this replica does not lead"),
        ({PROXY: (200, "<html>")}, "expected JSON, got text/html"),
        ({PROXY: (200, {"market": {"soldOut": [1]}})}, "market.soldOut[0]: expected a mapping"),
    ],
)
def test_without_the_leader_the_file_says_so(kerf: Here, answers: dict[str, Any], why: str) -> None:
    """On stderr, in the header, and when it is replayed; the rest is there."""
    with serving({**answering(), **answers} if answers else lists()) as server:
        dump = kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)

    told = "the leader's stock-outs, back-offs and decisions: "
    assert f"note: without {told}" in kerf.err
    assert why in kerf.err
    assert any(line.startswith(told) and why in line for line in header(dump)["missing"])
    kerf("plan", "--replay", dump)
    assert f"note: the dump was taken without {told}" in kerf.err


def a_cluster_with_maps(folder: Path) -> tuple[str, ...]:
    """A pool and pods of HAMi, its configuration in the namespace `gpus`, and another in the usual one."""
    maps = folder / "maps.yaml"
    maps.write_text(hami_map("gpus", 1) + hami_map("kube-system", 4), encoding="utf-8")
    return (*files(POOL_003, WORKLOAD_003), "-f", str(maps))


def test_plugins_are_replayed_in_the_namespaces_of_the_dump(kerf: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte where the environment names others; what is elsewhere decides nothing and is not in the dump."""
    given = a_cluster_with_maps(kerf.folder)
    usual = kerf("plan", *given, *THREE)
    monkeypatch.setenv("KERF_PLUGIN_NAMESPACES", "gpus")
    dump, own = kerf.dump(*given), kerf("plan", *given, *THREE)
    monkeypatch.delenv("KERF_PLUGIN_NAMESPACES")

    assert usual != own == kerf("plan", "--replay", dump, *THREE)
    assert "kube-system/hami-scheduler-device" not in kerf.err
    assert ["gpus"] == header(dump)["settings"]["pluginNamespaces"]
    assert "kube-system" not in Path(dump).read_text(encoding="utf-8")


@pytest.mark.parametrize("stated, expected", [({"pluginNamespaces": ["gpus"]}, ["gpus"]), ({}, ["here"])])
def test_the_leader_says_where_plugins_are(
    kerf: Here, monkeypatch: pytest.MonkeyPatch, stated: dict[str, Any], expected: list[str]
) -> None:
    """An older one does not; then the environment says it."""
    monkeypatch.setenv("KERF_PLUGIN_NAMESPACES", "here")
    with serving(answering({**LEADER, "settings": stated})) as server:
        dump = kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)

    assert expected == header(dump)["settings"]["pluginNamespaces"]


def test_a_leaders_catalogue_file_is_not_looked_for_here(kerf: Here) -> None:
    """It is in the leader's pod; a file of that name here is another, and nothing of it gets into the dump."""
    path = kerf.folder / "private"
    path.write_text("private", encoding="utf-8")
    with serving(answering({**LEADER, "catalogue": {"name": str(path)}})) as server:
        dump = kerf.dump("--kubeconfig", kubeconfig(kerf.folder, server), "--now", NOW)

    assert "note: without the leader's catalogue, a file in its pod" in kerf.err
    assert "text" not in header(dump)["catalogue"]


def test_a_catalogue_file_is_part_of_the_dump(kerf: Here, tmp_path: Path) -> None:
    """So it is planned with the same prices where the file is not."""
    catalogue = tmp_path / "types.json"
    catalogue.write_text(json.dumps([entry()]), encoding="utf-8")
    given = (*files(POOL_000, WORKLOAD_000), "--catalog", str(catalogue))
    dump, direct = kerf.dump(*given), kerf("plan", *given)
    catalogue.unlink()

    assert direct == kerf("plan", "--replay", dump)


def test_other_prices_than_those_of_the_dump_are_said(kerf: Here) -> None:
    """A newer catalogue may make another plan of the same dump."""
    dump = kerf.dump(*files(POOL_000, WORKLOAD_000))
    text = Path(dump).read_text(encoding="utf-8")
    Path(dump).write_text(text.replace('"digest":"sha256:', '"digest":"sha256:0'), encoding="utf-8")
    kerf("plan", "--replay", dump)

    assert kerf.err.startswith("warning: the prices are not those of the dump (on-demand prices of AWS us-east-1")


def test_what_no_decision_reads_is_not_in_it(kerf: Here, tmp_path: Path) -> None:
    """Secrets, ConfigMaps of others, images; and of a full dump what is too large, which is said."""
    container = {"name": "main", "image": "private.example/a", "args": ["x" * 300_000]}
    named = {"name": "a", "namespace": "team"}
    objects = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": {"containers": [container]}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": named, "data": {"a": "private"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"a": "private"}},
    ]
    manifest = tmp_path / "in.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")

    assert "private" not in kerf("snapshot", "-f", str(manifest))
    assert "private" not in kerf("snapshot", "-f", str(manifest), "--full")
    assert "note: Pod team/a: larger than 256 KiB, cut to what Kerf reads\n" in kerf.err


@pytest.mark.parametrize(
    "broken", [b"{", b"\x00\x01", b"apiVersion: kerf.dev/v1\nkind: ClusterDump\n---\n{", "a: 1".encode("utf-16")]
)
def test_a_file_that_cannot_be_read_whole_is_not_replayed(tmp_path: Path, broken: bytes) -> None:
    """What is left of it would be planned as if it were the cluster."""
    file = tmp_path / "dump.yaml"
    file.write_bytes(broken)

    assert 2 == run(["plan", "--replay", str(file)])
    assert 2 == run(["plan", "--replay", str(tmp_path / "none")])


def test_a_file_without_a_header_is_not_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """It states no instant and no market: it is an input like any other."""
    assert 2 == run(["plan", "--replay", POOL_000])
    assert "expected a dump of kerf snapshot, got no ClusterDump (hint: give it with -f)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, broken",
    [('"takenBy":', '"takenBy":5,"was":'), ('"kind":"List"', '"kind":"Lost"'), ('"place":', '"place":"moon","was":')],
)
def test_a_dump_whose_header_is_damaged_is_not_replayed(kerf: Here, text: str, broken: str) -> None:
    """Without the instant and the market that it states, it would be another plan."""
    path = Path(kerf.dump(*files(CLUSTER)))
    written = path.read_text(encoding="utf-8")
    assert text in written
    path.write_text(written.replace(text, broken, 1), encoding="utf-8")

    assert 2 == run(["plan", "--replay", str(path)])


def test_half_of_a_dump_is_noticed(kerf: Here) -> None:
    """One in YAML ends with a mark: cut between two documents it is good YAML."""
    path = Path(kerf.dump(*files(CLUSTER), "-o", "yaml"))
    kerf("plan", "--replay", str(path))
    assert "a part of it may be missing" not in kerf.err

    head, _, _ = path.read_text(encoding="utf-8").rpartition("---\n")
    path.write_text(head, encoding="utf-8")
    kerf("plan", "--replay", str(path))
    assert "does not end with ..., as a dump in YAML does: a part of it may be missing" in kerf.err
