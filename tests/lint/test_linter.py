"""Order, places, and that no fault hides anything else."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from kerf.catalog import load_market
from kerf.errors import InputError
from kerf.lint import registry
from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Severity
from kerf.lint.linter import lint
from kerf.lint.registry import Rule
from kerf.lint.rules import chosen, rules
from kerf.lint.subject import Subject
from kerf.manifests.read import Documents, parse
from tests.examples import examples
from tests.lint.disturbed import disturbed
from tests.lint.looking import codes, looked, only
from tests.lint.test_cases import CASES

IDLE = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main}]}\n"
POOL = """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    spec:
      nodeClassRef: {group: %s, kind: %s, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
  limits: {cpu: %d}
"""


def test_a_document_that_cannot_be_parsed_hides_no_other() -> None:
    """Its error has the place, and the others are looked at."""
    found = looked(IDLE % "one" + "---\nkind: [\n---\n" + IDLE % "two" + "---\ntext\n")

    assert ["KL040", "KL040"] == codes(found)
    assert ["input.yaml:7:1", "input.yaml:13:1"] == [str(error).partition(": ")[0] for error in found.errors]


def test_what_is_no_object_is_passed_over() -> None:
    """A folder may have files of other programs; rules of Prometheus are looked at."""
    found = looked("- a\n- list\n---\nservices: {web: {image: x}}\n---\ngroups: []\n")

    assert (1, 2, ()) == (found.objects, found.passed_over, found.errors)


def test_a_rule_that_fails_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fault is a finding; other rules speak of the same object, and the rule itself of the next."""

    def fails(subject: Subject, context: LintContext) -> Iterator[Note]:
        del context
        yield Note(("spec",), "seen")
        if subject.name == "one":
            raise KeyError("nothing")

    rules()
    monkeypatch.setattr(registry, "_RULES", {**rules(), "KL999": Rule("KL999", "fails", Severity.ERROR, "x", fails)})
    found = looked(IDLE % "one" + "---\n" + IDLE % "two")

    assert ["KL000", "KL999", "KL040", "KL999", "KL040"] == codes(found)
    assert "rule KL999 failed: KeyError: 'nothing'" == only(found, "KL000").message


def test_findings_stand_in_the_order_of_the_input() -> None:
    """Files in their order, then lines; the same for any order of the rules."""
    texts = {"b.yaml": IDLE % "b", "a.yaml": IDLE % "one" + "---\n" + IDLE % "two"}
    documents = Documents.joined(parse(text, name) for name, text in texts.items())
    found = lint(documents, texts, lambda cloud: load_market(None, cloud))

    assert ["b.yaml:4:21", "a.yaml:4:21", "a.yaml:9:21"] == [finding.place for finding in found.findings]


def test_json_has_lines_too() -> None:
    """In a list of objects the place is that in the file."""
    text = '{"kind": "List", "apiVersion": "v1", "items": [\n{"apiVersion": "v1", "kind": "Pod",\n'
    text += ' "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}}\n]}'

    assert "dump.json:3:53" == only(looked(text, "dump.json"), "KL040").place


def test_objects_that_a_controller_made_are_not_reported_twice() -> None:
    """In a dump of a cluster the Deployment speaks for its pods."""
    made = IDLE.replace("{name: %s}", "{name: a, uid: u1, ownerReferences: [{kind: ReplicaSet, name: r, uid: u2}]}")

    assert [] == codes(looked(made))


def test_a_finding_of_a_cluster_has_no_place() -> None:
    """Its object is named instead."""
    text = IDLE % "one"
    found = lint(parse(text, "pods.yaml"), {}, lambda cloud: load_market(None, cloud), is_live=True)

    assert [("", "Pod default/one")] == [(finding.place, finding.subject) for finding in found.findings]


def test_slices_of_nodes_without_hami_are_reported_where_there_is_no_pool() -> None:
    """A dump of nodes that somebody else manages: their label is what counts."""
    pod = IDLE % "one" + "  # x\n"
    pod = pod.replace("{name: main}", "{name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}}")
    node = "---\nkind: Node\napiVersion: v1\nmetadata: {name: n, labels: {gpu: '%s'}}\n"
    node += "status: {allocatable: {nvidia.com/gpu: 1}}\n"

    assert ["KL034"] == codes(looked(pod + node % "off"))
    assert [] == codes(looked(pod + node % "on"))


def test_pools_of_two_clouds_are_each_looked_at_in_their_own() -> None:
    """A plan has one currency; a finding has none."""
    aws = POOL % ("a", "karpenter.k8s.aws", "EC2NodeClass", "g5.2xlarge", 10)
    ack = POOL % ("b", "karpenter.alibabacloud.com", "ECSNodeClass", "ecs.gn7i-c8g1.2xlarge", 10)
    found = looked(f"{aws}---\n{ack}")

    assert 2 == codes(found).count("KL012")
    assert [] == [code for code in codes(found) if code in ("KL018", "KL019")]


def test_what_no_pool_offers_is_only_said_where_all_are_known() -> None:
    """A pool that cannot be read may be the one that is meant."""
    pod = "---\n" + IDLE % "train"
    pod = pod.replace("{name: main}", "{name: main, resources: {limits: {nvidia.com/gpu: 4}}}")
    small = POOL % ("a", "karpenter.k8s.aws", "EC2NodeClass", "g5.xlarge", 40)
    broken = (POOL % ("b", "karpenter.k8s.aws", "EC2NodeClass", "g5.12xlarge", 40)).replace(
        "limits:", "weight: x\n  limits:"
    )

    assert "KL039" in codes(looked(small + pod))
    assert "KL039" not in codes(looked(f"{small}---\n{broken}{pod}"))


@pytest.mark.parametrize("code", ["KL039", "KL041", "KL042"])
def test_a_node_that_is_there_counts_also_another_autoscalers(code: str) -> None:
    """A dump of a cluster may have node groups beside the pools."""
    text = (CASES / code / "fires.yaml").read_text(encoding="utf-8")
    node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {gpu-spec: NVIDIA-L20}}\n"
    node += "status: {allocatable: {cpu: 96, memory: 900Gi, pods: 99, nvidia.com/gpu: %d}}\n"

    assert code in codes(looked(text + node % 0))
    assert code not in codes(looked(text + node % 8))


