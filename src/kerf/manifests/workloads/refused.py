"""Pods and workloads in a form that no server takes, as the pods that they would have.

A mistake in one of them must not end the plan of all others. Each pod is there with the reason and without a spec, so
nothing is planned for it, and a plan says what has to be corrected.
"""

from typing import Any

from kerf.manifests.decoded import Workload
from kerf.manifests.kinds import REPLICAS, WORKLOADS
from kerf.manifests.pods.decode import field_refusal
from kerf.manifests.schema import NAME, Report
from kerf.model.pods import Owner, Pod, PodSpec

_COUNT = {"Job": "parallelism"}
_WITH_PODS = frozenset({"Pod", *WORKLOADS} - {"CronJob"})


def refused_of(raw: dict[str, Any], report: Report, source: str) -> Pod | Workload | None:
    """What is there instead, refused for the first problem of `report`.

    None where nothing is: a kind without pods of its own, such as a CronJob, and an object without a name. A workload
    that says no usable number has one pod.
    """
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if raw.get("kind") not in _WITH_PODS or not isinstance(metadata, dict) or not NAME.accepts(name):
        return None
    kind, stated = raw["kind"], metadata.get("namespace")
    pod = Pod(
        namespace=str(stated) if NAME.accepts(stated) else "default",
        name=str(name),
        spec=PodSpec(()),
        owner=None if kind == "Pod" else Owner(kind, str(name)),
        invalid=field_refusal(report.problems[0], (), report),
        source=source,
    )
    return pod if kind == "Pod" else Workload(kind, pod.namespace, pod.name, _replicas(kind, raw.get("spec")), pod)


def _replicas(kind: str, spec: Any) -> int:
    stated = spec.get(_COUNT.get(kind, "replicas")) if isinstance(spec, dict) else None
    return int(stated) if stated is not None and REPLICAS.accepts(stated) else 1
