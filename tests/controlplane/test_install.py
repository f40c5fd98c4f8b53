"""Installing on a real server: by `kerf manifests`, by the rendered chart, and by helm itself."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from kerf import __version__
from tests.cli.program import kerf
from tests.controlplane.chart import CHART, ROLES, Chart, Object, helm, rendered
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions

IMAGE = f"example.com/kerf:{__version__}"
OWN_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")
CRD = "CustomResourceDefinition"


def values_of(name: str) -> Object:
    """A values file of the chart's `ci` folder; an empty name is no values."""
    values: Object = yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8")) if name else {}
    return values


def manifests(*arguments: str) -> str:
    """What `kerf manifests` prints."""
    done = kerf("manifests", "--cloud=kwok", *arguments)
    assert 0 == done.returncode
    return done.stdout


def plain(objects: list[Object]) -> dict[tuple[str, ...], Object]:
    """By kind, namespace and name, without the labels and annotations that helm alone has."""
    for each in objects:
        metadata = each["metadata"]
        metadata["labels"] = {k: v for k, v in metadata.get("labels", {}).items() if k not in OWN_LABELS}
        if each["kind"] in (CRD, "PriorityClass") or each["kind"].endswith(("Policy", "PolicyBinding")):
            each["metadata"] = {"name": metadata["name"]}
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}


@pytest.fixture(scope="module")
def server(binaries: Binaries) -> Iterator[ControlPlane]:
    """A server of its own, since definitions come and go here and pods shall stay unscheduled."""
    with ControlPlane(binaries, ControlPlaneOptions(with_kwok=False, with_scheduler=False)) as plane:
        yield plane


def versions(server: ControlPlane, namespace: str) -> dict[str, str]:
    """The resourceVersion of all that an installation consists of; a controller's own writes count as well."""
    found = {}
    for kind in (CRD, "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"):
        for each in server.list(kind):
            if each["metadata"].get("namespace", namespace) == namespace:
                found[f"{kind}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
    return found


@pytest.mark.parametrize("name", ["", "full", "karpenter"])
def test_the_linter_has_nothing_to_say(binaries: Binaries, name: str) -> None:
    """`helm lint --strict` with the values as they are, with all of them changed, and with Karpenter's."""
    done = helm(binaries, "lint", "--strict", str(CHART), values=values_of(name))

    assert (0, "") == (done.returncode, done.stderr if name == "full" else "")
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("version", ["1.29", "1.31", "1.36"])
@pytest.mark.parametrize("is_dry_run", [False, True])
def test_the_chart_and_the_command_install_the_same(binaries: Binaries, is_dry_run: bool, version: str) -> None:
    """Object for object: definitions, roles, Service, PodDisruptionBudget, Deployment."""
    flags = (f"--kubernetes-version={version}", *(("--dry-run",) if is_dry_run else ()))
    command = [each for each in yaml.safe_load_all(manifests("--image", IMAGE, *flags)) if each["kind"] != "Namespace"]
    chart = rendered(binaries, {"settings": {"dryRun": is_dry_run}}, version=version)

    assert plain(command) == plain(list(chart.objects))


def test_names_of_the_release_reach_the_roles(binaries: Binaries) -> None:
    """Another release in another namespace has the same rules under its own name."""
    command = list(yaml.safe_load_all(manifests("--rbac", "--name", "left-kerf", "--namespace", "here")))[1:]
    chart = rendered(binaries, {}, name="left", namespace="here").roles
    for each in command + chart:
        each["metadata"].pop("labels")

    def order(role: Object) -> tuple[int, str, str]:
        metadata = role["metadata"]
        return ROLES.index(role["kind"]), metadata["name"], metadata.get("namespace", "")

    assert sorted(command, key=order) == sorted(chart, key=order)


def test_every_value_has_its_effect(binaries: Binaries) -> None:
    """Flags come from the values, in the order of `kerf run -h`."""
    chart = rendered(binaries, values_of("full"))

    assert [
        "run",
        "--namespace=kerf-system",
        "--metrics-address=127.0.0.1:2",
        "--metrics-auth",
        "--health-address=127.0.0.1:1",
        "--log-format=text",
        "--log-level=debug",
        "--cloud=kwok",
        "--acted-out-on-real-cluster",
        "--catalog=/etc/kerf/catalog.yaml",
        "--region=us-east-1",
        "--dry-run",
        "--managed-selector=team in (ml, web)",
        "--strategy=first-fit",
        "--batch-idle=2s",
        "--batch-max=1m30s",
        "--sold-out-most=1h",
    ] == chart.arguments(1, 2)
    assert {"POD_NAME": "kerf-0", "TZ": "UTC"} == chart.environment("kerf-0")
    assert [] == chart.of_kind(CRD)
    named = {each["metadata"]["name"] for each in chart.of_kind("ServiceAccount", "PodDisruptionBudget")}
    assert {"nodes", "autoscaler-decisions"} == named
    (network,) = chart.of_kind("NetworkPolicy")
    assert [["http-metrics"], ["http"]] == [[p["port"] for p in rule["ports"]] for rule in network["spec"]["ingress"]]
    assert ["PodMonitor", "ServiceMonitor"] == [e["kind"] for e in chart.of_kind("PodMonitor", "ServiceMonitor")]
    assert {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]} in [
        rule for role in chart.of_kind("ClusterRole") for rule in role["rules"]
    ]


