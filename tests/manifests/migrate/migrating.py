"""Short ways from a text of retired kinds to what it becomes."""

from textwrap import dedent
from typing import Any

import yaml

from kerf.manifests.migrate.migration import Migration, migrate
from kerf.manifests.migrate.objects import FieldChange, FieldOutcome
from kerf.manifests.migrate.requirements import Offers, everything_is_sold
from kerf.manifests.migrate.writing import manifest_text
from kerf.manifests.read import parse

TEMPLATE = """
    apiVersion: karpenter.k8s.aws/v1alpha1
    kind: AWSNodeTemplate
    metadata: {name: default}
    spec:
      amiFamily: AL2023
      instanceProfile: nodes
      subnetSelector: {a: b}
      securityGroupSelector: {a: b}
"""


def provisioner(spec: str = "", name: str = "p") -> str:
    """A Provisioner that refers to a template, with more lines in its spec (from line 6)."""
    head = f"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: {name}}}\nspec:\n"
    lines = "providerRef: {name: default}\n" + dedent(spec).strip("\n")
    return head + "\n".join(f"  {line}" if line else "" for line in lines.split("\n"))


def template(spec: str = "") -> str:
    """An AWSNodeTemplate of just these lines (from line 5)."""
    head = "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: default}\nspec:\n"
    return head + "\n".join(f"  {line}" for line in dedent(spec).strip("\n").split("\n"))


def migrated(*texts: str, offers: Offers = everything_is_sold) -> Migration:
    """What the documents of all texts, as one file, become."""
    return migrate(parse("\n---\n".join(dedent(text).strip("\n") for text in texts), "in.yaml"), offers)


def text_of(*texts: str) -> str:
    """The same as it is written."""
    return manifest_text(migrated(*texts).objects)


def spec_of(*texts: str, at: int = 0) -> Any:
    """The spec of one of the objects as the written text gives it."""
    return list(yaml.safe_load_all(text_of(*texts)))[at]["spec"]


def row(made: Migration, field: str) -> FieldChange:
    """The row of an old field, or of a new one that was added."""
    return next(row for row in made.rows if (row.field or row.now) == field)


def outcomes(made: Migration, *fields: str) -> list[FieldOutcome]:
    """What became of fields."""
    return [row(made, field).outcome for field in fields]
