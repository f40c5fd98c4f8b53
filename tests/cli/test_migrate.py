"""`kerf migrate` as a user runs it, above all on document 001's Provisioner."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.canned import kubeconfig, serving
from tests.cli.program import ROOT, kerf

OF_001 = "examples/001-migrate/provisioner.yaml"
BETA = """
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: p}
spec: {template: {spec: {nodeClassRef: {name: default}, requirements: []}}}
"""


def report(tmp_path: Path, *arguments: str) -> Any:
    """What `--report` writes."""
    file = tmp_path / "report.json"
    kerf("migrate", *arguments, "--report", str(file))
    return json.loads(file.read_text(encoding="utf-8"))


def field(told: Any, name: str) -> Any:
    """A field of the report by its old path, or by its new one where it was added."""
    return next(each for each in told["fields"] if (each["field"] or each["now"]) == name)


def test_a_plan_of_a_retired_kind_points_to_migrate() -> None:
    """001-5: with line and kind."""
    done = kerf("plan", "-f", OF_001)

    assert 2 == done.returncode
    assert done.stderr.startswith(f"error: {OF_001}:3:7: kind: expected a kind of today such as NodePool, got ")
    assert "<retired karpenter.sh/v1alpha5 Provisioner> (hint: `kerf migrate` rewrites it to NodePool)" in done.stderr


def test_document_001_is_written_as_the_example_has_it() -> None:
    """Only manifests on stdout, so that they can be piped; exit 3, since placeholders are left."""
    done = kerf("migrate", "-f", OF_001)

    assert 3 == done.returncode
    assert (ROOT / "examples/001-migrate/migrated.yaml").read_text(encoding="utf-8") == done.stdout


def test_document_001_line_by_line(tmp_path: Path) -> None:
    """001-6 to 001-10 and 001-14."""
    told = report(tmp_path, "-f", OF_001)

    kind = field(told, "spec.requirements[1]")
    assert ("not kept", True, f"{OF_001}:11:7") == (kind["outcome"], kind["needsLook"], kind["place"])
    assert "nvidia.com/gpu is no label value, which has no `/`" in kind["why"]
    assert "karpenter.k8s.aws/instance-gpu-manufacturer In [nvidia]" in kind["hint"]
    assert "kept" == field(told, "spec.requirements[0]")["outcome"]
    limit = field(told, 'spec.limits.resources["nvidia.com/gpu"]')
    assert ("kept", False) == (limit["outcome"], limit["needsLook"])
    assert "karpenter.k8s.aws/instance-gpu-count Lt 5" in limit["hint"]
    types = field(told, "spec.provider.instanceTypes")
    assert "p3.2xlarge has a price in us-east-1 but is sold in no zone there any more" in types["why"]
    assert "g4dn.xlarge" not in types["why"]
    assert "sold with as many GPUs: g4dn.xlarge (T4), g6.xlarge (L4), g5.xlarge (A10G)" == types["hint"]
    assert "kept" == field(told, "spec.provider.subnetSelector")["outcome"]
    assert "spec.disruption.consolidateAfter" == field(told, "spec.ttlSecondsAfterEmpty")["now"]
    placeholders = [each["now"] for each in told["fields"] if each["outcome"] == "placeholder"]
    assert ["spec.amiSelectorTerms", "spec.role", "spec.securityGroupSelectorTerms"] == placeholders


def test_what_is_written_can_be_planned() -> None:
    """With the pool's limit of four GPUs."""
    written = kerf("migrate", "-f", OF_001).stdout
    plan = kerf("plan", "-f", "-", "-f", "examples/000-gpu-pools/workload.yaml", "-o", "json", stdin=written)

    assert ["g4dn.xlarge"] * 4 == [launch["instanceType"] for launch in plan.data["launches"]]


def test_nothing_to_look_at() -> None:
    """Exit 0, from standard input; the report on stderr."""
    done = kerf("migrate", "-f", "-", stdin=BETA)

    assert 0 == done.returncode
    assert done.stdout.startswith("apiVersion: karpenter.sh/v1\nkind: NodePool\n")
    assert "NodePool p -> NodePool p\n" in done.stderr
    assert done.stderr.endswith("1 object written; fields: 2 kept; 0 to look at\n")


def test_json_as_kubectl_prints_it() -> None:
    """One object as it is, several as a List; JSON is read, too."""
    one = kerf("migrate", "-f", "-", "-o", "json", stdin=BETA)
    two = kerf("migrate", "-f", "-", "-o", "json", stdin=json.dumps({"kind": "List", "items": [one.data, one.data]}))

    assert "NodePool" == one.data["kind"]
    assert ["NodePool", "NodePool"] == [each["kind"] for each in two.data["items"]]