def test_values_of_karpenter_are_taken_and_the_idle_ones_named(binaries: Binaries) -> None:
    """One values file serves both charts; what does nothing here is said after the installation."""
    values = values_of("karpenter")
    values["settings"]["cloud"] = "kwok"
    chart = rendered(binaries, values)
    notes = helm(binaries, "install", "kerf", str(CHART), "--dry-run=client", values=values).stdout

    assert ["--batch-idle=1s", "--batch-max=10s"] == chart.arguments(1, 2)[-2:]
    assert {"karpenter", "kerf-decisions"} == {e["metadata"]["name"] for e in chart.of_kind("ServiceAccount")}
    assert "  settings.interruptionQueue: of Karpenter's AWS provider" in notes
    assert "settings.batchMaxDuration" not in notes
    assert "settings.minValuesPolicy" not in notes


@pytest.mark.parametrize(
    "values, told",
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"replicas": "2"}, "at '/replicas': got string, want integer"),
        ({"logLevel": "loud"}, "at '/logLevel': value must be one of 'debug', 'info', 'warning', 'error'"),
        ({"settings": {"batchIdleDuration": "2"}}, "at '/settings/batchIdleDuration': '2' does not match pattern"),
        ({"settings": {"strategy": "luck"}}, "at '/settings/strategy': value must be one of '', 'cost', 'first-fit'"),
        ({"settings": {"cloud": "moon"}}, "at '/settings/cloud': value must be"),
        ({"controller": {"metrics": {"port": 0}}}, "at '/controller/metrics/port': minimum: got 0, want 1"),
        (
            {"controller": {"image": {"repository": "kerf"}}},
            "settings.cloud: expected aws or kwok, got nothing (hint: ",
        ),
        ({}, "controller.image.repository: expected the image to run, got none (hint: no image of Kerf is published"),
        (
            {"controller": {"image": {"repository": "public.ecr.aws/karpenter/controller"}}},
            "expected an image with `kerf` on its PATH, got Karpenter's, public.ecr.aws/karpenter/controller",
        ),
    ],
)
def test_wrong_values_are_refused_in_clear_words(binaries: Binaries, values: Mapping[str, Any], told: str) -> None:
    """The value, what was expected and what came, before anything is applied."""
    done = helm(binaries, "template", "kerf", str(CHART), values=values)

    assert (1, "") == (done.returncode, done.stdout)
    assert told in done.stderr


def installations(binaries: Binaries) -> dict[str, str]:
    """Both ways, each in a namespace of its own."""
    chart = rendered(binaries, {}, name="kerf-chart", namespace="by-chart")
    return {
        "by-command": manifests("--image", IMAGE, "--name", "kerf-command", "--namespace", "by-command"),
        "by-chart": yaml.safe_dump_all(chart.objects),
    }


