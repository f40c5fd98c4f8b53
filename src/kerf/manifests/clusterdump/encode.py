"""What a dump keeps of an object: the fields that Kerf reads, and nothing that could be a secret.

The forms below name what is kept, so an unknown field is left out and not let through. They follow the
decoders: a decoder that begins to read a field needs it here as well, or a dump would decide otherwise than the
cluster. A test holds both together.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kerf.manifests.karpenter.bottlerocket import FAMILY as BOTTLEROCKET
from kerf.manifests.karpenter.bottlerocket import kept_user_data
from kerf.manifests.karpenter.ec2 import KIND as EC2_KIND
from kerf.model.evidence import HAMIS_FILE, READ_VARIABLES, ConfigMount, read_arguments, read_image, read_mounts
from kerf.model.pods import READ_DOMAINS
from kerf.model.volumes import BIND_COMPLETED, DEFAULT_CLASS, MIGRATED, OLD_CLASS, OLD_DEFAULT_CLASS, SELECTED_NODE

Object = dict[str, Any]
Form = Mapping[str, "Form"] | Callable[[Any], Any] | None
"""What is kept of a value: the named fields of a mapping, or of each item of a list; None: all of it."""

MOST_BYTES: Final = 256 * 1024
"""Of one object with `--full`; a larger one is cut to what Kerf reads."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_VOLUMES = frozenset({BIND_COMPLETED, SELECTED_NODE, DEFAULT_CLASS, OLD_DEFAULT_CLASS, OLD_CLASS})
_NEVER = frozenset({"managedFields", "userData", _LAST_APPLIED})
"""Left out of every dump: the server's own bookkeeping, a copy of the object, and scripts with which machines start."""
_LEFT_OUT = object()
"""In place of a value that is not kept."""


def _of(names: str, **forms: Form) -> dict[str, Form]:
    return {**dict.fromkeys(names.split()), **forms}


def _read_annotations(value: Any) -> Any:
    """Those of a pod or its owner that some decision reads; users write whatever they like into the others."""
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if str(key).partition("/")[0] in READ_DOMAINS}


def _volume_annotations(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if key in _OF_VOLUMES}


def _most_annotations(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if key != _LAST_APPLIED}


def _unless_text(value: Any) -> Any:
    """Nothing reads it, but an object in which it is no text is refused, from a dump as before."""
    return _LEFT_OUT if isinstance(value, str) else value


def _claiming(value: Any) -> Any:
    """The volumes that say where a pod can run; those of tokens and secrets do not."""
    if not isinstance(value, list):
        return value
    kept = (_kept(each, _VOLUME) for each in value)
    return [each for each in kept if not isinstance(each, dict) or not each.keys() <= {"name"}]


def _read_flags(value: Any) -> Any:
    return list(read_arguments(value)) if isinstance(value, list) else value


