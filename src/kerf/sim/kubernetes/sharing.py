"""Which families share cards in the in-memory cluster, by the same evidence as Kerf goes by."""

from collections.abc import Iterable

from kerf.model.evidence import ClusterPolicy
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.sharing.family import Family
from kerf.sharing.gathering import Gathered
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import judged, of_plugins
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json


def families_in(api: InMemoryApi, asking: Iterable[Pod] = ()) -> tuple[Family, ...]:
    """The families as the cluster configures them; `asking` are pods that are on their way into it.

    Nodes and pods are only gone through where the rest leaves it open whether HAMi is there: every node asks.
    """
    held, gathered = of_plugins(map(_config_map, api.list("ConfigMap"))), Gathered()
    _note(gathered, api.list("DaemonSet"))
    _note(gathered, api.list("ClusterPolicy"))
    families, _ = judged(held, gathered)
    if not _is_open(families):
        return families
    _note(gathered, api.list("Node"))
    _note(gathered, api.list("Pod"))
    for pod in asking:
        gathered.note(None, pod)
    return judged(held, gathered)[0]


def _note(gathered: Gathered, objects: Iterable[Json]) -> None:
    for each in objects:
        value = decoded(each)
        if isinstance(value, Pod | Node | DaemonSet | ClusterPolicy):
            gathered.note(None, value)


def _is_open(families: Iterable[Family]) -> bool:
    return any(isinstance(family, Hami) and (family.yields or family.rivals) for family in families)


def _config_map(held: Json) -> ConfigMap:
    return ConfigMap(held["metadata"].get("namespace", ""), held["metadata"]["name"], held.get("data") or {})