@pytest.mark.parametrize("namespace", ["by-command", "by-chart"])
def test_the_server_accepts_an_installation(binaries: Binaries, server: ControlPlane, namespace: str) -> None:
    """As a server-side dry run and for real; under the restricted Pod Security Standard there is no warning."""
    text = installations(binaries)[namespace]
    labels = {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"}
    server.apply(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}], server_side=True
    )
    tried = server.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=text)
    done = server.kubectl("apply", "--server-side", "-f", "-", input=text)

    assert ("", "") == (tried.stderr, done.stderr)
    assert tried.stdout.replace(" (server dry run)", "") == done.stdout
    server.wait_until(lambda: 2 == len(server.list("Pod", namespace)), 30, "two pods of the Deployment")


@pytest.mark.parametrize("namespace", ["by-command", "by-chart"])
def test_a_second_installation_changes_nothing(binaries: Binaries, server: ControlPlane, namespace: str) -> None:
    """Applied again, no object has a new version."""
    text = installations(binaries)[namespace]
    server.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}], server_side=True)
    server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    crds = (CRD, "--all", "--timeout=30s")
    server.kubectl("wait", "--for=condition=Established", *crds)
    before = versions(server, namespace)
    server.kubectl("apply", "--server-side", "-f", "-", input=text)

    assert before == versions(server, namespace)


def test_helm_installs_upgrades_and_leaves_the_definitions(binaries: Binaries, server: ControlPlane) -> None:
    """A release that goes takes its roles along, and not the definitions with which all nodes would go."""
    place = (f"--kubeconfig={server.kubeconfig()}", "--namespace=by-helm")
    given = {"controller": {"image": {"repository": "example.com/kerf"}}, "settings": {"cloud": "kwok"}}
    own = ("--create-namespace", "--take-ownership", "--force-conflicts")
    installed = helm(binaries, "install", "kerf-helm", str(CHART), *place, *own, values=given)
    upgraded = helm(binaries, "upgrade", "kerf-helm", str(CHART), *place, values={**given, "replicas": 3})
    replicas = server.get("Deployment", "kerf-helm", "by-helm")
    removed = helm(binaries, "uninstall", "kerf-helm", *place)

    assert ("", "", "") == (installed.stderr, upgraded.stderr, removed.stderr)
    assert replicas is not None
    assert 3 == replicas["spec"]["replicas"]
    assert None is server.get("ClusterRole", "kerf-helm")
    assert None is not server.get(CRD, "nodepools.karpenter.sh")


def test_the_role_grants_what_it_says_and_no_more(binaries: Binaries, server: ControlPlane) -> None:
    """The account of the chart may make claims, and neither read secrets nor make workloads."""
    server.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kerf-system"}}])
    chart: Chart = rendered(binaries, {})
    server.apply(chart.of_kind(CRD), server_side=True)
    server.apply(chart.roles)

    def may(verb: str, resource: str) -> str:
        return server.kubectl("auth", "can-i", verb, resource, user="kerf", check=False).stdout.strip()

    assert ("yes", "yes") == (may("create", "nodeclaims.karpenter.sh"), may("patch", "pods/status"))
    assert ("no", "no") == (may("get", "secrets"), may("create", "deployments.apps"))


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.33", "1.35"])
def test_an_older_server_takes_what_is_printed_for_it(binaries: Binaries, version: str) -> None:
    """A server that emulates that version applies all of it; what it does not know is left out (G7)."""
    options = ControlPlaneOptions(apiserver_flags=(f"--emulated-version={version}",))
    with ControlPlane(binaries, options) as plane:
        served = plane.request("GET", "/version").good("version")
        plane.kubectl("apply", "--server-side", "-f", "-", input=manifests(f"--kubernetes-version={version}"))

        assert version == f"{served['emulationMajor']}.{served['emulationMinor']}"
        assert plane.get("PriorityClass", "kerf-opportunistic") is not None
