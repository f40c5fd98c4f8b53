"""Stand-in for HAMi's control plane: its webhook, and its scheduler extender's filter and bind.

HAMi decides node and card in one step, before kube-scheduler's own scores count, and writes its decision on the pod
before the pod is bound. The rules are those of `sharing.hami`, which recorded verdicts of the real extender check; here
is only what surrounds them. Nothing in the filter talks to an API, so that `hami_server` can serve it to a real
kube-scheduler. In memory the lock that HAMi puts on a node between bind and the start of the pod is not taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerf.errors import ApiError, DecodeError
from kerf.manifests.decode import decode_object
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ConfigMap, ResourceQuota
from kerf.sharing.family import SHARING, Fit, Occupant
from kerf.sharing.hami import Hami
from kerf.sharing.hami_admission import IGNORE_LABEL, Denied, admit, requests_of
from kerf.sharing.hami_config import CONFIG_MAP
from kerf.sharing.hami_options import WeightsError, read_options
from kerf.sharing.hami_records import BIND_PHASE, BIND_TIME, NODE, REGISTER, allocation_annotations
from kerf.sharing.registry import of_plugins
from kerf.sim.admission import Admission
from kerf.sim.api import InMemoryApi
from kerf.sim.objects import Json, annotations_of, labels_of

UNREGISTERED = "node unregistered"
"""HAMi's word for a node that has no cards yet: the normal state of a fresh node."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The extender's answer. `node` is empty when none fits; `reasons` says of each refused node why.

    `annotations` are HAMi's record of its choice; empty for a pod that it lets pass, for which `node` is empty too and
    `passes` is true: kube-scheduler chooses. `error` fails the whole attempt, whatever the nodes.
    """

    node: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    passes: bool = False
    error: str = ""


def filter_nodes(
    family: Hami,
    pod: Pod,
    nodes: Sequence[Node],
    holders: Mapping[str, Sequence[Pod]],
    quotas: Sequence[ResourceQuota],
    now_s: float,
) -> Verdict:
    """HAMi's choice among `nodes`; where it would draw lots, the first in the order given.

    `holders` are the pods that hold cards of each node, also those that HAMi has booked and nobody has bound yet. The
    pod is taken as it is: what is wrong with it was for the webhook to say.
    """
    containers = requests_of(pod.spec.init_containers, pod.spec.containers, family.config)
    if all(container.request is None for container in containers):
        return Verdict(passes=True)
    try:
        options = read_options(pod.annotations, family.config, honours_pins=True)
    except WeightsError as error:
        text = f"calcScore failed {error} for pod {pod.name}"
        return Verdict(reasons={node.name: text for node in nodes}, error=text)
    demand = PodDemand(family.name, containers, options)
    fits: dict[str, Fit] = {}
    reasons: dict[str, str] = {}
    for node in nodes:
        answer = _fit(family, demand, pod, node, holders.get(node.name, ()), quotas)
        if isinstance(answer, Fit):
            fits[node.name] = answer
        else:
            reasons[node.name] = answer
    if not fits:
        return Verdict(reasons=reasons)
    chosen = min(fits, key=lambda name: family.node_score_order(demand, fits[name].score))
    return Verdict(chosen, allocation_annotations(fits[chosen], demand, chosen, now_s), reasons)


def _fit(
    family: Hami, demand: PodDemand, pod: Pod, node: Node, holders: Sequence[Pod], quotas: Sequence[ResourceQuota]
) -> Fit | str:
    try:
        devices = family.inventory(node)
    except DecodeError:
        # HAMi skips a node whose register it cannot read, like one that has none.
        devices = None
    if devices is None:
        return UNREGISTERED
    # HAMi knows only pods that carry its own record, so a pod without one holds nothing here.
    others = [Occupant(holder, None) for holder in holders if holder.key != pod.key]
    answer = family.decide(family.occupied(devices, others), demand, pod, node, quotas)
    return answer if isinstance(answer, Fit) else answer.reason


def record_patch(verdict: Verdict) -> Json:
    """What the filter writes on the pod it has placed."""
    return {"metadata": {"annotations": dict(verdict.annotations), "labels": {NODE: verdict.node}}}


def bind_patch(now_s: float) -> Json:
    """What bind writes on the pod before the binding itself; the device plugin turns it into `success`."""
    return {"metadata": {"annotations": {BIND_PHASE: "allocating", BIND_TIME: str(int(now_s))}}}


def family_of(api: InMemoryApi) -> Hami:
    """HAMi as the cluster's ConfigMap configures it."""
    maps = [
        ConfigMap(m["metadata"]["namespace"], m["metadata"]["name"], m.get("data") or {})
        for m in api.list("ConfigMap")
        if m["metadata"]["name"] == CONFIG_MAP
    ]
    return Hami().configured(of_plugins(maps))


def is_installed(api: InMemoryApi) -> bool:
    """Whether HAMi runs in the cluster: its ConfigMap is there, or a pool or a node is made for it."""
    if any(m["metadata"]["name"] == CONFIG_MAP for m in api.list("ConfigMap")):
        return True
    family = Hami()
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
        if obj["kind"] != "Pod" or _is_ignored(api, obj) or not is_installed(api):
            return
        pod = decode_object(obj)
        if not isinstance(pod, Pod):
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
