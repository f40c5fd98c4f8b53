"""The words for volumes: why they keep a pod from running, and what each claim of a pod asks."""

from collections.abc import Iterator, Sequence

from kerf.engine.place.volumes import claims_of, namespace_of
from kerf.model.causes import Cause, OverResourceQuota
from kerf.model.constraints import HOSTNAME
from kerf.model.pods import Pod
from kerf.model.quantities import quantity_text
from kerf.model.resourcequotas import resource_of
from kerf.model.runtimeclasses import RuntimeClassConflict, RuntimeClassMissing
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.volumecauses import (
    ClaimInUse,
    ClaimOverQuota,
    ClaimProblem,
    ClaimUnusable,
    NoVolumeHere,
    SharedElsewhere,
    TooManyChoices,
    TooManyVolumes,
    VolumeElsewhere,
    VolumesAgainstPod,
    VolumesApart,
)
from kerf.model.volumes import ClaimTemplate, PersistentVolumeClaim

_READ_VOLUMES = "add the volumes: kubectl get persistentvolumeclaims,persistentvolumes,storageclasses -A -o yaml"


def volume_text(cause: Cause) -> str:
    """The cause as one sentence without its end, where it is of volumes or of RuntimeClasses; else empty."""
    match cause:
        case ClaimUnusable():
            return _unusable(cause)
        case ClaimOverQuota(claim, over):
            return f'persistentvolumeclaim "{claim}" is not created: {quota_text(over)}'
        case ClaimInUse(claim, pod):
            return f"one pod alone may use claim {claim} (ReadWriteOncePod), and pod {pod} comes before"
        case VolumesApart(claims):
            return f"no node can be where all its volumes are (claims {', '.join(claims)})"
        case SharedElsewhere(claim, key, nodes, domain) if key == HOSTNAME:
            here = f"not on node {domain}" if domain else "not on a new node"
            return (
                f"other pods with claim {claim} are to run on node {', '.join(nodes)}, so its volume is there, {here}"
            )
        case SharedElsewhere(claim, _, zones, domain):
            where = f"zone {', '.join(zones)}"
            here = f"not in zone {domain}" if domain else "not on a node without a zone"
            return f"other pods with claim {claim} are to run in {where}, so its volume is made there, {here}"
        case TooManyChoices(choices, most):
            return f"its terms and those of its volumes have {choices} combinations, of which {most} are tried at most"
        case VolumeElsewhere(asked, held, owner):
            has = f"has {held}" if held is not None else f"has no label {asked.key}"
            return f"its volumes ask {asked}, {owner} {has}"
        case VolumesAgainstPod(own, volumes):
            return f"its volumes ask {volumes}, and the pod itself asks {own}"
        case NoVolumeHere():
            return "no volume for its claims can be there: none is free, or it is made for another node"
        case TooManyVolumes(driver, limit, attached, more):
            return f"{driver} attaches {limit} volumes at most: {attached} attached, {more} more needed"
        case RuntimeClassConflict(name, asked, held):
            of_pod, of_class = (" and ".join(map(str, each)) for each in (asked, held))
            return f"the nodeSelector of the pod asks {of_pod}, that of its RuntimeClass {name} asks {of_class}"
        case RuntimeClassMissing(name):
            return f'RuntimeClass "{name}" not found'
    return ""


def quota_text(cause: OverResourceQuota) -> str:
    """What the quota has, and what is asked of it, in Kubernetes' quantities."""
    amounts = (quantity_text(resource_of(cause.resource), each) for each in (cause.hard, cause.used, cause.more))
    hard, used, more = amounts
    return (
        f"ResourceQuota {cause.namespace}/{cause.name}: {cause.resource} {hard}, {used} used or planned, "
        f"{more} more needed"
    )


def _unusable(cause: ClaimUnusable) -> str:
    claim = f'persistentvolumeclaim "{cause.claim}"'
    match cause.problem:
        case ClaimProblem.MISSING:
            return f"{claim} not found"
        case ClaimProblem.NOT_READ:
            return f"{claim} is not in the input, which has none at all: where its volume is, is not known"
        case ClaimProblem.LOST | ClaimProblem.VOLUME_MISSING:
            return f'{claim} bound to non-existent persistentvolume "{cause.other}"'
        case ClaimProblem.DELETING:
            return f"{claim} is being deleted"
        case ClaimProblem.OF_ANOTHER_POD:
            return f"{claim} was not made for this pod"
        case ClaimProblem.WITHOUT_CLASS:
            return f"{claim} is not bound and has no StorageClass"
        case ClaimProblem.CLASS_MISSING:
            return f'{claim} names StorageClass "{cause.other}", which is not found'
        case ClaimProblem.NOT_BOUND:
            of_class = f" of StorageClass {cause.other}" if cause.other else ""
            return f"{claim} is not bound, and volumes{of_class} are bound before their pod is scheduled"


