"""What `kerf run` says of a real server that will not do: one line, what is missing, exit 4; and what it lives with."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kerf.kube.crds import crds
from kerf.kube.rbac import roles
from tests.controlplane.cluster import LATENCIES
from tools.controlplane.installation import NAMESPACE, Installation, Replica
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

Object = dict[str, Any]
HINT = "(hint: kerf manifests --crds | kubectl apply --server-side -f -)"


@pytest.fixture(scope="module")
def installed(binaries: Binaries) -> Iterator[Installation]:
    """On a server of its own, because definitions and roles come and go here."""
    with ControlPlane(binaries, ControlPlaneOptions(with_kwok=False, with_scheduler=False)) as plane:
        yield Installation(plane)


@pytest.fixture
def installation(installed: Installation) -> Installation:
    """With all that Kerf needs, until a test takes some of it away."""
    installed.prepare(crds(), roles(NAMESPACE, "kerf", "kwok"), LATENCIES)
    return installed


def refused(replica: Replica) -> str:
    """What it says, in the one line besides its log, when it ends by itself with exit 4."""
    assert 4 == replica.program.wait(30)
    lines = replica.program.log.read_text(encoding="utf-8").splitlines()
    (told,) = [line for line in lines if not line.startswith("timestamp=")]
    return told.removeprefix("error: ")


def without(installation: Installation, group: str, resource: str, verb: str) -> None:
    """Take one verb out of Kerf's role."""
    role: Object = deepcopy(next(each for each in roles(NAMESPACE, "kerf", "kwok") if each["kind"] == "ClusterRole"))
    for rule in role["rules"]:
        if group in rule["apiGroups"] and resource in rule["resources"] and "resourceNames" not in rule:
            rule["verbs"].remove(verb)
    role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
    installation.plane.kubectl("replace", "-f", "-", input=json.dumps(role))


@pytest.mark.parametrize(
    "resource, verb, group",
    [("nodeclaims", "create", "karpenter.sh"), ("nodepools/status", "patch", "karpenter.sh"), ("pods", "watch", "")],
)
def test_a_verb_that_the_role_lacks_is_named_with_the_line_that_grants_it(
    installation: Installation, resource: str, verb: str, group: str
) -> None:
    """At the start, and not hours later on the one object that needs it."""
    without(installation, group, resource, verb)
    line = f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'

    assert f"forbidden: the role lacks 1 rule (hint: grant {line})" == refused(installation.run())


def test_who_may_only_look_can_run_dry(installation: Installation) -> None:
    """A dry run asks for no verb that changes anything but its own Lease, and starts with the role for it."""
    installation.plane.apply(roles(NAMESPACE, "kerf", "kwok", is_dry_run=True))
    installation.start("--dry-run").program.terminate(10)


def test_a_user_without_any_role(installation: Installation) -> None:
    """A line of the role for each of a few resources, and the command that grants all of them."""
    told = refused(installation.run(user="reader"))

    assert told.startswith("forbidden: the role lacks ")
    assert 5 == told.count("{apiGroups: ")
    assert told.endswith("; or all of them: kerf manifests --rbac --cloud kwok | kubectl apply --server-side -f -)")


def test_a_token_that_the_server_does_not_know(installation: Installation, tmp_path: Path) -> None:
    """401: wrong, or expired."""
    path = changed(installation, tmp_path, lambda config: config["users"][0].update(user={"token": "yesterday's"}))
    told = refused(installation.run(f"--kubeconfig={path}"))
    said = "Unauthorized (401): the server does not know these credentials, or they have expired"

    assert f"{installation.plane.url}: {said}" == told


def test_a_server_without_our_definitions(installation: Installation) -> None:
    """And how to get them."""
    installation.plane.kubectl("delete", "crd", "nodepools.karpenter.sh")

    assert f"the cluster has no NodePool of karpenter.sh/v1 {HINT}" == refused(installation.run())


def test_a_server_with_an_older_version_of_them(installation: Installation) -> None:
    """Karpenter before 1.0 had NodePools of v1beta1, which Kerf does not read."""
    plane = installation.plane
    plane.kubectl("delete", "crd", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh")
    old: Object = deepcopy(next(each for each in crds() if each["spec"]["names"]["kind"] == "NodePool"))
    old["spec"]["versions"][0]["name"] = "v1beta1"
    plane.apply([old], server_side=True)
    served = "/apis/karpenter.sh/v1beta1/nodepools"
    plane.wait_until(lambda: 200 == plane.request("GET", served).status, 30, "it is served")
    told = refused(installation.run())
    plane.kubectl("delete", "crd", "nodepools.karpenter.sh")

    assert f"the cluster has no NodePool of karpenter.sh/v1, only karpenter.sh/v1beta1 {HINT}" == told


def test_a_server_without_overlays_is_lived_with(installation: Installation) -> None:
    """They are optional: a log line says that they are not used."""
    installation.plane.kubectl("delete", "crd", "nodeoverlays.karpenter.sh")
    replica = installation.start()
    said = [line for line in replica.program.log.read_text().splitlines() if "event=degraded" in line]

    assert 1 == len(said)
    assert "no NodeOverlay of karpenter.sh/v1alpha1" in said[0]
    assert 0 == replica.program.terminate(10)


def test_credentials_that_are_replaced_while_kerf_runs_are_taken_up(installation: Installation, tmp_path: Path) -> None:
    """An exec plug-in is asked again when its token is refused: Kerf leads on, in the same process."""
    token = tmp_path / "token"
    token.write_text(credential(installation, "first"), encoding="utf-8")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [str(token)]}
    path = changed(installation, tmp_path, lambda config: config["users"][0].update(user={"exec": plugin}))
    replica = installation.start(f"--kubeconfig={path}")
    plane = installation.plane
    plane.wait_until(lambda: 1 == replica.metric("kerf_leading"), 30, "it leads")
    token.write_text(credential(installation, "second"), encoding="utf-8")
    # A token that is bound to an object ends with it.
    plane.delete("Secret", "first", NAMESPACE)

    plane.wait_until(lambda: 1 <= replica.metric("kerf_api_calls_total", answer="401"), 60, "the old one is refused")
    after = replica.metric("kerf_api_calls_total", verb="update", answer="200")
    plane.wait_until(
        lambda: after + 3 <= replica.metric("kerf_api_calls_total", verb="update", answer="200"), 60, "it renews"
    )
    assert "deposed" not in replica.program.tail(1000)
    assert (True, "ok\n") == replica.ready()


def changed(installation: Installation, folder: Path, change: Callable[[Object], None]) -> Path:
    """A kubeconfig as Kerf's own, changed."""
    config: Object = json.loads(installation.plane.kubeconfig("kerf").read_text(encoding="utf-8"))
    change(config)
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def credential(installation: Installation, secret: str) -> str:
    """An ExecCredential with a token of Kerf's service account that lives as long as a Secret of that name."""
    plane = installation.plane
    plane.kubectl("-n", NAMESPACE, "create", "secret", "generic", secret)
    uid = (plane.get("Secret", secret, NAMESPACE) or {})["metadata"]["uid"]
    bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": uid}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/kerf/token"
    issued = plane.request("POST", path, {"spec": {"boundObjectRef": bound}}).good("a token")
    status = {"token": issued["status"]["token"]}
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