def test_an_unknown_type_is_reported(tmp_path: Path) -> None:
    """And one that another region sells is none of them."""
    text = BETA.replace(
        "[]", "[{key: node.kubernetes.io/instance-type, operator: In, values: [g99.xlarge, g5.xlarge]}]"
    )
    file = tmp_path / "pool.yaml"
    file.write_text(text, encoding="utf-8")

    assert (
        "g99.xlarge is no known instance type"
        == (field(report(tmp_path, "-f", str(file)), "spec.template.spec.requirements[0]")["why"])
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (("-f", "-"), BETA.replace("v1beta1", "v1beta2"), "expected karpenter.sh/v1beta1, got 'karpenter.sh/v1beta2'"),
        (("-f", "-"), "a: {", "stdin:2:1: expected YAML"),
        (("-f", "-", "--region", "moon"), BETA, "AWS region 'moon': expected one of"),
        (("-f", "-", "--report", "/nowhere/x"), BETA, "--report /nowhere/x: expected a file that can be written"),
    ],
)
def test_bad_input_writes_nothing(arguments: tuple[str, ...], stdin: str, told: str) -> None:
    """Exit 2, with a line of error."""
    done = kerf("migrate", *arguments, stdin=stdin)

    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


EVICT = {"metadata": {"annotations": {"karpenter.sh/do-not-evict": "true"}}, "spec": {"containers": []}}


def group(name: str, *versions: str) -> Any:
    """An API group as a server lists it."""
    return {"name": name, "versions": [{"groupVersion": f"{name}/{version}"} for version in versions]}


def listed(*items: Any) -> tuple[int, Any]:
    """The answer to a list."""
    return 200, {"metadata": {"resourceVersion": "7"}, "items": [*items]}


def made(name: str, spec: Any, **metadata: Any) -> Any:
    """An object as a server has it."""
    kept = {"uid": "u", "resourceVersion": "3", "managedFields": [{}], "creationTimestamp": "2024-01-01T00:00:00Z"}
    return {"metadata": {"name": name, **kept, **metadata}, "spec": spec, "status": {"was": "running"}}


def cluster(*versions: str) -> dict[str, tuple[int, Any]]:
    """One of Karpenter 0.31 whose server also serves NodePools in these versions."""
    owned = {"ownerReferences": [{"kind": "Operator", "name": "o", "controller": True}]}
    last = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
    groups = [group("karpenter.sh", "v1alpha5", *versions), group("karpenter.k8s.aws", "v1alpha1")]
    pool = {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": []}}}
    return {
        "/apis": (200, {"groups": groups}),
        "/apis/karpenter.sh/v1alpha5/provisioners": listed(made("old", {"providerRef": {"name": "c"}})),
        "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates": listed(made("c", {"amiFamily": "AL2"})),
        **{f"/apis/karpenter.sh/{version}/nodepools": listed(made("p", pool)) for version in versions},
        "/apis/apps/v1/deployments": listed(
            made("kept", {"template": EVICT}, namespace="a", **last),
            made("plain", {"template": {"spec": {"containers": []}}}, namespace="a"),
            made("owned", {"template": EVICT}, namespace="a", **owned),
        ),
    }


@pytest.mark.parametrize(("versions", "pools"), [(("v1beta1",), ["old", "p"]), (("v1", "v1beta1"), ["old"])])
def test_a_cluster_is_read_without_files(tmp_path: Path, versions: tuple[str, ...], pools: list[str]) -> None:
    """What changes is printed as manifests; what is in v1 already, is owned, or stays as it is, is not."""
    with serving(cluster(*versions)) as server:
        done = kerf("migrate", "-o", "json", "--kubeconfig", kubeconfig(tmp_path, server))

    items = done.data["items"]
    found = sorted((each["kind"], each["metadata"]["name"]) for each in items)
    assert sorted([("EC2NodeClass", "c"), ("Deployment", "kept"), *(("NodePool", name) for name in pools)]) == found
    (kept,) = (each for each in items if each["kind"] == "Deployment")
    assert {"name": "kept", "namespace": "a"} == kept["metadata"]
    assert {"karpenter.sh/do-not-disrupt": "true"} == kept["spec"]["template"]["metadata"]["annotations"]
    assert all("status" not in each for each in items)


def test_what_may_not_be_listed_is_left_out_with_a_note(tmp_path: Path) -> None:
    """The rest is migrated."""
    answers = cluster("v1beta1")
    answers["/apis/karpenter.sh/v1alpha5/provisioners"] = 403, {"message": "not you"}
    with serving(answers) as server:
        done = kerf("migrate", "-o", "json", "--kubeconfig", kubeconfig(tmp_path, server))

    assert "note: migrated without provisioners.karpenter.sh: " in done.stderr
    assert "p" in [each["metadata"]["name"] for each in done.data["items"]]
