"""What an operator should know beside a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerf.engine.explain.causes import cause_text, counted, some
from kerf.engine.explain.runs import warning_text
from kerf.engine.explain.volumes import assumed_notes
from kerf.engine.headroom.prewarm import Leads, prewarm_problem, warnings
from kerf.engine.supply.offered import supply
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN, group_of
from kerf.model.instancetypes import RESERVED
from kerf.model.market import Market
from kerf.model.plan import Launch
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import CPU, MEMORY, PODS
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.uses import uses_problems
from kerf.sharing.family import SHARING, Family, Occupant
from kerf.sharing.hami.family import Basis, Hami
from kerf.sharing.hami.mig import HAMI_MODE
from kerf.sharing.hami.misrecorded import Misrecord, misrecorded
from kerf.sharing.hami.options import MIG_MODE, WORDED, unknown_words
from kerf.sharing.installed import on_nodes
from kerf.sharing.nvidia.choice import label_choices
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL, PluginConfigs
from kerf.sharing.nvidia.mig import STRATEGY_LABEL, Mig
from kerf.sharing.nvidia.replicas import Replicated
from kerf.sharing.nvidia.whole import Whole
from kerf.sharing.registry import demand_of, families_of, owner_of, unknown_sharing
from kerf.sharing.unheeded import GeometriesUnheeded, NodesSetAlone
from kerf.sharing.wiring import ConfigMapAbsent, findings

_GPU_RESOURCES = "nvidia.com/"
_MOST_ALIKE = 3
_MISRECORDED = "misrecorded"
_NEITHER = "there is neither its DaemonSet nor a ClusterPolicy"


def _booked_notes(pending: Sequence[Pod], snapshot: ClusterSnapshot) -> list[str]:
    """Pods that hold cards by a record of a sharing family, though they ask for none: any user may write one."""
    idle = [
        pod.key
        for family in families_of(snapshot)
        for pod in pending
        if _takes_there(pod, snapshot.node(family.booked_node(pod)), family) and _asks_nothing(pod, family)
    ]
    if not idle:
        return []
    have = "asks for no GPU and has" if len(idle) == 1 else "ask for no GPU and have"
    text = f"{counted(len(idle), 'pod')} ({some(idle)}) {have} a scheduler's record of one"
    return [f"{text}: that scheduler counts it, so the part of the GPU is taken"]


def _takes_there(pod: Pod, node: ClusterNode | None, family: Family) -> bool:
    """Whether the record on the pod takes a part of the node's cards."""
    if node is None or not family.has_record(pod):
        return False
    return family.occupied(node.devices, (Occupant(pod, None),)) != node.devices


def record_notes(nodes: Iterable[ClusterNode]) -> list[str]:
    """Pods whose record of HAMi's does not say which cards they hold; of many the first few."""
    found = [(pod.key, cause) for node in nodes for pod, cause in _misrecorded(node)]
    texts = [f"Pod {key}: {cause_text(cause)}" for key, cause in found[:_MOST_ALIKE]]
    if len(found) > _MOST_ALIKE:
        others = [key for key, _ in found[_MOST_ALIKE:]]
        texts.append(f"{counted(len(others), 'more pod')} ({some(others)}): HAMi's record names no card of the node")
    return texts


def _misrecorded(node: ClusterNode) -> tuple[tuple[Pod, Misrecord], ...]:
    """Worked out once for each node as it is."""
    found = node.findings.get(_MISRECORDED)
    if found is None:
        found = node.findings[_MISRECORDED] = None, tuple(misrecorded(node))
    pods: tuple[tuple[Pod, Misrecord], ...] = found[1]
    return pods


def _asks_nothing(pod: Pod, family: Family) -> bool:
    demand = demand_of(pod, family)
    return isinstance(demand, PodDemand) and demand.is_empty


