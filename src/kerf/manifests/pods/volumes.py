"""Why an API server would refuse the volumes of a pod and how its containers mount them.

Rules of kubernetes 1.36, pkg/apis/core/validation (`ValidateVolumes`, `ValidateVolumeMounts`, `ValidateVolumeDevices`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.manifests.schema import DNS_LABEL, Path, Problem, mistake
from kerf.model.quantities import STORAGE

CLAIMS = ("persistentVolumeClaim", "ephemeral")
"""The sources that are a claim, and so may be block devices."""
_NEEDED = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "csi": ("driver",),
    "nfs": ("server", "path"),
}
_Raw = Mapping[str, Any]


def refused_volumes(raw: _Raw) -> Iterator[Problem]:
    """Why it would; paths count from the spec."""
    seen = set[str]()
    for index, each in enumerate(raw.get("volumes") or ()):
        at: Path = ("volumes", index)
        name = each.get("name") or ""
        if not name:
            yield mistake((*at, "name"), "a name", each.get("name"))
        elif not DNS_LABEL.accepts(name):
            yield mistake((*at, "name"), DNS_LABEL.expected, name)
        if name in seen:
            yield mistake((*at, "name"), "a name that no other volume has", name)
        seen.add(name)
        yield from _refused_source(each, at)


def _refused_source(raw: _Raw, at: Path) -> Iterator[Problem]:
    sources = sorted(name for name, value in raw.items() if name != "name" and value is not None)
    for another in sources[1:]:
        yield mistake((*at, another), f"one source, and there is {sources[0]} already", another)
    for source, names in _NEEDED.items():
        stated = raw.get(source)
        missing = [name for name in names if not stated.get(name)] if isinstance(stated, Mapping) else []
        for name in missing:
            yield mistake((*at, source, name), "a value", None)
    if raw.get("ephemeral") is not None:
        yield from _refused_template(raw["ephemeral"].get("volumeClaimTemplate"), (*at, "ephemeral"))


def _refused_template(template: _Raw | None, at: Path) -> Iterator[Problem]:
    within: Path = (*at, "volumeClaimTemplate")
    if template is None:
        yield mistake(within, "a template of its claim", None)
        return
    spec = template.get("spec") or {}
    if not spec.get("accessModes"):
        yield mistake((*within, "spec", "accessModes"), "at least one access mode, such as ReadWriteOnce", None)
    if not ((spec.get("resources") or {}).get("requests") or {}).get(STORAGE):
        yield mistake((*within, "spec", "resources", "requests", STORAGE), "a size such as 10Gi", None)


def refused_mounts(raw: _Raw) -> Iterator[Problem]:
    """Why it would, for what containers mount; paths count from the spec."""
    volumes = {each.get("name"): each for each in raw.get("volumes") or ()}
    for part in ("initContainers", "containers"):
        for number, container in enumerate(raw.get(part) or ()):
            for field, place in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
                seen = set[str]()
                for index, each in enumerate(container.get(field) or ()):
                    at: Path = (part, number, field, index)
                    yield from _refused_name(each.get("name"), volumes, at)
                    where = each.get(place) or ""
                    if not where or where in seen:
                        expected = f"a path that no other of the {field} has" if where else "a path"
                        yield mistake((*at, place), expected, where or None)
                    seen.add(where)


def _refused_name(name: str | None, volumes: Mapping[str, _Raw], at: Path) -> Iterator[Problem]:
    volume = volumes.get(name or "")
    if volume is None:
        there = ", ".join(sorted(filter(None, volumes))) or "none"
        yield mistake((*at, "name"), "the name of one of the pod's volumes", name, f"there is {there}")
    elif at[2] == "volumeDevices" and all(volume.get(source) is None for source in CLAIMS):
        yield mistake((*at, "name"), "a volume that is a claim, since others are no block devices", name)


def with_claim_templates(spec: Any, templates: Any) -> Any:
    """The spec of a StatefulSet's pods as its controller makes it: a volume for each claim template of this name.

    What is of another form comes back as it is: that is said elsewhere.
    """
    held = templates if isinstance(templates, list) else []
    metadata = [each.get("metadata") for each in held if isinstance(each, Mapping)]
    names = [each["name"] for each in metadata if isinstance(each, Mapping) and isinstance(each.get("name"), str)]
    if not names or not isinstance(spec, dict) or not isinstance(spec.get("volumes") or [], list):
        return spec
    others = [v for v in spec.get("volumes") or [] if not isinstance(v, dict) or v.get("name") not in names]
    return {**spec, "volumes": [*others, *({"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names)]}
