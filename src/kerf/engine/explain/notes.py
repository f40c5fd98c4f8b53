"""What an operator should know beside a plan."""

from collections.abc import Iterable, Sequence

from kerf.engine.explain.causes import cause_text, counted
from kerf.engine.headroom.prewarm import prewarm_problem, warnings
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN, group_of
from kerf.model.market import Market
from kerf.model.plan import Launch
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY, PODS
from kerf.model.snapshot import ClusterSnapshot
from kerf.sharing.family import SHARING
from kerf.sharing.hami.family import Basis, Hami
from kerf.sharing.registry import families_of, owner_of, unknown_sharing

_GPU_RESOURCES = "nvidia.com/"


def notes(snapshot: ClusterSnapshot, market: Market, pods: Iterable[Pod]) -> tuple[str, ...]:
    """What an operator should know beside the plan."""
    found = [*market.notes]
    pending = list(pods)
    silent = [
        pod
        for pod in pending
        if not pod.spec.requests.get(CPU)
        and not pod.spec.requests.get(MEMORY)
        and not any(amount for name, amount in pod.spec.requests.items() if name not in (CPU, MEMORY, PODS))
    ]
    if silent:
        whose = sorted(
            {f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else f"Pod {pod.key}" for pod in silent}
        )
        found.append(
            f"{counted(len(silent), 'pod')} {'asks' if len(silent) == 1 else 'ask'} for nothing ({_some(whose)}): "
            "a node takes them until its pod limit, however busy it is; give them cpu and memory requests"
        )
    for constraint in sorted({name for pod in pending for name in pod.spec.not_planned}):
        number = sum(1 for pod in pending if constraint in pod.spec.not_planned)
        found.append(f"{counted(number, 'pod')} with {constraint}: this version plans as if it were not there")
    alone = sum(1 for pod in pending if POD_GROUP_MIN in {**pod.annotations, **pod.labels} and group_of(pod) is None)
    if alone:
        found.append(
            f"{counted(alone, 'pod')} with {POD_GROUP_MIN} and no label {POD_GROUP}: of no group, planned alone"
        )
    found.extend(_sharing_notes(snapshot))
    if any(name.startswith(_GPU_RESOURCES) for pod in pending for name in pod.spec.requests):
        found.extend(_label_notes(snapshot))
    claims = [node.claim for node in snapshot.nodes if node.claim is not None]
    for cron_job in snapshot.cron_jobs:
        found += (f"CronJob {cron_job.key}: {why}" for why in warnings(cron_job, snapshot.node_pools, claims))
    return tuple(found)


def estimates(launches: Sequence[Launch]) -> tuple[str, ...]:
    """That some prices of the plan are estimates."""
    number = sum(1 for launch in launches if launch.is_estimate)
    if not number:
        return ()
    what = "1 spot launch is" if number == 1 else f"{number} spot launches is"
    return (
        f"the price of {what} an estimate: on-demand less the average saving that the catalogue states with its date",
    )


def _sharing_notes(snapshot: ClusterSnapshot) -> list[str]:
    """Pools whose nodes would register no card, or whose sharing mode is none that this version plans for."""
    families = families_of(snapshot)
    found = []
    for pool in sorted(snapshot.node_pools, key=lambda p: p.name):
        annotations = pool.stated_annotations
        family = owner_of(pool.labels, annotations, families)
        if family.selector is not None and pool.taints:
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


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
