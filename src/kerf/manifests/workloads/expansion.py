"""Workloads to the pods that their controllers would make.

Live input may hold a Deployment, its ReplicaSet and some of its pods at once; each wanted pod must be counted once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kerf.errors import InputError, brief
from kerf.manifests.decoded import Decoded, Workload
from kerf.model.owners import HASH_LABEL
from kerf.model.pods import Owner, Pod

_LONGEST_CHAIN = 8
"""Controllers above each other; objects that own each other in a circle end here."""


def expand(decoded: Decoded) -> tuple[Pod, ...]:
    """Every pod of the input, then those that each workload still lacks: `default/web-0`, `-1`, ... in order.

    Pods know who controls their controller, where the input names it.
    """
    wanted = [workload for workload in decoded.workloads if not _is_managed(workload, decoded.workloads)]
    held = _held(decoded.pods, decoded.workloads)
    taken = {pod.key for pod in decoded.pods}
    pods = list(_with_controllers(decoded.pods, decoded.workloads))
    for workload in wanted:
        missing = workload.replicas - held[workload.key]
        ordinal = workload.first_ordinal
        while missing > 0:
            pod = pod_of_workload(workload, ordinal)
            ordinal += 1
            if pod.key not in taken:
                taken.add(pod.key)
                pods.append(pod)
                missing -= 1
    return tuple(pods)


def pod_of_workload(workload: Workload, ordinal: int) -> Pod:
    """The pod that the workload's controller would make with that number."""
    return replace(workload.template, name=f"{workload.name}-{ordinal}")


def with_replicas(decoded: Decoded, setting: str) -> Decoded:
    """The same with `deployment/default/web=3` applied. Raises InputError for no such workload or no number."""
    key, separator, number = setting.rpartition("=")
    kind, _, name = key.partition("/")
    if not separator or not number.isdecimal() or len(number) > 6:
        raise InputError(
            f"--replicas {setting}: expected KIND/NAMESPACE/NAME=NUMBER, got {brief(number or 'no number')}"
        )
    wanted = f"{kind.lower()}/{name}"
    if all(workload.key != wanted for workload in decoded.workloads):
        known = ", ".join(sorted(workload.key for workload in decoded.workloads)) or "none"
        raise InputError(f"--replicas {setting}: expected one of the workloads there ({known}), got {brief(key)}")
    changed = (_with_number(w, int(number)) if w.key == wanted else w for w in decoded.workloads)
    return replace(decoded, workloads=tuple(changed))


def _with_number(workload: Workload, number: int) -> Workload:
    """So many replicas; of a CronJob so many runs, each with all pods that it runs at once."""
    pods_each = workload.cron_job.pods if workload.cron_job is not None else 1
    return replace(workload, replicas=number * pods_each)


def _with_controllers(pods: Iterable[Pod], workloads: Iterable[Workload]) -> Iterator[Pod]:
    """The pods, each with the chain of controllers above the one that it names."""
    above = {(w.kind, w.namespace, w.name): w.owner for w in workloads if w.owner is not None}
    chains: dict[tuple[str, Owner], Owner] = {}
    for pod in pods:
        if pod.owner is None or (pod.owner.kind, pod.namespace, pod.owner.name) not in above:
            yield pod
            continue
        key = pod.namespace, pod.owner
        if key not in chains:
            chains[key] = _chained(pod.owner, pod.namespace, above, _LONGEST_CHAIN)
        yield replace(pod, owner=chains[key])


def _chained(owner: Owner, namespace: str, above: Mapping[tuple[str, str, str], Owner], most: int) -> Owner:
    controller = above.get((owner.kind, namespace, owner.name))
    if controller is None or not most:
        return owner
    return replace(owner, controller=_chained(controller, namespace, above, most - 1))


def _is_managed(workload: Workload, workloads: Iterable[Workload]) -> bool:
    """Whether a workload of the input makes this one, as a Deployment its ReplicaSets."""
    return workload.owner is not None and any(_is(workload.owner, workload.namespace, other) for other in workloads)


def _is(owner: Owner, namespace: str, workload: Workload) -> bool:
    return (owner.kind, namespace, owner.name) == (workload.kind, workload.namespace, workload.name)


def _held(pods: Iterable[Pod], workloads: tuple[Workload, ...]) -> Counter[str]:
    """How many of the wanted pods each workload has already; one that is going or has ended is none of them."""
    by_owner = {(w.kind, w.namespace, w.name): w for w in workloads}
    held: Counter[str] = Counter()
    for pod in pods:
        if pod.owner is None or pod.deleted_s is not None or pod.is_ended:
            continue
        workload = by_owner.get((pod.owner.kind, pod.namespace, pod.owner.name)) or _deployment_of(pod, by_owner)
        while workload is not None:
            held[workload.key] += 1
            owner = workload.owner
            workload = by_owner.get((owner.kind, workload.namespace, owner.name)) if owner is not None else None
    return held


def _deployment_of(pod: Pod, by_owner: dict[tuple[str, str, str], Workload]) -> Workload | None:
    """The Deployment behind a pod whose ReplicaSet is not in the input: the set is named after it and the template.

    A pod without the hash of its template must have the labels of the Deployment's.
    """
    if pod.owner is None or pod.owner.kind != "ReplicaSet":
        return None
    template_hash = pod.labels.get(HASH_LABEL)
    name, _, last = pod.owner.name.rpartition("-")
    found = by_owner.get(("Deployment", pod.namespace, name))
    if found is None or (template_hash and template_hash != last):
        return None
    is_alike = found.template.labels.items() <= pod.labels.items()
    return found if template_hash or is_alike else None
