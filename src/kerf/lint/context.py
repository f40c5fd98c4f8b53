"""What a rule may know beside the object it looks at: the other objects, and what the clouds sell.

A rule that compares objects says nothing where the others are not in the input: a single file of a repository is
looked at as often as the whole.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerf.catalog import aws
from kerf.catalog.select import ALIBABA, AWS, PROVIDER_OF_GROUP, known_values, why_not_sold
from kerf.engine.supply.allowed import allowed_types
from kerf.lint.knowledge import exporters
from kerf.lint.subject import POOLS, Subject
from kerf.manifests.decoded import Workload
from kerf.model.constraints import ARCH, CAPACITY_TYPE, OS, REGION, ZONE, Requirements, untolerated
from kerf.model.evidence import PluginEvidence
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.model.windows import CapacityWindow
from kerf.sharing.family import Family
from kerf.sharing.gathering import WITNESSES, Gathered
from kerf.sharing.hami.family import Hami
from kerf.sharing.installed import deployment_of
from kerf.sharing.registry import judged, of_plugins, owner_of
from kerf.sharing.shown import counted_as_shown, will_show
from kerf.sharing.wiring import ConfigurationUnread, findings

UNPRICED = "no price of"
"""How the catalogue speaks of a type that is sold at a price it does not know."""
_PROVIDERS = {**PROVIDER_OF_GROUP, "eks.amazonaws.com": AWS}
_AWS_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", re.ASCII)
ANY_AWS = "any.large"
"""A name that only AWS could have for a type."""
_AWS_DOMAIN = "karpenter.k8s.aws/"
_ALSO: Mapping[str, frozenset[str]] = {
    ARCH: frozenset({"amd64", "arm64"}),
    OS: frozenset({"linux", "windows"}),
    f"{_AWS_DOMAIN}instance-tenancy": frozenset({"dedicated", "default", "host"}),
}
"""Values beside those that a catalogue has: it knows machines of shared tenancy, by Linux."""
Markets = Callable[[str], Market]
"""The market of a provider (`aws`, `alibaba`, `kwok`), an empty one for the empty name.

Raises InputError for a region that it lacks.
"""
OwnMetrics = Callable[[], Mapping[str, str]]
"""Kinds of Kerf's own metrics by name; called when rules of Prometheus are in the input."""


@dataclass(frozen=True, eq=False)
class Held:
    """A workload or pod of the input: the pod it makes and how many of them."""

    subject: Subject
    pod: Pod
    replicas: int