def _word_notes(pending: Sequence[Pod], snapshot: ClusterSnapshot) -> list[str]:
    """Words in annotations that HAMi does not know, each once, with the pods that have it."""
    hami = next((family for family in families_of(snapshot) if isinstance(family, Hami)), None)
    own = {hami.counted, *hami.resources} if hami is not None else set()
    naming: dict[str, list[str]] = {}
    for pod in pending:
        if any(key in pod.annotations for key in WORDED) and own & pod.spec.requests.keys():
            for cause in unknown_words(pod.annotations):
                naming.setdefault(cause_text(cause), []).append(pod.key)
    return [f"{some(pods)}: {text}" for text, pods in naming.items()]


def notes(snapshot: ClusterSnapshot, market: Market, pods: Iterable[Pod]) -> tuple[str, ...]:
    """What an operator should know beside the plan."""
    found = [*market.notes]
    pending = list(pods)
    silent = [
        pod
        for pod in pending
        if pod.invalid is None
        and not pod.spec.requests.get(CPU)
        and not pod.spec.requests.get(MEMORY)
        and not any(amount for name, amount in pod.spec.requests.items() if name not in (CPU, MEMORY, PODS))
    ]
    if silent:
        whose = sorted(
            {f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else f"Pod {pod.key}" for pod in silent}
        )
        found.append(
            f"{counted(len(silent), 'pod')} {'asks' if len(silent) == 1 else 'ask'} for nothing ({some(whose)}): "
            "a node takes them until its pod limit, however busy it is; give them cpu and memory requests"
        )
    found += _leaving_notes(pending, snapshot)
    found += unread_cards(snapshot.nodes)
    found += record_notes(snapshot.nodes)
    found += _booked_notes(pending, snapshot)
    found += _word_notes(pending, snapshot)
    found += assumed_notes(pending, snapshot)
    alone = sum(1 for pod in pending if POD_GROUP_MIN in {**pod.annotations, **pod.labels} and group_of(pod) is None)
    if alone:
        found.append(
            f"{counted(alone, 'pod')} with {POD_GROUP_MIN} and no label {POD_GROUP}: of no group, planned alone"
        )
    found.extend(pool_notes(snapshot, market, pending))
    return (*found, *_run_notes(snapshot))


def unread_cards(nodes: Iterable[ClusterNode]) -> list[str]:
    """Nodes that no pod is planned onto, because their cards cannot be planned with; each of the first few with why."""
    broken = [(node.name, node.problem) for node in nodes if node.problem is not None]
    found = [f"node {name} takes no pod: {cause_text(why)}" for name, why in broken[:_MOST_ALIKE]]
    if len(broken) > _MOST_ALIKE:
        others = [name for name, _ in broken[_MOST_ALIKE:]]
        take = "takes" if len(others) == 1 else "take"
        text = f"{counted(len(others), 'more node')} ({some(others)}) {take} no pod"
        found.append(f"{text}: kerf explain node/NAME says why")
    return found


def _leaving_notes(pods: Iterable[Pod], snapshot: ClusterSnapshot) -> list[str]:
    """Which of these pods still run: a plan would look as if more waited than do."""
    homes = [snapshot.leaving[pod.key] for pod in pods if pod.key in snapshot.leaving]
    if not homes:
        return []
    run, are = ("runs", "is") if len(homes) == 1 else ("run", "are")
    nodes = some(sorted(set(homes)))
    pods_text = counted(len(homes), "pod")
    return [f"{pods_text} still {run} on nodes that are being deleted ({nodes}), and {are} planned for already"]


def _run_notes(snapshot: ClusterSnapshot) -> list[str]:
    """What keeps runs of CronJobs from their nodes; what many of a namespace have in common is said once."""
    leads = Leads(snapshot.node_pools, [node.claim for node in snapshot.nodes if node.claim is not None])
    warned = [(each, warning_text(why)) for each in snapshot.cron_jobs for why in warnings(each, leads)]
    alike: dict[tuple[str, str], list[str]] = {}
    for cron_job, why in warned:
        alike.setdefault((cron_job.namespace, why), []).append(cron_job.key)
    found = []
    for cron_job, why in warned:
        whose = alike[cron_job.namespace, why]
        if len(whose) <= _MOST_ALIKE:
            found.append(f"CronJob {cron_job.key}: {why}")
        elif whose[0] == cron_job.key:
            found.append(f"{len(whose)} CronJobs ({some(whose)}): for each of them: {why}")
    return found


