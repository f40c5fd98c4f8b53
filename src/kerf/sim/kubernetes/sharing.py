"""Which families share cards in the in-memory cluster, by the same evidence as Kerf goes by."""

from collections.abc import Iterable, Sequence

from kerf.errors import DecodeError
from kerf.model.evidence import ClusterPolicy
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ConfigMap, DaemonSet
from kerf.sharing.family import Family
from kerf.sharing.gathering import Gathered
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import configured, judged, of_plugins
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json, name_of


def families_in(api: InMemoryApi, asking: Iterable[Pod] = ()) -> tuple[Family, ...]:
    """The families as the cluster configures them; `asking` are pods that are on their way into it.

    Nodes and pods are only gone through where the rest leaves it open whether HAMi is there: every node asks.
    """
    held, gathered = readable_maps(api), Gathered()
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


def readable_maps(api: InMemoryApi, name: str = "") -> tuple[ConfigMap, ...]:
    """The ConfigMaps that plugins go by, all or those of one name; see `readable`."""
    asked = [held for held in api.list("ConfigMap") if name in ("", name_of(held))]
    latest = of_plugins(map(_config_map, asked))
    if _is_readable(latest):
        return latest
    forms = {_key(_config_map(held)): [_config_map(form) for form in api.forms(held)] for held in asked}
    return readable([forms[_key(each)] for each in latest])


def readable(forms: Iterable[Sequence[ConfigMap]]) -> tuple[ConfigMap, ...]:
    """Of each ConfigMap the newest form that can be read beside those before it; none where none can.

    A plugin that is up keeps the configuration it has when a person breaks the map. `forms` are those of each map, the
    newest first.
    """
    kept: tuple[ConfigMap, ...] = ()
    for each in forms:
        sound = next((form for form in each if _is_readable((*kept, form))), None)
        kept = kept if sound is None else (*kept, sound)
    return kept


def _is_readable(config_maps: tuple[ConfigMap, ...]) -> bool:
    try:
        configured(config_maps)
    except DecodeError:
        return False
    return True


def _note(gathered: Gathered, objects: Iterable[Json]) -> None:
    for each in objects:
        value = decoded(each)
        if isinstance(value, Pod | Node | DaemonSet | ClusterPolicy):
            gathered.note(None, value)


def _is_open(families: Iterable[Family]) -> bool:
    return any(isinstance(family, Hami) and (family.yields or family.rivals) for family in families)


def _key(config_map: ConfigMap) -> tuple[str, str]:
    return config_map.namespace, config_map.name


def _config_map(held: Json) -> ConfigMap:
    return ConfigMap(held["metadata"].get("namespace", ""), held["metadata"]["name"], held.get("data") or {})