@dataclass(frozen=True, eq=False)
class LintContext:
    """All objects of the input, in its order. `market_of` loads a catalogue when it is first asked for."""

    subjects: tuple[Subject, ...]
    markets: Markets
    own_metrics: OwnMetrics = dict
    _markets: dict[str, Market] = field(default_factory=dict)
    _values: dict[tuple[str, str], dict[str, frozenset[str]]] = field(default_factory=dict)
    _types: dict[tuple[str, Requirements], tuple[InstanceType, ...]] = field(default_factory=dict)
    _types_of: dict[int, tuple[InstanceType, ...]] = field(default_factory=dict)
    _agreed: dict[tuple[object, int], bool] = field(default_factory=dict)
    _fitting: dict[tuple[Resources, int], bool] = field(default_factory=dict)

    def of_kind(self, *kinds: str) -> tuple[Subject, ...]:
        """The objects of these kinds."""
        return tuple(found for kind in kinds for found in self._by_kind.get(kind, ()))

    @cached_property
    def _by_kind(self) -> dict[str, list[Subject]]:
        found: dict[str, list[Subject]] = {}
        for subject in self.subjects:
            found.setdefault(subject.kind, []).append(subject)
        return found

    @cached_property
    def pools(self) -> tuple[tuple[Subject, NodePool], ...]:
        """The pools that could be decoded."""
        return tuple((s, s.value) for s in self.of_kind("NodePool") if isinstance(s.value, NodePool))

    @cached_property
    def judged_pools(self) -> tuple[NodePool, ...]:
        """The pools, for rules that say what no pool offers: none where one of the input could not be judged.

        That is one of a wrong form, a retired one, and one of a cloud without a catalogue.
        """
        pools = [pool for _, pool in self.pools]
        is_whole = len(pools) == len(self.of_kind(*POOLS)) and all(self.market_of(pool).types for pool in pools)
        return tuple(pools) if is_whole else ()

    @cached_property
    def windows(self) -> tuple[tuple[Subject, CapacityWindow], ...]:
        """The windows that could be decoded."""
        found = self.of_kind("CapacityWindow")
        return tuple((s, s.value) for s in found if isinstance(s.value, CapacityWindow))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the input."""
        return tuple(s.value for s in self.of_kind("Node") if isinstance(s.value, Node))

    @cached_property
    def workloads(self) -> tuple[Held, ...]:
        """Every workload and pod that no other object of a cluster has made."""
        return tuple(held for subject in self.subjects if (held := held_by(subject)) is not None)

    @cached_property
    def config_maps(self) -> tuple[ConfigMap, ...]:
        """The ConfigMaps that plugins go by."""
        return of_plugins(s.value for s in self.of_kind("ConfigMap") if isinstance(s.value, ConfigMap))

    @cached_property
    def _judged(self) -> tuple[tuple[Family, ...], PluginEvidence]:
        return judged(self.config_maps, self._gathered)

    @property
    def families(self) -> tuple[Family, ...]:
        """The sharing families, as ConfigMaps and what else the input has say."""
        return self._judged[0]

    @property
    def evidence(self) -> PluginEvidence:
        """What the input says of which device plugins run."""
        return self._judged[1]

    @cached_property
    def unread_configurations(self) -> tuple[ConfigurationUnread, ...]:
        """What stands in the ConfigMaps that NVIDIA's plugins name or mount, and is no configuration."""
        found = (each.cause for each in findings(self.config_maps, self.evidence))
        return tuple(cause for cause in found if isinstance(cause, ConfigurationUnread))

    @cached_property
    def _gathered(self) -> Gathered:
        gathered = Gathered()
        for value in (*(s.value for s in self.subjects), *(held.pod for held in self.workloads)):
            if isinstance(value, WITNESSES):
                gathered.note(None, value)
            elif isinstance(value, Workload) and value.kind == "Deployment":
                labels = value.template.labels
                made = deployment_of(value.namespace, value.name, labels, value.mounts, value.replicas)
                gathered.note(None, made)
        return gathered

    @cached_property
    def hami(self) -> Hami:
        """HAMi as it is configured."""
        return next(family for family in self.families if isinstance(family, Hami))

    def is_hamis(self, pool: NodePool) -> bool:
        """Whether HAMi's device plugin runs on the nodes of a pool."""
        return isinstance(owner_of(pool.node_labels, pool.stated_annotations, self.families), Hami)

    @cached_property
    def metrics(self) -> Mapping[str, str]:
        """Kinds of the metrics that known exporters and Kerf export, by name."""
        return {**exporters().metrics, **self.own_metrics()}

    # What clouds sell.

    def market(self, provider: str) -> Market:
        """The market of a provider."""
        if provider not in self._markets:
            self._markets[provider] = _with_unpriced(self.markets(provider))
        return self._markets[provider]

    def market_of(self, pool: NodePool) -> Market:
        """Where the machines of a pool come from; nothing is known to be sold by a cloud that has no catalogue."""
        return self.market(_PROVIDERS.get(pool.node_class.group, ""))

    def market_for(self, subject: Subject, name: str) -> Market:
        """Where an object would buy a type of that name: by its NodeClass, else by the pools, else by the name."""
        group = subject.text("spec", "template", "spec", "nodeClassRef", "group")
        group = group or subject.text("spec", "nodeClassRef", "group")
        if group:
            return self.market(_PROVIDERS.get(group, ""))
        if subject.template is not None and self.pools:
            return self.market_of(self.pools[0][1])
        if name.startswith("ecs."):
            return self.market(ALIBABA)
        return self.market(AWS if _AWS_TYPE.fullmatch(name) else "")

    def values_of(self, subject: Subject, key: str) -> frozenset[str]:
        """The values of a label among which an object chooses; none where its cloud or the label is not known."""
        market = self.market_chosen_from(subject, key)
        if not market.types:
            return frozenset()
        place = market.provider, market.region
        if place not in self._values:
            self._values[place] = _values(market)
        return self._values[place].get(key, frozenset())

    def market_chosen_from(self, subject: Subject, key: str) -> Market:
        """Where an object would buy that chooses by the label: as `market_for`, else by the label's domain."""
        return self.market_for(subject, ANY_AWS if key.startswith(_AWS_DOMAIN) else "")

    def types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types that a pool admits. Cost: all types of the market, once for equal requirements."""
        if id(pool) not in self._types_of:
            market = self.market_of(pool)
            # A pool that a rule has made up for a moment may get the number of the one before it.
            key = (market.provider, pool.requirements.intersect(Requirements.of_labels(pool.labels)))
            if key not in self._types:
                self._types[key] = allowed_types(pool, market.types)
            if not any(pool is held for _, held in self.pools):
                return self._types[key]
            self._types_of[id(pool)] = self._types[key]
        return self._types_of[id(pool)]

    # Which pods may go where.

    def agrees(self, pod: Pod, pool: NodePool) -> bool:
        """Whether what a pod asks of labels can be a node of the pool; taints and sizes aside."""
        key = (pod.spec.alternatives, id(pool))
        if key not in self._agreed:
            self._agreed[key] = any(self._agrees(asked, pool) for asked in pod.spec.alternatives)
        return self._agreed[key]

    def _agrees(self, asked: Requirements, pool: NodePool) -> bool:
        if not asked:
            return True
        template = pool.template_requirements().without_min_values().intersect(COMING_LABELS)
        if asked.conflict(template) is not None:
            return False
        return any(
            asked.conflict(kind.requirements) is None and not _undefined(asked, template, kind)
            for kind in self.types(pool)
        )

    def runs_on_a_node(self, pod: Pod) -> bool:
        """Whether a node of the input could hold the pod if it were empty, also one of another autoscaler."""
        asked = pod.spec.requests.without(self.hami.resources)
        return any(
            any(wanted.unsatisfied_by(node.labels) is None for wanted in pod.spec.alternatives)
            and untolerated(node.taints, pod.spec.tolerations) is None
            and not asked.shortfall(node.allocatable)
            for node in self.nodes
        )

    def fits(self, pod: Pod, pool: NodePool) -> bool:
        """Whether some type of the pool is large enough for the pod alone, what is cut from cards aside."""
        key = (pod.spec.requests, id(pool))
        if key not in self._fitting:
            self._fitting[key] = self._fits(pod, pool)
        return self._fitting[key]

    def _fits(self, pod: Pod, pool: NodePool) -> bool:
        uncounted = self.hami.resources
        if self.is_hamis(pool):
            uncounted = uncounted | {self.hami.counted}
        asked = pod.spec.requests.without(uncounted)
        wants_cards = asks_cards(pod.spec.requests)
        return any(
            not asked.shortfall(self.shown(kind, pool)) and (not wants_cards or kind.gpu_count > 0)
            for kind in self.types(pool)
        )

    def shown(self, kind: InstanceType, pool: NodePool) -> Resources:
        """What kubelet will show of a type, with the parts of cards that are cut beforehand."""
        family, devices = self._cards(kind, pool)
        return will_show(kind.allocatable, family, self.families, devices)

    def charged(self, kind: InstanceType, pool: NodePool) -> Resources:
        """What a node of a type counts against the limits of the pool."""
        return counted_as_shown(kind.capacity, *self._cards(kind, pool))

    def _cards(self, kind: InstanceType, pool: NodePool) -> tuple[Family, tuple[DeviceState, ...]]:
        labels, annotations = pool.node_labels, pool.stated_annotations
        family = owner_of(labels, annotations, self.families)
        return family, family.predict(kind.devices, labels, annotations) if kind.devices else ()


def _with_unpriced(market: Market) -> Market:
    """With the types that a region of AWS sells at prices that are not known: what a machine is hangs on no price."""
    if market.provider != AWS or market.region == aws.DEFAULT_REGION:
        return market
    unpriced = [
        replace(kind, requirements=kind.requirements.without((ZONE, REGION, CAPACITY_TYPE)), offerings=())
        for kind in aws.load().types
        if market.find(kind.name) is None and (why_not_sold(AWS, market.region, kind.name) or "").startswith(UNPRICED)
    ]
    return replace(market, types=tuple(sorted((*market.types, *unpriced), key=lambda kind: kind.name)))


def _values(market: Market) -> dict[str, frozenset[str]]:
    """By label the values that types have, sold or not."""
    found: dict[str, set[str]] = {}
    for kind in market.types:
        for key, held in kind.requirements.items():
            if not held.complement:
                found.setdefault(key, set()).update(held.values)
    also = known_values(market.provider)
    for key, values in found.items():
        values.update(_ALSO.get(key, also.get(key, frozenset())))
    return {key: frozenset(values) for key, values in found.items()}


def _undefined(asked: Requirements, template: Requirements, kind: InstanceType) -> bool:
    return asked.undefined(template.intersect(kind.requirements)) is not None


def asks_cards(amounts: Resources) -> bool:
    """Whether any resource of a GPU vendor is asked for."""
    return any(amount > 0 and is_card(name) for name, amount in amounts.items())


def is_card(name: str) -> bool:
    """Whether a resource is a GPU or a part of one, whole vendors' domains taken together."""
    return name.partition("/")[0] in ("nvidia.com", "amd.com") or name.endswith("/gpu")


