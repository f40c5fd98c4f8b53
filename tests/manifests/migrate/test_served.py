"""What `kerf migrate` writes and today's API would refuse is to look at; what it cannot migrate gets a word."""

import pytest

from kerf.errors import InputError
from kerf.manifests.migrate.migration import migrate
from kerf.manifests.read import parse
from tests.manifests.migrate.migrating import migrated, template, text_of

CLASS = """
    apiVersion: karpenter.k8s.aws/v1beta1
    kind: EC2NodeClass
    metadata: {name: default}
    spec:
      role: nodes
      amiFamily: AL2023
      amiSelectorTerms: [{id: %s}]
      subnetSelectorTerms: [{id: %s}]
      securityGroupSelectorTerms: [{id: %s}]
"""
POOL = """\
# the header of the file
---
# about the pool
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: p}
spec:
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
      requirements: []
  # when nodes go
  disruption:
    expireAfter: 720h
---
# the end of the file
"""


@pytest.mark.parametrize(
    "ids, refused",
    [
        (("ami-123", "subnet-1", "sg-1"), []),
        (("ami456", "subnet-1", "sg-1"), ["spec.amiSelectorTerms[0]"]),
        (("ami-123", "net", "group"), ["spec.subnetSelectorTerms[0]", "spec.securityGroupSelectorTerms[0]"]),
    ],
)
def test_ids_that_the_api_refuses_are_to_look_at(ids: tuple[str, ...], refused: list[str]) -> None:
    """The old API took any text."""
    rows = [row for row in migrated(CLASS % ids).rows if row.needs_look]

    assert refused == [row.now for row in rows]
    assert all("the API refuses it: expected an id such as" in row.hint for row in rows)


def test_what_a_pool_may_not_say_today_is_to_look_at() -> None:
    """By the form and the rules of the NodePool, too."""
    made = migrated(POOL.replace("expireAfter: 720h", 'budgets: [{nodes: "150%"}]'))

    assert ["spec.disruption.budgets[0]"] == [row.now for row in made.rows if "the API refuses it" in row.hint]


def test_an_old_template_with_its_placeholders_is_taken() -> None:
    """What is to be filled in is said already, and the API takes it."""
    made = migrated(template("subnetSelector: {a: b}"))

    assert [] == [row.now for row in made.rows if "the API refuses it" in row.hint]


def test_header_and_last_comments_stay() -> None:
    """Also where `---` parts them from the objects; that of a section does not move into another."""
    lines = text_of(POOL).splitlines()

    assert ["# the header of the file", "# about the pool"] == lines[:2]
    assert "# the end of the file" == lines[-1]
    assert "disruption:" == lines[lines.index("  # when nodes go") + 1].strip()


def test_a_document_that_passes_keeps_the_header_of_its_file() -> None:
    """As it is written."""
    text = "# header\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n# end\n"

    assert text.replace("---\n", "") == text_of(text)


@pytest.mark.parametrize(
    "text, name, said",
    [
        ("apiVersion: karpenter.sh/v1alpha5\nkind: Provisoner\nmetadata: {name: a}", "a.yaml", "is Provisioner meant?"),
        ("apiVersion: karpenter.sh/v1\nkind: Frob\nmetadata: {name: a}", "a.yaml", "kinds of Karpenter are"),
        ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization", "a.yaml", "kubectl kustomize DIR"),
        ("resources: [a.yaml]", "base/kustomization.yaml", "kubectl kustomize DIR"),
        ('apiVersion: v1\nkind: Pod\nmetadata: {name: "{{ .Release.Name }}"}', "a.yaml", "helm template CHART"),
        ("{{- if .Values.x }}\na: b\n{{- end }}", "a.yaml", "helm template CHART"),
    ],
)
def test_what_is_no_manifest_yet_gets_a_word(text: str, name: str, said: str) -> None:
    """Misspelt kinds, Kustomize's own files, Helm templates."""
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        migrate(parse(text, name))
