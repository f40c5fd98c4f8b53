"""One text through the linter, as the command line does it."""

from kerf.catalog import load_market
from kerf.lint.findings import Finding
from kerf.lint.linter import Linted, lint
from kerf.manifests.read import parse
from kerf.model.market import Market


def looked(text: str, name: str = "input.yaml") -> Linted:
    """What is found in the text."""
    own = {"kerf_pending_pods": "gauge"}
    return lint(parse(text, name), {name: text}, market, own_metrics=lambda: own)


def market(cloud: str) -> Market:
    """The packaged catalogue; nothing for a cloud that has none."""
    return load_market(None, cloud) if cloud else Market(())


def codes(linted: Linted) -> list[str]:
    """Codes of the findings, in their order."""
    return [finding.code for finding in linted.findings]


def only(linted: Linted, code: str) -> Finding:
    """The one finding of that code."""
    (found,) = [finding for finding in linted.findings if finding.code == code]
    return found
