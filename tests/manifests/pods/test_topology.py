"""Topology spread and pod affinity in manifests, and mistakes in them, each of which is one pod's alone."""

from typing import Any

import pytest

from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.pods.decode import read_spec
from kerf.model.constraints import NODE_NAME
from kerf.model.pods import PodSpec
from tests.manifests.texts import said

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SELECTOR = {"matchLabels": {"app": "web"}}
NO_DEFAULTS = AdmissionDefaults().defaults("default")


def spread(**given: Any) -> dict[str, Any]:
    """A spec with one constraint."""
    usual = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    return {"containers": [{"name": "a"}], "topologySpreadConstraints": [{**usual, **given}]}


def away(**given: Any) -> dict[str, Any]:
    """A spec with one term of anti-affinity."""
    term = {"topologyKey": "zone", "labelSelector": SELECTOR, **given}
    return {"containers": [{"name": "a"}], "affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def select(operator: str, *values: str) -> dict[str, Any]:
    """A selector of one expression."""
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "spec, part",
    [
        (spread(maxSkew=-1), "topologySpreadConstraints[0].maxSkew: expected at least 1, got -1"),
        (spread(whenUnsatisfiable="Never"), "whenUnsatisfiable: expected one of DoNotSchedule, ScheduleAnyway"),
        (spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"), "minDomains: expected at least 1, and with"),
        (spread(topologyKey=""), "topologyKey: expected a label key"),
        (spread(nodeTaintsPolicy="Maybe"), "nodeTaintsPolicy: expected one of Honor, Ignore"),
        (
            spread(matchLabelKeys=["app"]),
            "matchLabelKeys[0]: expected a key that neither",
        ),
        (away(labelSelector=select("Near", "web")), "operator: expected one of In, NotIn, Exists, DoesNotExist"),
        (away(labelSelector=select("In")), "values: expected at least one value for In, got <a list of 0>"),
        (
            away(labelSelector=None, matchLabelKeys=["hash"]),
            "labelSelector: expected a selector, which matchLabelKeys needs",
        ),
    ],
)
def test_a_mistake_is_said_of_the_pod(spec: dict[str, Any], part: str) -> None:
    """The spec is read still, so the file's other pods are planned."""
    reading = read_spec(spec, NO_DEFAULTS)

    assert reading.spec is not None
    assert part in said(reading.invalid)


def test_a_contradiction_selects_nothing() -> None:
    """In and NotIn of one value; no server refuses it."""
    contradictory = {
        "matchExpressions": [*select("In", "a")["matchExpressions"], *select("NotIn", "a")["matchExpressions"]]
    }
    reading = read_spec(away(labelSelector=contradictory), NO_DEFAULTS)

    assert reading.spec is not None
    assert reading.invalid is None
    assert reading.spec.pod_anti_affinity.required[0].selector.is_never


def test_label_keys_of_a_live_pod_stand_in_its_selector_already() -> None:
    """The server has put them there; of a manifest they are kept."""
    spec = away(matchLabelKeys=["hash"])
    written, live = (read_spec(spec, defaults).spec for defaults in (NO_DEFAULTS, None))

    def keys(held: PodSpec | None) -> tuple[str, ...]:
        return () if held is None else held.pod_anti_affinity.required[0].match_label_keys

    assert (("hash",), ()) == (keys(written), keys(live))


def test_match_fields_ask_for_a_node_by_name() -> None:
    """Beside the term's expressions."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}], **select("Exists")}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    spec = read_spec({"containers": [{"name": "a"}], "affinity": affinity}, NO_DEFAULTS).spec

    assert spec is not None
    assert [{NODE_NAME, "app"}] == [set(alternative) for alternative in spec.alternatives]
