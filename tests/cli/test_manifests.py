"""`kerf manifests`: what it prints, what it refuses, and that the chart's generated files follow the same code."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kerf.cli.run.command import run
from kerf.kube.crds import crds
from kerf.kube.rbac import decision_roles, roles
from tests.cli.program import ROOT, kerf
from tools.generate_chart import CHART, documented, generated

IMAGE = ("--image", "example.com/kerf:1")
CRDS = ["CustomResourceDefinition"] * len(crds())
GATES = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
CHECKS = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
POLICIES = ["PriorityClass", *GATES, *CHECKS, *GATES]
ASKING = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role"]
ROLES = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", *2 * ["Role", "RoleBinding"], "ClusterRole", *ASKING]
TO_VIEW = "rbac.authorization.k8s.io/aggregate-to-view"
DEPLOYMENT = ["Service", "PodDisruptionBudget", "Deployment"]
GENERATED = generated((ROOT / CHART / "values.yaml").read_text(encoding="utf-8"))


def printed(*arguments: str) -> list[dict[str, Any]]:
    """The documents of a run that goes well."""
    done = kerf("manifests", "--cloud=kwok", *arguments)
    assert (0, "") == (done.returncode, done.stderr)
    return list(yaml.safe_load_all(done.stdout))


def pod_spec(*arguments: str) -> dict[str, Any]:
    """What the pods of the Deployment are."""
    spec: dict[str, Any] = printed("--deployment", *IMAGE, *arguments)[-1]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    "flags, kinds",
    [
        (("--crds",), CRDS),
        (("--policies",), POLICIES),
        (("--rbac",), ["Namespace", *ROLES]),
        (("--reader",), ["ClusterRole"]),
        (("--deployment", *IMAGE), ["Namespace", *DEPLOYMENT]),
        (("--rbac", "--crds"), ["Namespace", *CRDS, *ROLES]),
        (IMAGE, ["Namespace", *CRDS, *POLICIES, *ROLES, *DEPLOYMENT]),
    ],
)
def test_flags_choose_the_documents(flags: tuple[str, ...], kinds: list[str]) -> None:
    """Each flag adds its part, none means all; the order is that in which they can be applied."""
    assert kinds == [each["kind"] for each in printed(*flags)]


def test_without_an_image_all_but_the_deployment_is_printed() -> None:
    """No image is published, so there is none to fall back on; the note says so."""
    done = kerf("manifests", "--cloud=kwok")

    assert 0 == done.returncode
    assert ["Namespace", *CRDS, *POLICIES, *ROLES] == [each["kind"] for each in yaml.safe_load_all(done.stdout)]
    assert done.stderr.startswith("note: without Deployment, Service and PodDisruptionBudget: no image of Kerf is pub")


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("--deployment",), "--deployment: no image of Kerf is published"),
        (("--kubernetes-version", "new"), "expected a version such as 1.31, got 'new'"),
        (("--name", "9kerf"), "first a letter, last no -, got '9kerf'"),
        (("--namespace", "Kerf"), "first a letter or digit, last no -, got 'Kerf'"),
        (("--replicas", "0"), "0 is not in the range x>=1"),
        (("--", "--batch-idle=2"), "--batch-idle (KERF_BATCH_IDLE, key batch-idle): expected a duration"),
        (("--", "--nothing"), "No such option '--nothing'"),
        (("--cloud=aws", "--image=kerf"), "--cloud aws: expected the name of the EKS cluster"),
        (("--", "--log-level=loud"), "'loud' is not one of"),
        (("--", "--dry-run"), "--dry-run cannot be given to `kerf run` here: it is what --dry-run of `kerf manifests`"),
        (("--", "--metrics-address="), "--metrics-address cannot be given to `kerf run` here: the Service"),
        (("run",), "run: expected a flag of `kerf run`"),
    ],
)
def test_what_cannot_be_installed_is_refused(arguments: tuple[str, ...], told: str) -> None:
    """Wrong names, numbers and flags of `kerf run` are an error here, and not in the pod."""
    done = kerf("manifests", "--cloud=kwok", *arguments)

    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr


@pytest.mark.parametrize("arguments", [(), IMAGE, ("--rbac",), ("--deployment", *IMAGE), ("--dry-run",)])
def test_what_depends_on_the_cloud_is_not_printed_without_one(arguments: tuple[str, ...]) -> None:
    """One line and nothing to apply: a cloud that is only assumed would give a real cluster nodes without machines."""
    done = kerf("manifests", *arguments)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: --cloud: expected aws or kwok, got nothing (hint: aws launches EC2 instances")


@pytest.mark.parametrize("arguments", [("--crds",), ("--policies",), ("--reader",), ("--crds", "--policies")])
def test_what_every_cloud_needs_is_printed_without_one(arguments: tuple[str, ...]) -> None:
    """The hints of other commands name these parts: who follows one need not know the cloud."""
    done = kerf("manifests", *arguments)

    assert (0, "") == (done.returncode, done.stderr)
    assert "kind: " in done.stdout


def test_name_and_namespace_are_those_of_every_object() -> None:
    """Two installations share no object but the definitions."""
    objects = printed("--rbac", "--deployment", "--name", "left", "--namespace", "here", *IMAGE)

    assert {"left", "left-reader", "left-decisions"} == {each["metadata"]["name"] for each in objects[1:]}
    assert {"here", None, "kube-node-lease"} == {each["metadata"].get("namespace") for each in objects}
    assert "kerf-system" not in str(objects)


def test_roles_are_those_of_the_declared_accesses() -> None:
    """Rules and bindings come from the code; only labels are added."""
    given = printed("--rbac")[1:]

    for each in given:
        labels = each["metadata"].pop("labels")
        assert {"app.kubernetes.io/name": "kerf", "app.kubernetes.io/instance": "kerf"}.items() <= labels.items()
    own, others = given[: -len(ASKING) - 1], given[-len(ASKING) :]
    assert list(roles("kerf-system", "kerf", "kwok")) == own
    assert list(decision_roles("kerf-system", "kerf")) == others


def test_who_may_view_may_read_nodes_and_the_kinds_of_karpenter() -> None:
    """The server adds the role to `view` by its label; it has what lies in no namespace, and no write."""
    (role,) = printed("--reader", "--name", "left")

    assert ("left-reader", "true") == (role["metadata"]["name"], role["metadata"]["labels"][TO_VIEW])
    assert {"nodes", "nodepools", "nodeclaims", "nodeoverlays"} < {rule["resources"][0] for rule in role["rules"]}
    assert {("get", "list", "watch")} == {tuple(rule["verbs"]) for rule in role["rules"]}


def test_a_dry_run_has_the_flag_and_a_role_that_cannot_act() -> None:
    """One flag sets both, so that neither can be forgotten."""
    given = printed("--rbac", "--dry-run")[1 : -len(ASKING) - 1]
    for each in given:
        each["metadata"].pop("labels")

    assert "--dry-run" in pod_spec("--dry-run")["containers"][0]["args"]
    assert list(roles("kerf-system", "kerf", "kwok", is_dry_run=True)) == given


def test_a_dry_run_holds_no_pods() -> None:
    """It would open none of the gates that the policies give."""
    assert not set(POLICIES) & {each["kind"] for each in printed(*IMAGE, "--dry-run")}


@pytest.mark.parametrize(
    "version, left_out", [("1.29", {*GATES, *CHECKS}), ("v1.31.4-eks-1a2b3c4", {*GATES}), ("1.36", set())]
)
def test_an_older_server_gets_what_it_knows(version: str, left_out: set[str]) -> None:
    """`kubectl apply` of a kind that a server does not know fails; what holds pods then is said (G7)."""
    done = kerf("manifests", "--policies", f"--kubernetes-version={version}")

    assert [kind for kind in POLICIES if kind not in left_out] == [e["kind"] for e in yaml.safe_load_all(done.stdout)]
    assert bool(left_out) == ("does not serve MutatingAdmissionPolicy" in done.stderr)


def test_the_deployment_starts_kerf_run() -> None:
    """Every argument is a flag that `kerf run` has; it serves on all addresses of the pod and knows the pod's name."""
    container = pod_spec("--dry-run", "--", "--batch-idle=2s")["containers"][0]
    first, *flags = container["args"]
    given, rest, _ = run.make_parser(click.Context(run)).parse_args(flags)

    assert ("run", []) == (first, rest)
    assert ("0.0.0.0:8080", "0.0.0.0:8081") == (given["metrics_address"], given["health_address"])
    assert ("kerf-system", "kwok", True, "2s") == tuple(
        given[n] for n in ("namespace", "cloud", "dry_run", "batch_idle_s")
    )
    assert [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}] == container["env"]