def held_by(subject: Subject) -> Held | None:
    """The pod that an object makes; None where it makes none, or another object of a cluster has made it."""
    if subject.is_live and subject.get("metadata", "ownerReferences"):
        return None
    value = subject.value
    if isinstance(value, Workload):
        return Held(subject, value.template, _asked_replicas(subject, value))
    if isinstance(value, DaemonSet):
        return Held(subject, value.pod, 1)
    return Held(subject, value, 1) if isinstance(value, Pod) else None


def _asked_replicas(subject: Subject, workload: Workload) -> int:
    """How many pods it may run at once, a CronJob's next run too."""
    if subject.kind != "CronJob":
        return workload.replicas
    parallelism = subject.get("spec", "jobTemplate", "spec", "parallelism")
    return parallelism if isinstance(parallelism, int) else 1


def some_names(kinds: Iterable[InstanceType], most: int = 4) -> str:
    """The cheapest types by name, and how many there are beyond `most`."""
    ordered = sorted(kinds, key=lambda kind: (price_of(kind), kind.name))
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(kind.name for kind in ordered[:most]) + more


def price_of(kind: InstanceType) -> int:
    """The least price of a type in millionths an hour; 0 where it has no offering."""
    return min((offering.price_micro for offering in kind.offerings), default=0)
