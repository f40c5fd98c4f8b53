"""HAMi in the in-memory API: its webhook, and its configuration as the cluster's ConfigMap has it."""

from collections.abc import Iterable

from kerf.errors import ApiError
from kerf.manifests.decode import decode_object
from kerf.model.pods import Pod
from kerf.sharing.family import SHARING
from kerf.sharing.hami.admission import IGNORE_LABEL, Denied, admit
from kerf.sharing.hami.config import is_config
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.records import REGISTER
from kerf.sim.kubernetes.admission import Admission
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.sharing import families_in, installed_in, readable_maps
from kerf.sim.objects import Json, annotations_of, labels_of


def family_of(api: InMemoryApi) -> Hami:
    """HAMi as the cluster's ConfigMap configures it."""
    return Hami().configured(readable_maps(api)).installed(installed_in(api))


def is_installed(api: InMemoryApi, asking: Iterable[Pod] = ()) -> bool:
    """Whether HAMi runs in the cluster: its ConfigMap is there, or a pool or a node is made for it.

    `asking` are pods on their way into the cluster.
    """
    if any(map(is_config, readable_maps(api))):
        return True
    family = next(each for each in families_in(api, asking) if isinstance(each, Hami))
    for pool in api.list("NodePool"):
        template = pool["spec"]["template"].get("metadata") or {}
        if family.selects(template.get("labels") or {}, template.get("annotations") or {}):
            return True
        if annotations_of(pool).get(SHARING) == family.name:
            return True
    return any(REGISTER in annotations_of(node) for node in api.list("Node"))


def webhook(api: InMemoryApi) -> Admission:
    """HAMi's mutating webhook; does nothing while HAMi is not in the cluster."""

    def mutate(obj: Json) -> None:
        if obj["kind"] != "Pod" or _is_ignored(api, obj):
            return
        pod = decode_object(obj)
        if not isinstance(pod, Pod) or not is_installed(api, (pod,)):
            return
        spec, config = pod.spec, family_of(api).config
        outcome = admit(
            spec.init_containers, spec.containers, spec.scheduler_name, config, has_node=bool(pod.node_name)
        )
        if isinstance(outcome, Denied):
            raise ApiError(f'admission webhook "vgpu.hami.io" denied the request: {outcome.message}')
        obj["spec"]["schedulerName"] = outcome.scheduler_name
        for container, resource, value in outcome.changes:
            _set_limit(obj["spec"], container, resource, value)

    return mutate


def _is_ignored(api: InMemoryApi, pod: Json) -> bool:
    label, value = IGNORE_LABEL
    namespace = api.get("Namespace", "", pod["metadata"]["namespace"])
    return value in (labels_of(pod).get(label), namespace and labels_of(namespace).get(label))


def _set_limit(spec: Json, container_name: str, resource: str, value: int) -> None:
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        if container["name"] == container_name:
            resources = container.setdefault("resources", {})
            for part in ("limits", "requests"):
                resources.setdefault(part, {})[resource] = str(value)