def test_a_pod_may_do_nothing_that_it_does_not_need() -> None:
    """What the restricted Pod Security Standard asks for, and a root file system that cannot be written."""
    security = pod_spec()["containers"][0]["securityContext"]

    assert (65532, True, True) == tuple(security[k] for k in ("runAsUser", "runAsNonRoot", "readOnlyRootFilesystem"))
    assert (False, ["ALL"]) == (security["allowPrivilegeEscalation"], security["capabilities"]["drop"])
    assert {"type": "RuntimeDefault"} == security["seccompProfile"]


def test_kerf_does_not_run_on_nodes_that_it_may_remove() -> None:
    """Each replica is on a node of its own, and on none of a NodePool."""
    affinity, rule = pod_spec()["affinity"], "requiredDuringSchedulingIgnoredDuringExecution"
    pool = {"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}

    assert [{"matchExpressions": [pool]}] == affinity["nodeAffinity"][rule]["nodeSelectorTerms"]
    assert ["kubernetes.io/hostname"] == [term["topologyKey"] for term in affinity["podAntiAffinity"][rule]]


def test_json_and_yaml_say_the_same() -> None:
    """`-o json` is one List of the same objects."""
    assert printed(*IMAGE) == kerf("manifests", "--cloud=kwok", "-o", "json", *IMAGE).data["items"]


def test_the_same_bytes_for_any_hash_seed() -> None:
    """What is committed or compared must not change by itself."""
    flags = ("--cloud=kwok", *IMAGE)
    runs = {kerf("manifests", *flags, environment={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2", "3")}

    assert 1 == len(runs)


@pytest.mark.parametrize("path", GENERATED, ids=str)
def test_generated_files_of_the_chart_are_those_of_the_code(path: Path) -> None:
    """Roles, definitions, settings, schema and pages; `python tools/generate_chart.py` writes them."""
    assert GENERATED[path] == (ROOT / path).read_text(encoding="utf-8")


def test_the_chart_has_no_other_definitions() -> None:
    """A definition that the code no longer has would still be installed."""
    for folder in ("crds", "policies"):
        there = {path.relative_to(ROOT) for path in (ROOT / CHART / "files" / folder).iterdir()}
        assert {path for path in GENERATED if path.parent.name == folder} == there


def test_a_value_without_words_is_refused() -> None:
    """No value can be added without saying what it is."""
    with pytest.raises(ValueError, match=r"values.yaml:3: b: expected a comment"):
        documented("# -- Has one.\na: 1\nb: 2\n")