def test_a_cloud_without_a_catalogue_has_no_unknown_types() -> None:
    """What Azure sells is not known, so that nothing is said of it; limits neither."""
    text = POOL % ("a", "karpenter.azure.com", "AKSNodeClass", "Standard_NC4as_T4_v3", 1)

    assert [] == codes(looked(text))


def test_a_type_whose_price_is_not_known_is_sold() -> None:
    """Kerf cannot plan with it, the cloud has it nevertheless."""
    text = POOL % ("a", "karpenter.k8s.aws", "EC2NodeClass", "m7i.large", 2)
    found = lint(parse(text, "a.yaml"), {}, lambda cloud: load_market(None, cloud, "us-west-2"))

    assert ["KL012"] == codes(found)


@examples(150)
@given(disturbed())
def test_nothing_that_is_put_anywhere_makes_a_rule_fail(text: str) -> None:
    """Any value of a manifest may be any other value."""
    assert [] == [finding.message for finding in looked(text).findings if finding.code == "KL000"]


@pytest.mark.parametrize("value", ["null", "7", "text", "[1, {a: 2}]", "{a: {b: [null]}}"])
@pytest.mark.parametrize("kind", ["NodePool", "Deployment", "CronJob", "PrometheusRule", "HorizontalPodAutoscaler"])
def test_no_form_of_a_spec_makes_a_rule_fail(kind: str, value: str) -> None:
    """What has not the form that a rule looks for is empty to it."""
    group = {"NodePool": "karpenter.sh/v1", "Deployment": "apps/v1", "CronJob": "batch/v1"}.get(kind, "x.io/v1")
    found = looked(f"apiVersion: {group}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {value}\n")

    assert "KL000" not in codes(found)


def test_what_a_rule_of_its_own_says_is_said_once() -> None:
    """An illegal value of a label is no finding of the general rule on forms too."""
    text = (POOL % ("a", "karpenter.k8s.aws", "EC2NodeClass", "nvidia.com/gpu", 10)).replace("limits: {cpu: 10}", "")

    assert ["KL011"] == [code for code in codes(looked(text)) if code in ("KL001", "KL011")]


def test_codes_are_chosen_by_their_beginnings() -> None:
    """`KL02` is all that begin so; what is no beginning of any code is an error."""
    assert {"KL020", "KL021"} == chosen(["kl02"], ["KL022", "KL023", "KL024", "KL025"])
    with pytest.raises(InputError, match="--ignore KX: expected a code such as KL012"):
        chosen([], ["KX"])