def volume_hint(cause: Cause) -> str:
    """What helps a pod whose volumes keep it from running; empty where that is not known."""
    match cause:
        case ClaimUnusable(problem=ClaimProblem.MISSING):
            return "no node would help: create the claim"
        case ClaimUnusable(problem=ClaimProblem.NOT_READ):
            return _READ_VOLUMES
        case ClaimUnusable(problem=ClaimProblem.CLASS_MISSING | ClaimProblem.WITHOUT_CLASS):
            return "no node would help: the claim needs a StorageClass that there is"
        case ClaimUnusable(problem=ClaimProblem.NOT_BOUND):
            return "no node would help: kubectl describe pvc says why it is not bound"
        case ClaimUnusable() | VolumesApart():
            return "no node would help: the claim must be made again"
        case ClaimOverQuota():
            return "no node would help: raise the quota, ask for less, or delete claims that are not used"
        case ClaimInUse(pod=pod):
            return f"it comes when pod {pod} is gone"
        case TooManyChoices():
            return "fewer terms of node affinity, or fewer allowedTopologies of the StorageClass"
        case RuntimeClassConflict(name):
            agreed = " and ".join(f'{key} "{value}"' for key, value in cause.agreed.items())
            return f"let the pod ask {agreed}, as its RuntimeClass {name} does"
        case RuntimeClassMissing():
            return "create the RuntimeClass, or take runtimeClassName off the pod"
    return ""


def claim_lines(pod: Pod, snapshot: ClusterSnapshot) -> list[str]:
    """One line for each claim of the pod: its volume or its class, and where that can be."""
    lines = []
    for name, template in claims_of(pod, pod.spec):
        claim = snapshot.volume_claims.get(f"{namespace_of(pod)}/{name}")
        lines.append(f"claim {name}: {_of_claim(claim, template, snapshot)}")
    return lines


def _of_claim(claim: PersistentVolumeClaim | None, template: ClaimTemplate | None, snapshot: ClusterSnapshot) -> str:
    if claim is None and template is None:
        return "not in the input" if snapshot.may_lack_kinds and not snapshot.volume_claims else "not found"
    if claim is not None and claim.volume:
        volume = snapshot.volumes.get(claim.volume)
        if volume is None:
            return f"volume {claim.volume}, not found"
        asked = " or ".join(filter(None, map(str, volume.terms)))
        zones = f"by its labels {volume.zones}" if volume.zones else ""
        free = " (a new node need not have the name)" if volume.is_local and HOSTNAME in asked else ""
        return f"volume {claim.volume}, {', '.join(filter(None, (asked, zones))) or 'on any node'}{free}"
    class_name = claim.storage_class if claim is not None else template.storage_class if template is not None else ""
    found = snapshot.storage_classes.get(class_name or "")
    places = " or ".join(map(str, found.topologies)) if found is not None else ""
    named = f"StorageClass {class_name}" if class_name else "the default StorageClass"
    return f"not bound, of {named}, {places or 'on any node'}"


def assumed_notes(pods: Sequence[Pod], snapshot: ClusterSnapshot) -> list[str]:
    """What pods name and the input has none of at all, so it is planned for as if it asked nothing."""
    if not snapshot.assume_node_classes:
        return []
    found: dict[tuple[str, str], int] = {}
    for pod in pods:
        for named in sorted(set(_absent(pod, snapshot))):
            found[named] = found.get(named, 0) + 1
    return [
        f"{counted} pod{'' if counted == 1 else 's'} with {kind}{f' {name}' if name else ''}, and the input has no "
        f"{kind}: planned as if it asked nothing of a node"
        for (kind, name), counted in sorted(found.items())
    ]


def _absent(pod: Pod, snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    spec = pod.spec
    if spec.runtime_class and not pod.uid and not snapshot.runtime_classes:
        yield "RuntimeClass", spec.runtime_class
    for name, template in claims_of(pod, spec):
        claim = snapshot.volume_claims.get(f"{namespace_of(pod)}/{name}")
        if claim is None and template is None and snapshot.may_lack_kinds and not snapshot.volume_claims:
            yield "PersistentVolumeClaim", name
        elif claim is not None and claim.volume:
            if not snapshot.volumes:
                yield "PersistentVolume", ""
        elif (claim is not None or template is not None) and not snapshot.storage_classes:
            named = claim.storage_class if claim is not None else template.storage_class if template is not None else ""
            yield "StorageClass", named or ""
