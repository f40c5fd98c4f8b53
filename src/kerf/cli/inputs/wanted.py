"""Which object of the input or cluster is meant by a name of the command line."""

import difflib
from collections.abc import Iterable, Sequence

from kerf.cli.exits import ObjectNotFound
from kerf.cli.inputs.input import ReadInput
from kerf.cli.inputs.naming import CLUSTER_WIDE, Wanted
from kerf.manifests.decoded import Workload
from kerf.model.pods import Pod


def key_of(wanted: Wanted, known: Iterable[str], read: ReadInput) -> str:
    """The key of the object that is meant. Raises ObjectNotFound with the nearest names."""
    keys = sorted(known)
    if wanted.namespace is None:
        found = [key for key in keys if key.rpartition("/")[2] == wanted.name]
        found = [key for key in found if key.startswith(f"{read.namespace}/")] or found
    else:
        exact = (f"{wanted.namespace}/{wanted.name}", wanted.name)
        found = [key for key in keys if key in exact]
    if len(found) == 1:
        return found[0]
    if found:
        raise ObjectNotFound(
            f"{wanted.kind}/{wanted.name} is in several namespaces ({', '.join(found)}): say which, -n"
        )
    where = f" in namespace {wanted.namespace}" if wanted.namespace and wanted.kind not in CLUSTER_WIDE else ""
    raise ObjectNotFound(f"{wanted.kind}/{wanted.name} not found{where}{_nearest(wanted, keys, read.place)}")


def _nearest(wanted: Wanted, keys: list[str], place: str) -> str:
    if not keys:
        return f"; the {place} has no {wanted.kind}"
    full = wanted.name if wanted.namespace is None else f"{wanted.namespace}/{wanted.name}"
    by_name = {key.rpartition("/")[2]: key for key in reversed(keys)}
    close = difflib.get_close_matches(full, keys, 3) or [
        by_name[name] for name in difflib.get_close_matches(wanted.name, list(by_name), 3)
    ]
    return f"; nearest known: {', '.join(close or keys[:3])}"


def workload_of(wanted: Wanted, read: ReadInput) -> Workload:
    """The Deployment, Job or the like that is meant. Raises ObjectNotFound."""
    same_kind = (w for w in read.decoded.workloads if w.kind.lower() == wanted.kind)
    workloads = {f"{workload.namespace}/{workload.name}": workload for workload in same_kind}
    return workloads[key_of(wanted, workloads, read)]


def pods_of(workload: Workload, read: ReadInput) -> list[Pod]:
    """Its pods, ended ones too, in the order of the input."""
    return [pod for pod in read.pods if is_of(pod, workload, read.decoded.workloads)]


def is_of(pod: Pod, workload: Workload, workloads: Sequence[Workload]) -> bool:
    """Whether the workload made the pod, itself or by a ReplicaSet or Job of its own."""
    owner = pod.owner
    if owner is None or pod.namespace != workload.namespace:
        return False
    if (owner.kind, owner.name) == (workload.kind, workload.name):
        return True
    template_hash = pod.labels.get("pod-template-hash")
    if workload.kind == "Deployment" and owner.kind == "ReplicaSet" and template_hash:
        return owner.name == f"{workload.name}-{template_hash}"
    between = [w for w in workloads if (w.kind, w.namespace, w.name) == (owner.kind, pod.namespace, owner.name)]
    return any(w.owner is not None and (w.owner.kind, w.owner.name) == (workload.kind, workload.name) for w in between)
