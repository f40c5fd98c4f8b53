"""PodGroups, PodTemplates and ProvisioningRequests as manifests and as a server has them."""

from typing import Any

import pytest
import yaml

from kerf.errors import DecodeErrors
from kerf.manifests.decode import decode, decode_object
from kerf.manifests.decoded import Decoded
from kerf.manifests.read import parse
from kerf.model.groups import CoschedulingGroup, NativeWorkload, VolcanoGroup
from kerf.model.provisioningrequests import PodSet, ProvisioningRequest
from kerf.model.quantities import CPU

REQUEST = """\
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: r, namespace: team}
spec:
  provisioningClassName: check-capacity.autoscaling.x-k8s.io
  parameters: {noRetry: "true"}
  podSets:
    - {podTemplateRef: {name: t}, count: 8}
"""


def read(text: str) -> Decoded:
    """What a file of that text gives."""
    return decode(parse(text, "groups.yaml"))


@pytest.mark.parametrize(
    "version, kind",
    [("scheduling.x-k8s.io/v1alpha1", CoschedulingGroup), ("scheduling.volcano.sh/v1beta1", VolcanoGroup)],
)
def test_a_pod_group_is_that_of_its_project(version: str, kind: type) -> None:
    """Two kinds of one name do not hide each other; what else is in their spec is theirs."""
    text = f"{{apiVersion: {version}, kind: PodGroup, metadata: {{name: g}}, spec: {{minMember: 3, queue: q}}}}"

    assert (kind("default", "g", 3),) == read(text).pod_groups


def test_a_foreign_pod_group_is_not_read() -> None:
    """It is counted among the kinds that Kerf does not know."""
    text = "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: g}, spec: {}}"

    assert {"PodGroup": 1} == read(text).skipped_kinds


def test_a_template_is_the_pod_that_would_be_made_of_it() -> None:
    """With the defaults of its namespace, and no uid."""
    container = "{name: c, image: i, resources: {requests: {cpu: 2}}}"
    text = (
        "{apiVersion: v1, kind: PodTemplate, metadata: {name: t, namespace: team}, "
        f"template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{container}]}}}}}}"
    )
    (template,) = read(text).pod_templates

    assert ("team", "t", "") == (template.namespace, template.name, template.pod.uid)
    assert (2000, {"a": "b"}) == (template.pod.spec.requests[CPU], template.pod.labels)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_request_is_read_in_both_versions(version: str) -> None:
    """They have the same fields."""
    (request,) = read(REQUEST.replace("x-k8s.io/v1\n", f"x-k8s.io/{version}\n")).provisioning_requests

    assert ("team/r", 8, True) == (request.key, request.pods, request.is_ours)
    assert ((PodSet("t", 8),), {"noRetry": "true"}) == (request.pod_sets, request.parameters)


def test_a_live_request_keeps_its_conditions() -> None:
    """Those of others, too."""
    raw: dict[str, Any] = yaml.safe_load(REQUEST)
    raw["metadata"]["uid"] = "u"
    times = {"lastTransitionTime": "2026-01-05T12:00:00Z", "reason": "r", "message": "m"}
    raw["status"] = {"conditions": [{"type": "Provisioned", "status": "True", **times}], "provisioningClassDetails": {}}
    value = decode_object(raw)

    assert isinstance(value, ProvisioningRequest)
    assert 1_767_614_400 + 600 == value.booked_until_s


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("count: 8", "count: 0", "podSets[0].count: expected a whole number from 1 to 16384, got 0"),
        ("count: 8", "count: many", "podSets[0].count: expected a whole number from 1 to 16384, got 'many'"),
        ("{name: t}", "{}", "podSets[0].podTemplateRef.name: expected"),
        ('noRetry: "true"', "noRetry: true", "parameters.noRetry: expected text, got True"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_at_its_place(old: str, new: str, told: str) -> None:
    """In a manifest; the server refuses it by its definition."""
    with pytest.raises(DecodeErrors) as refused:
        read(REQUEST.replace(old, new))

    assert told in str(refused.value)


WORKLOAD = """\
apiVersion: %s
kind: Workload
metadata: {name: train, namespace: team}
spec:
  podGroups:
    - {name: workers, policy: {gang: {minCount: 4}}}
    - {name: driver, policy: {basic: {}}}
"""


def test_a_native_workload_says_how_many_pods_each_of_its_groups_needs() -> None:
    """One with the policy `basic` is no gang; a replica of a group needs as many as the group."""
    (found,) = read(WORKLOAD % "scheduling.k8s.io/v1alpha1").pod_groups

    assert isinstance(found, NativeWorkload)
    assert [4, 4, 0, 0, 0] == [
        found.least(name)
        for name in ("train/workers", "train/workers/3", "train/driver", "train/none", "other/workers")
    ]


@pytest.mark.parametrize("version", ["kueue.x-k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"])
def test_a_workload_of_another_form_is_not_read(version: str) -> None:
    """Kueue's kind has the same name."""
    assert {"Workload": 1} == read(WORKLOAD % version).skipped_kinds
