"""Which families share cards in the in-memory cluster, by the same evidence as Kerf goes by."""

from collections.abc import Iterable, Sequence

from kerf.model.evidence import NO_EVIDENCE, PluginEvidence
from kerf.model.pods import Pod
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Family
from kerf.sharing.gathering import WITNESSES, Gathered
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import judged, of_plugins, problem_in
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json


def families_in(api: InMemoryApi, asking: Iterable[Pod] = ()) -> tuple[Family, ...]:
    """The families as the cluster configures them; `asking` are pods that are on their way into it.

    Nodes and pods are only gone through where the rest leaves it open whether HAMi is there: every node asks.
    """
    held, gathered = readable_maps(api), Gathered()
    _note(gathered, api.list("DaemonSet"))
    _note(gathered, api.list("ClusterPolicy"))
    _note(gathered, api.list("EC2NodeClass"))
    families, _ = judged(held, gathered)
    if not _is_open(families):
        return families
    _note(gathered, api.list("Node"))
    _note(gathered, api.list("Pod"))
    for pod in asking:
        gathered.note(None, pod)
    return judged(held, gathered)[0]


def readable_maps(api: InMemoryApi) -> tuple[ConfigMap, ...]:
    """The ConfigMaps that plugins go by; see `readable`."""
    asked = api.list("ConfigMap")
    latest = of_plugins(map(_config_map, asked))
    evidence = installed_in(api)
    if problem_in(latest, evidence) is None:
        return latest
    forms = {_key(_config_map(held)): [_config_map(form) for form in api.forms(held)] for held in asked}
    return readable([forms[_key(each)] for each in latest], evidence)


def readable(forms: Iterable[Sequence[ConfigMap]], evidence: PluginEvidence = NO_EVIDENCE) -> tuple[ConfigMap, ...]:
    """Of each ConfigMap the newest form that can be read beside those before it; none where none can.

    A plugin that is up keeps the configuration it has when a person breaks the map. `forms` are those of each map, the
    newest first.
    """
    kept: tuple[ConfigMap, ...] = ()
    for each in forms:
        sound = next((form for form in each if problem_in((*kept, form), evidence) is None), None)
        kept = kept if sound is None else (*kept, sound)
    return kept


def installed_in(api: InMemoryApi) -> PluginEvidence:
    """Which device plugins are installed, and how they were started."""
    gathered = Gathered()
    _note(gathered, api.list("DaemonSet"))
    _note(gathered, api.list("ClusterPolicy"))
    _note(gathered, api.list("EC2NodeClass"))
    return gathered.evidence(())


def _note(gathered: Gathered, objects: Iterable[Json]) -> None:
    for each in objects:
        value = decoded(each)
        if isinstance(value, WITNESSES):
            gathered.note(None, value)


def _is_open(families: Iterable[Family]) -> bool:
    return any(isinstance(family, Hami) and (family.yields or family.rivals) for family in families)


def _key(config_map: ConfigMap) -> tuple[str, str]:
    return config_map.namespace, config_map.name


def _config_map(held: Json) -> ConfigMap:
    metadata = held["metadata"]
    labels = metadata.get("labels") or {}
    return ConfigMap(metadata.get("namespace", ""), metadata["name"], held.get("data") or {}, labels)