def pool_notes(snapshot: ClusterSnapshot, market: Market, pods: Iterable[Pod]) -> tuple[str, ...]:
    """What an operator should know of the pools, and of their cards where one of the pods asks for any."""
    found = [*_sharing_notes(snapshot)]
    if any("/" in name for pod in pods for name in pod.spec.requests):
        found += _wiring_notes(snapshot)
    if any(name.startswith(_GPU_RESOURCES) for pod in pods for name in pod.spec.requests):
        found += (*_label_notes(snapshot), *_unknown_notes(snapshot, market))
    return tuple(found)


def _wiring_notes(snapshot: ClusterSnapshot) -> Iterator[str]:
    """ConfigMaps that plugins read and that are not there, and those and the settings that they pass over."""
    pools, families = snapshot.node_pools, families_of(snapshot)
    cuts = any(pool.stated_annotations.get(HAMI_MODE) == MIG_MODE for pool in pools)
    hamis = any(isinstance(owner_of(p.node_labels, p.stated_annotations, families), Hami) for p in pools)
    for each in findings(snapshot.config_maps, snapshot.evidence):
        # Charts before 2.10 write the one by default, and nodes that stay may well have the other.
        if (isinstance(each.cause, GeometriesUnheeded) and not cuts) or (
            isinstance(each.cause, NodesSetAlone) and not hamis
        ):
            continue
        is_absent = isinstance(each.cause, ConfigMapAbsent)
        yield f"{cause_text(each.cause)}: planned without it" if is_absent else cause_text(each.cause)


def estimates(launches: Sequence[Launch]) -> tuple[str, ...]:
    """That some prices of the plan are estimates."""
    number = sum(1 for launch in launches if launch.is_estimate)
    if not number:
        return ()
    what = "1 spot launch is" if number == 1 else f"{number} spot launches is"
    return (
        f"the price of {what} an estimate: on-demand less the average saving that the catalogue states with its date",
    )


def free(launches: Sequence[Launch]) -> tuple[str, ...]:
    """Which nodes cost nothing, though they are of no reservation: a mistake would look like the cheapest plan."""
    unpaid = {launch.offering for launch in launches if not launch.price_micro}
    found = (each for each in unpaid if each.capacity_type != RESERVED)
    places: dict[tuple[str, str], list[str]] = {}
    for each in sorted(found, key=lambda each: (each.instance_type, each.capacity_type, each.zone)):
        places.setdefault((each.instance_type, each.capacity_type), []).append(each.zone)
    return tuple(
        f"{name}, {kind} in {some(zones)}, costs nothing by the catalogue: "
        "nothing is cheaper, so check that this is its price"
        for (name, kind), zones in places.items()
    )


def fractions(launches: Sequence[Launch]) -> tuple[str, ...]:
    """That the device plugin was not seen on types with a part of a card."""
    parts = {
        launch.offering.instance_type: card.eighths
        for launch in launches
        for card in launch.devices
        if card.is_fraction
    }
    return tuple(
        f"{name} is sold with {eighths}/8 of a card; what the device plugin shows there was not verified"
        for name, eighths in sorted(parts.items())
    )


def _sharing_notes(snapshot: ClusterSnapshot) -> list[str]:
    """Pools whose nodes would register no card, or whose sharing mode is none that this version plans for."""
    families = families_of(snapshot)
    found = []
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        annotations = pool.stated_annotations
        family = owner_of(pool.node_labels, annotations, families)
        if family.selector is not None and pool.taints and not on_nodes(family.plugins, pool.node_labels):
            found.append(
                f"NodePool {pool.name} has the taint {min(pool.taints)}: unless {family.title}'s device plugin was "
                "installed with a toleration for it, its nodes register no card"
            )
        if pool.bounds.invalid:
            found.append(f"NodePool {pool.name}: {pool.bounds.invalid}; it takes no nodes until then")
        if pool.bounds.invalid_floor:
            found.append(f"NodePool {pool.name}: {pool.bounds.invalid_floor}; none of its nodes is removed until then")
        if prewarm_problem(pool):
            found.append(f"NodePool {pool.name}: {prewarm_problem(pool)}; it counts as absent")
        found += (f"NodePool {pool.name}: {why}; it lets no namespace in" for _, why in uses_problems(annotations))
        unknown = unknown_sharing(annotations, families)
        if unknown is not None:
            found.append(f"NodePool {pool.name}: {cause_text(unknown)}; it counts as absent")
    return found