def _read_variables(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [_kept(each, _VARIABLE) for each in value if isinstance(each, dict) and each.get("name") in READ_VARIABLES]


def _is_there(value: Any) -> Any:
    return {} if isinstance(value, dict) else value


def _pod_conditions(value: Any) -> Any:
    """Those of its scheduling whole; of Ready the status, since its words name containers. Others say nothing new."""
    if not isinstance(value, list):
        return value
    forms = (
        (each, _POD_CONDITIONS.get(str(each.get("type"))) if isinstance(each, dict) else _CONDITION) for each in value
    )
    return [_kept(each, form) for each, form in forms if form is not None]


_CONDITION = _of("type status reason message lastTransitionTime")
_STATUS_ALONE = _of("type status lastTransitionTime")
_POD_CONDITIONS = {"PodScheduled": _CONDITION, "PodResizePending": _CONDITION, "Ready": _STATUS_ALONE}
_VARIABLE = _of("name value")
_OWNERS = _of("apiVersion kind name uid controller")
_METADATA_FIELDS = "name namespace uid resourceVersion generation creationTimestamp deletionTimestamp labels finalizers"
_METADATA = _of(_METADATA_FIELDS, ownerReferences=_OWNERS, annotations=_read_annotations)
_NAMED = _of(_METADATA_FIELDS, ownerReferences=_OWNERS, annotations=_volume_annotations)
_OF_NODES = _of(_METADATA_FIELDS, ownerReferences=_OWNERS, annotations=_most_annotations)
"""Of what administrators and machines write; a device plugin registers its cards under a domain of its own."""

_CLAIM_TEMPLATE = _of(
    "",
    metadata=_of("name"),
    spec=_of("storageClassName volumeAttributesClassName", resources=_of("requests")),
)
_VOLUME = _of(
    "name", persistentVolumeClaim=_of("claimName readOnly"), ephemeral=_of("", volumeClaimTemplate=_CLAIM_TEMPLATE)
)
_CONTAINER = _of(
    "name resources restartPolicy",
    image=_unless_text,
    ports=_of("containerPort hostPort protocol hostIP"),
    securityContext=_of("privileged"),
)
_POD_SPEC = _of(
    "overhead nodeSelector affinity tolerations schedulerName priority priorityClassName schedulingGates"
    " topologySpreadConstraints resourceClaims resources hostNetwork terminationGracePeriodSeconds"
    " activeDeadlineSeconds nodeName workloadRef runtimeClassName restartPolicy",
    containers=_CONTAINER,
    initContainers=_CONTAINER,
    volumes=_claiming,
)
_TEMPLATE = _of("", metadata=_METADATA, spec=_POD_SPEC)
_PROGRAM = {**_CONTAINER, "image": read_image, "command": _read_flags, "args": _read_flags, "env": _read_variables}
"""A container that may be a device plugin: only what is read of it, since settings and names may be secrets."""
_PROGRAMS = {**_POD_SPEC, "containers": _PROGRAM}


def _with_mounts(form: Form, *, by_flags: bool) -> Callable[[Any], Any]:
    """A pod spec by that form, and with the ConfigMaps in which its programs look for a configuration: no others."""

    def kept(value: Any) -> Any:
        spec = _kept(value, form)
        mounts = read_mounts(value, by_flags=by_flags)
        if not mounts or not isinstance(spec, dict):
            return spec
        volumes = [_volume(each) for each in {each.volume: each for each in mounts}.values()]
        spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
        for was, now in zip(value["containers"], spec["containers"], strict=True):
            own = read_mounts({**value, "containers": [was]}, by_flags=by_flags)
            if own:
                now["volumeMounts"] = [{"name": each.volume, "mountPath": _path(each)} for each in own]
        return spec

    return kept


def _volume(mount: ConfigMount) -> Any:
    """The volume of a mount, with the key that is HAMi's file where it has another name."""
    source: dict[str, Any] = {"name": mount.config_map}
    if mount.key not in ("", HAMIS_FILE):
        source["items"] = [{"key": mount.key, "path": HAMIS_FILE}]
    return {"name": mount.volume, "configMap": source}


def _path(mount: ConfigMount) -> str:
    """Where it is mounted; HAMi's file where its chart has it, since not every dump has the flag that names it."""
    is_file = mount.path.rpartition("/")[2] == HAMIS_FILE
    return f"/{HAMIS_FILE}" if mount.key and not is_file else mount.path


_DAEMON_TEMPLATE = _of("", metadata=_METADATA, spec=_with_mounts(_PROGRAMS, by_flags=True))
_DEPLOYMENT_TEMPLATE = _of("", metadata=_METADATA, spec=_with_mounts(_POD_SPEC, by_flags=False))
_SELECTOR: Form = None
_RESIZED = "name resources allocatedResources"
_INIT_STATUS = _of(_RESIZED, state=_of("", terminated=_of("exitCode")))


def _object(metadata: Form = None, **forms: Form) -> Form:
    return _of("apiVersion kind", metadata=metadata or _METADATA, **forms)


_POD = _object(
    spec=_POD_SPEC,
    status=_of(
        "phase startTime nominatedNodeName",
        conditions=_pod_conditions,
        initContainerStatuses=_INIT_STATUS,
        containerStatuses=_of(_RESIZED),
    ),
)
_NODE = _object(
    _OF_NODES,
    spec=_of("unschedulable providerID", taints=_of("key value effect")),
    status=_of("capacity allocatable", conditions=_of("type status reason lastTransitionTime")),
)
_SET = _object(spec=_of("replicas selector", template=_TEMPLATE))
_JOB_SPEC = _of("parallelism completions suspend selector activeDeadlineSeconds", template=_TEMPLATE)
_CRON_JOB_SPEC = _of(
    "schedule timeZone suspend startingDeadlineSeconds concurrencyPolicy",
    jobTemplate=_of("", metadata=_METADATA, spec=_JOB_SPEC),
)
_STATEFUL_SET_SPEC = _of("replicas selector ordinals", template=_TEMPLATE, volumeClaimTemplates=_CLAIM_TEMPLATE)
_WINDOW_SPEC = _of(
    "schedule timeZone duration nodePools leadTime pods outside atEnd evictionDeadline queuePriority quota",
    warm=_of("replicas exclusive", template=_TEMPLATE),
)
_PHASE = _of("phase")
_VOLUME_SPEC = _of(
    "accessModes capacity nodeAffinity storageClassName volumeAttributesClassName volumeMode",
    claimRef=_of("namespace name uid"),
    csi=_of("driver"),
    **dict.fromkeys(("local", "hostPath", *MIGRATED), _is_there),
)
"""Of a volume's source only that it is there: paths, addresses and names of secrets are in no dump."""
_WITH_CONDITIONS = _of("", conditions=_CONDITION)
_SELECTED = _of("id name zone availabilityZone")
_NODE_CLASS = _object(
    _OF_NODES,
    status=_of(
        "",
        conditions=_CONDITION,
        **dict.fromkeys(
            ("subnets", "securityGroups", "amis", "capacityReservations", "vSwitches", "images"), _SELECTED
        ),
    ),
)

FORMS: Mapping[str, Form] = {
    "Pod": _POD,
    "Node": _NODE,
    "NodePool": _object(_OF_NODES, spec=None, status=_of("resources nodes", conditions=_CONDITION)),
    "NodeClaim": _object(_OF_NODES, spec=None, status=None),
    "NodeOverlay": _object(_OF_NODES, spec=None, status=_WITH_CONDITIONS),
    "CapacityWindow": _object(_OF_NODES, spec=_WINDOW_SPEC, status=None),
    "ConfigMap": _object(data=None),
    "ResourceQuota": _object(spec=None),
    "ClusterPolicy": _object(
        spec=_of(
            "",
            mig=_of("strategy"),
            devicePlugin=_of("enabled version", config=_of("name default")),
            daemonsets=_of("tolerations"),
        ),
        status=_of("namespace"),
    ),
    "LimitRange": _object(spec=None),
    "PriorityClass": _object(_OF_NODES, value=None, globalDefault=None, preemptionPolicy=None),
    "PodDisruptionBudget": _object(spec=None, status=_of("disruptionsAllowed")),
    "DaemonSet": _object(spec=_of("selector", template=_DAEMON_TEMPLATE)),
    "Deployment": _object(spec=_of("replicas selector", template=_DEPLOYMENT_TEMPLATE)),
    "ReplicaSet": _SET,
    "StatefulSet": _object(spec=_STATEFUL_SET_SPEC),
    "Job": _object(spec=_JOB_SPEC, status=_of("succeeded startTime")),
    "CronJob": _object(spec=_CRON_JOB_SPEC),
    "JobSet": _object(
        spec=_of("suspend", replicatedJobs=_of("name replicas", template=_of("", metadata=_METADATA, spec=_JOB_SPEC))),
        status=_of("terminalState"),
    ),
    "Namespace": _object(_NAMED),
    "Service": _object(_NAMED, spec=_of("selector")),
    "PersistentVolumeClaim": _object(
        _NAMED,
        spec=_of(
            "accessModes selector storageClassName volumeAttributesClassName volumeMode volumeName",
            resources=_of("requests"),
        ),
        status=_of(
            "phase allocatedResources currentVolumeAttributesClassName",
            modifyVolumeStatus=_of("targetVolumeAttributesClassName"),
        ),
    ),
    "PersistentVolume": _object(_NAMED, spec=_VOLUME_SPEC, status=_PHASE),
    "StorageClass": _object(_NAMED, provisioner=None, volumeBindingMode=None, allowedTopologies=None),
    "CSINode": _object(_NAMED, spec=_of("", drivers=_of("name allocatable topologyKeys"))),
    "VolumeAttachment": _object(
        _NAMED, spec=_of("attacher nodeName", source=_of("persistentVolumeName")), status=_of("attached")
    ),
    "RuntimeClass": _object(_NAMED, overhead=_of("podFixed"), scheduling=_of("nodeSelector tolerations")),
    "PodGroup": _object(spec=_of("minMember")),
    "Workload": _object(spec=_of("", podGroups=_of("name", policy=_of("", gang=_of("minCount"))))),
    "PodTemplate": _object(template=_TEMPLATE),
    "ProvisioningRequest": _object(spec=None, status=_WITH_CONDITIONS),
    "CapacityBuffer": _object(spec=None, status=None),
    "PodMetrics": _object(timestamp=None, window=None, containers=_of("name usage")),
    "NodeMetrics": _object(timestamp=None, window=None, usage=None),
}
"""By kind; every kind that ends in NodeClass is kept as `_NODE_CLASS`, and a kind that is not here not at all."""


def form_of(kind: str) -> Form | None:
    """What a dump keeps of a kind; None for a kind that Kerf does not read."""
    return FORMS.get(kind) or (_NODE_CLASS if kind.endswith("NodeClass") else None)


def dumped(raw: Object, *, is_full: bool = False) -> tuple[Object | None, bool]:
    """What a dump keeps of an object, and whether it was cut for its size; None for a kind that Kerf does not read.

    `is_full` keeps all but what no dump has: bookkeeping, values of the environment, start-up scripts of machines.
    """
    form = form_of(str(raw.get("kind")))
    if form is None:
        return None, False
    if not is_full:
        return _with_image(raw, _kept(raw, form)), False
    whole: Object = _with_image(raw, _without_secrets(raw))
    if len(msgspec.json.encode(whole)) <= MOST_BYTES:
        return whole, False
    return _with_image(raw, _kept(raw, form)), True


def _with_image(raw: Object, kept: Object) -> Object:
    """With the settings of its images by which cards are shared; the rest of user data is in no dump."""
    text = kept_user_data(raw) if raw.get("kind") == EC2_KIND else ""
    if not text:
        return kept
    return {**kept, "spec": {**(kept.get("spec") or {}), "amiFamily": BOTTLEROCKET, "userData": text}}


def _kept(value: Any, form: Form) -> Any:
    if form is None:
        return value
    if not isinstance(form, Mapping):
        return form(value)
    if isinstance(value, dict):
        kept = ((name, _kept(value[name], form[name])) for name in value if name in form)
        return {name: each for name, each in kept if each is not _LEFT_OUT}
    return [_kept(each, form) for each in value] if isinstance(value, list) else value


def _without_secrets(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_without_secrets(each, name) for each in value]
    if not isinstance(value, dict):
        return value
    is_secret = name == "env" and value.get("name") not in READ_VARIABLES
    dropped = _NEVER | {"value"} if is_secret else _NEVER
    return {key: _without_secrets(each, key) for key, each in value.items() if key not in dropped}
