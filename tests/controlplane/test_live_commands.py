"""The commands on a real cluster, asked by an ordinary reader of it: they say what its objects say, and act on none."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.cli.program import Result
from tests.cli.watching import watching
from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

KINDS = "nodes,pods,nodepools,nodeclaims,nodeoverlays,deployments,replicasets,daemonsets"
SLOW = {"launch": "1h", "register": "300ms", "devicesReady": "300ms"}


class Reader:
    """Runs `kerf`, or another program that is on the PATH, as the user `reader`."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        for name in ("kerf", "kubectl-kerf", "kubectl_complete-kerf"):
            self._provide(name)

    def _provide(self, name: str) -> None:
        """The console script, as pip makes it, also where the checkout was set up before there was one."""
        module = "completion" if "complete" in name else "main"
        function = "kubectl_entry" if "complete" in name else "entry"
        program = self.folder / name
        text = f"#!{sys.executable}\nfrom kerf.cli.{module} import {function}\n{function}()\n"
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def run(self, *command: str, stdin: str = "") -> Result:
        """Whatever its exit code."""
        kubectl = Path(self.plane.binaries.need("kubectl")).parent
        path = os.pathsep.join([str(self.folder), str(kubectl), os.defpath])
        environment = {"PATH": path, "KUBECONFIG": str(self.plane.kubeconfig("reader")), "HOME": str(self.folder)}
        done = subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, check=False)
        return Result(done.args, done.returncode, done.stdout, done.stderr)

    def kerf(self, *arguments: str, stdin: str = "") -> Result:
        """Of the cluster, unless the arguments have `-f`."""
        return self.run("kerf", *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def shared(binaries: Binaries) -> Iterator[Cluster]:
    """Three pods on two cards, and a fourth that waits for a card which no pool sells; Kerf has stopped."""
    with cluster(binaries, with_hami=True) as made:
        replica = made.start()
        made.apply("003-hami/nodepool.yaml")
        made.apply("003-hami/workload.yaml", lambda text: text.replace("replicas: 0", "replicas: 3"))
        made.until(lambda: 3 == len(made.pods("Running")), "three pods run")
        made.apply("003-hami/large.yaml")
        made.until(lambda: "needs 40000 MiB" in str(made.events("FailedScheduling")), "the fourth has no place")
        replica.program.terminate(30)
        yield made


@pytest.fixture
def reader(shared: Cluster, tmp_path: Path) -> Reader:
    """An ordinary one."""
    return Reader(shared.plane, tmp_path)


def test_the_role_of_a_reader_is_enough(reader: Reader) -> None:
    """`view` and what Kerf adds to it: not a word about what may not be seen."""
    for command in ("plan", "gpus", "nodes"):
        done = reader.kerf(command)
        assert ("", True) == (done.stderr, bool(done.stdout))


def test_a_plan_of_the_cluster_is_the_plan_of_its_dump(reader: Reader) -> None:
    """`kubectl get -o json | kerf plan -f -`: the same bytes but for the word of where it was read."""
    now = ("--now", "2030-01-01T00:00:00Z")
    dump = reader.run("kubectl", "get", KINDS, "-A", "-o", "json").stdout
    for command in (("plan",), ("plan", "-o", "json"), ("plan", "-o", "wide"), ("nodes",), ("gpus", "-o", "yaml")):
        live, piped = reader.kerf(*command, *now), reader.kerf(*command, *now, "-f", "-", stdin=dump)

        assert live.stdout == piped.stdout.replace("is not in the input", "is not in the cluster")
        assert (live.returncode, "") == (piped.returncode, piped.stderr)


def test_each_kind_is_explained(reader: Reader, shared: Cluster) -> None:
    """A pod that waits, a pod that runs, its node, the node's claim and their pool."""
    running = shared.pods("Running")[0]
    node, claim = running["spec"]["nodeName"], shared.names("nodeclaims")[0]
    waiting = reader.kerf("explain", "deployment/large")

    assert 3 == waiting.returncode
    assert "needs 40000 MiB on one GPU; the largest free is 22888" in waiting.stdout
    for thing, told in (
        (f"pod/{running['metadata']['name']}", f"on node {node}"),
        (f"node/{node}", "ready, stays"),
        (f"nodeclaim/{claim}", "ready, stays"),
        ("nodepool/g5-nodepool", "NodePool g5-nodepool: 2 nodes, 2.012 USD/h"),
    ):
        assert told in reader.kerf("explain", thing).stdout


def test_lint_finds_in_the_cluster_what_it_finds_in_its_dump(reader: Reader) -> None:
    """Named by objects instead of lines, without a word of what controllers have made, and no rule fails."""
    dump = reader.run("kubectl", "get", f"{KINDS},jobs,cronjobs,poddisruptionbudgets", "-A", "-o", "json").stdout
    live, piped = reader.kerf("lint", "-o", "json"), reader.kerf("lint", "-f", "-", "-o", "json", stdin=dump)
    found, again = (
        sorted((each["code"], each["object"]) for each in result.data["findings"]) for result in (live, piped)
    )

    assert ("KL039", "Deployment default/large") in found
    assert found == again
    assert [] == [each for each in found if each[0] in ("KL000", "KL001") or each[1].startswith(("Pod ", "NodeClaim "))]


def test_the_namespace_is_chosen_as_kubectl_does(reader: Reader, shared: Cluster) -> None:
    """-n and -l narrow what is planned; a namespace without pods needs nothing."""
    assert 3 == reader.kerf("plan", "-n", "default").returncode
    assert 3 == reader.kerf("plan", "-A").returncode
    assert 0 == reader.kerf("plan", "-n", "kube-system").returncode
    assert 0 == reader.kerf("plan", "-l", "app=other").returncode


def test_the_plug_in_is_the_same_program(reader: Reader) -> None:
    """kubectl finds `kubectl kerf` on the PATH, and asks its other program what completes it."""
    # Ages may have got wider meanwhile.
    own, plugged = (
        done.stdout.splitlines()[0] for done in (reader.kerf("nodes"), reader.run("kubectl", "kerf", "nodes"))
    )
    assert own.split() == plugged.split()
    assert "hint: kubectl kerf plan --help" in reader.run("kubectl", "kerf", "plan", "--nothing").stderr

    proposed = reader.run("kubectl", "__complete", "kerf", "nodes", "--wa").stdout.splitlines()
    assert "--watch\tWatch, and print again when something changes." == proposed[0]


def test_all_kinds_are_asked_for_at_one_version(reader: Reader, shared: Cluster) -> None:
    """The server answers for that very moment; the audit log shows what was asked."""
    before = len(shared.plane.audit_events())
    reader.kerf("plan")
    events = [event for event in shared.plane.audit_events()[before:] if event["user"]["username"] == "reader"]
    asked = [parse_qs(event["requestURI"].partition("?")[2]) for event in events if event["verb"] == "list"]
    exact = [query["resourceVersion"][0] for query in asked if query.get("resourceVersionMatch") == ["Exact"]]

    assert {200} == {event["responseStatus"]["code"] for event in events}
    assert (len(asked) - 1, 1) == (len(exact), len(set(exact)))


def test_a_watch_outlives_the_server(shared: Cluster) -> None:
    """What fails is told and tried again; once the server is back, so is what it shows."""
    with watching("nodes", f"--kubeconfig={shared.plane.kubeconfig('reader')}") as watch:
        watch.until("2 nodes")
        shared.plane.kill_apiserver()
        assert f"error: {shared.plane.url}: Connection refused" == watch.until("error:")

        shared.plane.start_apiserver()
        watch.until("2 nodes")
        assert 130 == watch.interrupt()


def test_what_is_being_launched_is_not_planned_again(binaries: Binaries, tmp_path: Path) -> None:
    """While the cloud takes its time: the claims are there, and nothing more is bought."""
    with cluster(binaries, with_hami=True, latencies=SLOW) as made:
        made.start()
        made.apply("003-hami/nodepool.yaml")
        made.apply("003-hami/workload.yaml", lambda text: text.replace("replicas: 0", "replicas: 3"))
        made.until(lambda: 2 == len(made.names("nodeclaims")), "two claims")
        done = Reader(made.plane, tmp_path).kerf("plan", "-o", "json")

        assert (0, [], 3) == (done.returncode, done.data["launches"], len(done.data["placements"]))
        assert 2 == len({each["node"] for each in done.data["placements"]})


def test_an_unwilling_cluster_is_one_line(binaries: Binaries, tmp_path: Path) -> None:
    """Forbidden, without our kinds, gone: exit 4 each time, with the way out."""
    options = ControlPlaneOptions(with_kwok=False, with_scheduler=False)
    with ControlPlane(binaries, options) as plane:
        reader = Reader(plane, tmp_path)
        forbidden = reader.kerf("plan")
        plane.kubectl("create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", "--user=reader")
        plane.wait_until(lambda: "forbidden" not in reader.kerf("nodes").stderr, 30, "the role counts")
        bare = reader.kerf("plan")
        url = plane.url
        plane.kill_apiserver()
        gone = reader.kerf("plan")

    assert [(4, "", 1)] * 3 == [(d.returncode, d.stdout, len(d.stderr.splitlines())) for d in (forbidden, bare, gone)]
    assert '(hint: grant {apiGroups: [""], resources: ["nodes"], verbs: ["list"]})' in forbidden.stderr
    assert "no NodePool of karpenter.sh/v1 (hint: kerf manifests --crds | kubectl apply" in bare.stderr
    assert f"error: {url}: Connection refused\n" == gone.stderr