def _label_notes(snapshot: ClusterSnapshot) -> list[str]:
    """Pools of whose cards only a label says that they are HAMi's, whether it is believed or not."""
    hami = next((family for family in families_of(snapshot) if isinstance(family, Hami)), None)
    if hami is None or hami.selector is None:
        return []
    found, (key, value) = [], hami.selector
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        annotations = pool.stated_annotations
        if pool.labels.get(key) != value or SHARING in annotations:
            continue
        where = f'NodePool {pool.name}: the label {key}: "{value}"'
        if not hami.selects(pool.labels, annotations):
            found.append(
                f"{where} does not make its cards HAMi's, because NVIDIA's plugin is configured or installed and HAMi "
                f"is not; {SHARING}: hami says otherwise"
            )
        elif hami.basis is Basis.LABEL:
            found.append(
                f"{where} alone says that its cards are HAMi's, which this plan assumes: there is no register, "
                f"DaemonSet or ConfigMap of HAMi, and no pod asks for its resources; {SHARING} says whose they are"
            )
    return found


def _unknown_notes(snapshot: ClusterSnapshot, market: Market) -> list[str]:
    """Pools with GPUs of which the plan rests on how NVIDIA's device plugin was started, where nothing says so."""
    families, offered = families_of(snapshot), supply(snapshot, market)
    found = []
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        held = (*offered.by_pool.get(pool.name, ()), *(c for c in offered.unavailable if c.pool.name == pool.name))
        if any(each.kind.devices for each in held):
            annotations = pool.stated_annotations
            choices = label_choices(pool.labels, annotations, has_mig=True)
            said = (_unknown({**pool.node_labels, **choice}, annotations, families) for choice in choices)
            found += [f"NodePool {pool.name}: {text}" for text in dict.fromkeys(said) if text]
    return found


def _has_absent_map(configs: PluginConfigs, labels: Mapping[str, str]) -> bool:
    """Whether the plugin of such nodes reads a ConfigMap that is not there, which is said of the plugin."""
    settings = configs.settings(labels)
    return settings is not None and bool(settings.config_map) and not configs.known(labels)


def _unknown(labels: Mapping[str, str], annotations: Mapping[str, str], families: Sequence[Family]) -> str:
    """What is not known of nodes with these labels, and what is planned for; empty where nothing rests on it."""
    family = owner_of(labels, annotations, families)
    if not isinstance(family, Mig | Replicated | Whole):
        return ""
    plugin, default = family.plugin, family.plugin.default(labels)
    if isinstance(family, Mig) and not plugin.mig_strategy(labels) and STRATEGY_LABEL not in labels:
        why = _NEITHER if plugin.settings(labels) is None else "no ConfigMap that is read holds its configuration"
        return f"the MIG strategy of NVIDIA's device plugin is unknown ({why}): planned for mixed and single"
    if plugin.is_unread(labels) and not _has_absent_map(plugin, labels):
        return (
            f"NVIDIA's device plugin gives its nodes the configuration {default}, which no ConfigMap that is read "
            "holds: planned without it"
        )
    if isinstance(family, Replicated) and plugin.settings(labels) is None and default and CONFIG_LABEL not in labels:
        return (
            f"which configuration of NVIDIA's device plugin nodes without the label {CONFIG_LABEL} have is unknown "
            f"({_NEITHER}): planned with {default}, which its own chart gives them and the GPU operator does not"
        )
    return ""
