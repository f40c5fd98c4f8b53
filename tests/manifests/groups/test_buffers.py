"""CapacityBuffers as manifests and as a server has them."""

from typing import Any

import pytest
import yaml

from kerf.errors import DecodeErrors
from kerf.manifests.decode import decode, decode_object, decode_scalable
from kerf.manifests.decoded import Decoded
from kerf.manifests.encode import buffer_status
from kerf.manifests.read import parse
from kerf.model.capacitybuffers import ACTIVE, CapacityBuffer, ScalableRef
from kerf.model.quantities import CPU

WEB = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: web, namespace: team}}
spec:
  replicas: 10
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: x, resources: {{requests: {{cpu: 2}}}}}}]}}
"""


def buffer(spec: str, version: str = "v1beta1") -> str:
    """A manifest of one."""
    head = f"apiVersion: autoscaling.x-k8s.io/{version}\nkind: CapacityBuffer\nmetadata: {{name: b, namespace: team}}\n"
    return f"{head}spec: {spec}\n"


def read(text: str) -> Decoded:
    """What a file of that text gives."""
    return decode(parse(text, "buffers.yaml"))


def test_it_is_read_as_it_is_written() -> None:
    """The strategy has a default, quantities their units."""
    (found,) = read(buffer("{podTemplateRef: {name: t}, replicas: 3, limits: {cpu: 2500m}}")).capacity_buffers

    assert ("team/b", "t", 3, 2500, ACTIVE) == (
        found.key,
        found.pod_template,
        found.replicas,
        found.limits[CPU] if found.limits else None,
        found.strategy,
    )
    assert found.is_kept


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_the_workload_that_it_names_is_known(kind: str) -> None:
    """How many pods it is to have, and what one asks; one that no buffer names is not kept."""
    asked = buffer(f"{{scalableRef: {{apiGroup: apps, kind: {kind}, name: web}}, percentage: 20}}")
    found = read(f"{asked}---\n{WEB.format(kind=kind)}")
    (held,) = found.capacity_buffers

    assert ScalableRef("apps", kind, "web") == held.scalable
    assert [(held.scalable_key, 10, 2000)] == [
        (each.key, each.replicas, each.pod.spec.requests[CPU]) for each in found.scalables
    ]
    assert () == read(WEB.format(kind=kind)).scalables


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            "{podTemplateRef: {name: t}, scalableRef: {kind: Deployment, name: web}, replicas: 1}",
            "spec.scalableRef: expected podTemplateRef or scalableRef, not both",
        ),
        (
            "{podTemplateRef: {name: t}}",
            "spec.replicas: expected a whole number of at least 0, or limits, got",
        ),
        ("{podTemplateRef: {name: t}, percentage: 20}", "spec.replicas: expected"),
        ("{podTemplateRef: {name: t}, replicas: -1}", "spec.replicas: expected a whole number from 0 to 2147483647"),
        ("{podTemplateRef: {}, replicas: 1}", "spec.podTemplateRef.name: expected"),
        ("{scalableRef: {kind: Deployment}, replicas: 1}", "spec.scalableRef.name: expected"),
        ("{podTemplateRef: {name: t}, limits: {cpu: many}}", "spec.limits.cpu: expected a quantity"),
    ],
)
def test_what_no_server_takes_is_left_out_and_said(spec: str, text: str) -> None:
    """It is one tenant's: all else is read."""
    found = read(f"{buffer(spec)}---\n{WEB.format(kind='Deployment')}")

    assert () == found.capacity_buffers
    assert 1 == len(found.workloads)
    assert any(text in warning for warning in found.warnings), found.warnings


def test_the_version_is_the_only_one() -> None:
    """A manifest of the older one says so."""
    with pytest.raises(DecodeErrors, match=r"expected autoscaling\.x-k8s\.io/v1beta1"):
        read(buffer("{podTemplateRef: {name: t}, replicas: 1}", "v1alpha1"))


def test_a_status_is_written_as_it_is_read() -> None:
    """With the generation of the PodTemplate, and conditions."""
    condition = {
        "type": "Provisioning",
        "status": "True",
        "reason": "FitsExistingCapacity",
        "message": "",
        "lastTransitionTime": "2026-01-05T07:00:00Z",
    }
    status = {
        "replicas": 3,
        "podTemplateRef": {"name": "t"},
        "podTemplateGeneration": 2,
        "provisioningStrategy": ACTIVE,
        "conditions": [condition],
    }
    raw: dict[str, Any] = yaml.safe_load(buffer("{podTemplateRef: {name: t}, replicas: 3}"))
    raw["metadata"]["uid"] = "u"
    found = decode_object({**raw, "status": status})

    assert isinstance(found, CapacityBuffer)
    assert status == buffer_status(found.status)
    bare = decode_object(raw)
    assert isinstance(bare, CapacityBuffer)
    assert {"conditions": []} == buffer_status(bare.status)


def test_a_workload_of_a_server_is_what_a_buffer_names() -> None:
    """Any other object is nothing that can be scaled."""
    raw = yaml.safe_load(WEB.format(kind="Deployment"))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": raw["spec"]["template"]},
    }

    found = decode_scalable(raw)
    assert found is not None
    assert ("team/Deployment/web", 10) == (found.key, found.replicas)
    assert decode_scalable(job) is None
    assert decode_object(raw) is None
