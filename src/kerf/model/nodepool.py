"""NodePool (`karpenter.sh/v1`): what may be launched, and how it may be disrupted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerf.model.bounds import Bounds, bounds_of
from kerf.model.constraints import INSTANCE_TYPE, NODE_POOL, Requirements, Taint
from kerf.model.cronjobs import LEAD_TIMES
from kerf.model.nodeclaim import OBSERVED_DEVICES, Condition, NodeClassRef
from kerf.model.quantities import Resources

EMPTY, UNDERUTILIZED, DRIFTED, UNHEALTHY = "Empty", "Underutilized", "Drifted", "Unhealthy"
EXPIRED, SCALED_DOWN = "Expired", "ScaledDown"
"""Why a node is disrupted."""
REPLACE_EXPIRED = "kerf.dev/replace-expired"
"""Annotation of a pool: `true` where a node that is as old as `expireAfter` goes only once others are up instead."""
LIMITS_REACHED = "LimitsReached"
"""Condition of a pool whose limits keep pods waiting."""
GPU_SHARING_MISCONFIGURED = "GPUSharingMisconfigured"
"""Condition of a pool some of whose nodes would show no GPU, or whose ConfigMap cannot be read."""
NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy"
"""Condition of a pool: whether its last claims have registered."""
_NOTES = (OBSERVED_DEVICES, LEAD_TIMES, "karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version")
"""Annotations that Kerf itself keeps on a pool."""
_DOMAIN = "kerf.dev/"
"""Of the annotations that a decision reads."""
WHEN_EMPTY, WHEN_EMPTY_OR_UNDERUTILIZED, BALANCED = "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"


@dataclass(frozen=True, slots=True)
class Budget:
    """How many nodes may be disrupted at once; `nodes` is a number or a percentage, `reasons` empty means all.

    `schedule` is cron in UTC, in numbers, and stands together with `duration_s`; `stated_schedule` is it as a person
    wrote it.
    """

    nodes: str = "10%"
    reasons: tuple[str, ...] = ()
    schedule: str | None = None
    duration_s: int | None = None
    stated_schedule: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Disruption:
    """When nodes of a pool may go. `consolidate_after_s` None means Never."""

    consolidate_after_s: int | None = 0
    policy: str = WHEN_EMPTY_OR_UNDERUTILIZED
    budgets: tuple[Budget, ...] = (Budget(),)


@dataclass(frozen=True)
class NodePool:
    """A pool as its manifest states it, plus what the API knows of it.

    `labels`, `annotations`, `taints`, `startup_taints` are those of the template. `limits` None means unlimited; a key
    that is absent from it too. `own_labels` and `own_annotations` are those of the pool object itself.
    `chosen_labels` are those of `labels` that Kerf has chosen for one node, where the pool left them open.
    `expire_after_s` and `termination_grace_period_s` None mean never. `invalid` says what of the spec cannot be carried
    out although the API took it, so the pool takes no nodes; `invalid_schedule` that of a budget, so no node
    is disrupted.
    """

    name: str
    node_class: NodeClassRef
    requirements: Requirements
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    limits: Resources | None = None
    weight: int = 0
    replicas: int | None = None
    disruption: Disruption = Disruption()
    expire_after_s: int | None = 720 * 3600
    termination_grace_period_s: int | None = None
    own_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    own_annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    uid: str = ""
    generation: int = 1
    created_s: float = 0
    deleted_s: float | None = None
    conditions: tuple[Condition, ...] = ()
    resources: Resources = field(default=Resources(), hash=False)
    invalid: str = ""
    invalid_schedule: str = ""
    chosen_labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def node_labels(self) -> Mapping[str, str]:
        """The labels that every node of the pool gets: the template's, the pool's name and its NodeClass."""
        return {**self.labels, NODE_POOL: self.name, self.node_class.label: self.node_class.name}

    @property
    def stated_annotations(self) -> Mapping[str, str]:
        """Annotations of the pool and of its template; the template's win."""
        return {**self.own_annotations, **self.annotations}

    @property
    def replaces_expired(self) -> bool:
        """Whether an old node goes only once others are up in its place."""
        return self.stated_annotations.get(REPLACE_EXPIRED) == "true"

    @cached_property
    def bounds(self) -> Bounds:
        """Floor and price caps, as its annotations state them."""
        return bounds_of(self.stated_annotations)

    @property
    def fewest(self) -> int:
        """So many nodes it has at least, whatever pods there are: exactly so many where it is static."""
        return self.bounds.min_nodes if self.replicas is None else self.replicas

    @cached_property
    def min_values(self) -> Mapping[str, int]:
        """By label the least number of its values that the types of a claim have among them; only from 2 on."""
        stated = ((key, each.min_values or 0) for key, each in self.requirements.items())
        return {key: least for key, least in stated if least > 1}

    @cached_property
    def named_types(self) -> frozenset[str]:
        """The instance types that its requirements list, or a label of its template names; empty where neither does."""
        listed = self.requirements.get(INSTANCE_TYPE)
        label = Requirements.of_labels(self.labels).get(INSTANCE_TYPE)
        found = (each.values for each in (listed, label) if each is not None and not each.complement)
        return frozenset[str]().union(*found)

    def template_requirements(self) -> Requirements:
        """What every node of the pool satisfies: requirements, labels, and the pool's own name."""
        return self.requirements.intersect(Requirements.of_labels(self.node_labels))

    def template(self) -> "NodePool":
        """The pool without what changes by itself: status and the notes that Kerf keeps on it."""
        noted = {key: value for key, value in self.own_annotations.items() if key not in _NOTES}
        return replace(self, conditions=(), resources=Resources(), own_annotations=noted)

    @property
    def _read_annotations(self) -> Mapping[str, str]:
        stated = self.stated_annotations
        return {key: stated[key] for key in sorted(stated) if key.startswith(_DOMAIN) and key not in _NOTES}

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        """Sort key: higher weight first, then the later name first, as Karpenter's `OrderByWeight`."""
        return (-self.weight, (*(-ord(letter) for letter in self.name), 1))


def is_read_alike(one: NodePool, other: NodePool) -> bool:
    """Whether plans read the same of two versions of a pool: spec, whether it goes, and the annotations for Kerf.

    Annotations are no part of the generation; others' may change all the time.
    """
    if (one.uid, one.generation, one.deleted_s) != (other.uid, other.generation, other.deleted_s):
        return False
    return one._read_annotations == other._read_annotations
