"""What the user data of a Bottlerocket image says of its device plugin: how nodes of an EC2NodeClass share their GPUs.

Bottlerocket's images for NVIDIA bring the plugin along and configure it by settings, so no DaemonSet and no ConfigMap
says anything. The settings, their defaults and which of them count are those of the template that makes the plugin's
configuration (bottlerocket-core-kit, packages/nvidia-k8s-device-plugin/nvidia-k8s-device-plugin-conf, 2026-11).
User data may hold secrets: nothing else of it is kept.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

from kerf.errors import brief
from kerf.model.evidence import ImageSharing

Object = dict[str, Any]
FAMILY, _ALIAS = "Bottlerocket", "bottlerocket@"
_PATH = ("settings", "kubelet-device-plugins", "nvidia")
_SHARING, _PARTITIONING, _MIG = "device-sharing-strategy", "device-partitioning-strategy", "mig"
_SECTIONS = ("time-slicing", "mps")
_STRATEGIES, _PARTITIONS = ("none", *_SECTIONS), ("none", _MIG)
_REPLICAS, _RENAME, _FAIL = "replicas", "rename-by-default", "fail-requests-greater-than-one"
_DEFAULT_REPLICAS, _MOST_REPLICAS = 2, 2**16 - 1
_MOST_CHARACTERS = 64 * 1024
"""EC2 takes 16 KiB of user data."""


class _WrongError(ValueError):
    """A setting that Bottlerocket would refuse; its text says which."""


def image_sharing(raw: Object) -> ImageSharing | None:
    """The settings of a NodeClass; None for other images, and where they say nothing of sharing."""
    text = _user_data(raw)
    if "kubelet-device-plugins" not in text:
        return None
    try:
        return _read(_nvidia(text))
    except _WrongError as error:
        return ImageSharing(problem=str(error))


def kept_user_data(raw: Object) -> str:
    """User data with the settings alone that are read; empty for none. What Bottlerocket would refuse stays so."""
    text = _user_data(raw)
    if "kubelet-device-plugins" not in text:
        return ""
    try:
        return _written(_nvidia(text))
    except _WrongError:
        # As unreadable as the whole, without a word of it.
        return f"[{'.'.join(_PATH)}\n"


def _user_data(raw: Object) -> str:
    """The user data of a NodeClass whose images are Bottlerocket; empty for any other."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return ""
    terms = spec.get("amiSelectorTerms")
    aliases = [term.get("alias") for term in terms if isinstance(term, dict)] if isinstance(terms, list) else []
    is_bottlerocket = spec.get("amiFamily") == FAMILY or any(str(each).startswith(_ALIAS) for each in aliases)
    text = spec.get("userData")
    return text if is_bottlerocket and isinstance(text, str) else ""


def _nvidia(text: str) -> Mapping[str, object]:
    if len(text) > _MOST_CHARACTERS:
        raise _WrongError(f"expected at most {_MOST_CHARACTERS} characters, got {len(text)}")
    try:
        found: object = tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Only where it stands: the words of the error may hold what stands there.
        raise _WrongError(f"expected TOML, got what is none ({type(error).__name__})") from None
    for key in _PATH:
        found = _table(found, key)
    assert isinstance(found, dict)
    return found


def _table(parent: object, name: str) -> Mapping[str, object]:
    found = parent.get(name, {}) if isinstance(parent, dict) else {}
    if not isinstance(found, dict):
        raise _WrongError(f"{name}: expected a table, got {brief(found)}")
    return found


def _read(nvidia: Mapping[str, object]) -> ImageSharing | None:
    strategy = _word(nvidia, _SHARING, _STRATEGIES)
    cuts = _word(nvidia, _PARTITIONING, _PARTITIONS) == _MIG
    if strategy == "mps" and cuts:
        raise _WrongError(f"{_PARTITIONING}: expected none beside {_SHARING} mps, got mig")
    sections = {name: _table(nvidia, name) for name in (*_SECTIONS, _MIG)}
    idle = tuple(name for name in _SECTIONS if sections[name] and name != strategy)
    idle += (_MIG,) if sections[_MIG] and not cuts else ()
    for name in _SECTIONS:
        _replicas(sections[name], name)
        _truth(sections[name], name, _RENAME)
    _truth(sections["time-slicing"], "time-slicing", _FAIL)
    if strategy not in _SECTIONS:
        return ImageSharing(cuts=cuts, idle=idle) if cuts or idle or _SHARING in nvidia else None
    section = sections[strategy]
    # By MPS the plugin itself refuses several, unless its configuration says otherwise, and this one never does.
    fails = _truth(section, strategy, _FAIL) if strategy == "time-slicing" else True
    return ImageSharing(
        strategy, _replicas(section, strategy), _truth(section, strategy, _RENAME), fails, cuts=cuts, idle=idle
    )


def _word(nvidia: Mapping[str, object], key: str, known: tuple[str, ...]) -> str:
    value = nvidia.get(key, "none")
    if value not in known:
        raise _WrongError(f"{key}: expected {', '.join(known[:-1])} or {known[-1]}, got {brief(value)}")
    return str(value)


def _replicas(section: Mapping[str, object], name: str) -> int:
    value = section.get(_REPLICAS, _DEFAULT_REPLICAS)
    if not isinstance(value, int) or isinstance(value, bool) or not 2 <= value <= _MOST_REPLICAS:
        raise _WrongError(f"{name}.{_REPLICAS}: expected a whole number from 2, got {brief(value)}")
    return value


def _truth(section: Mapping[str, object], name: str, key: str) -> bool:
    value = section.get(key, True)
    if not isinstance(value, bool):
        raise _WrongError(f"{name}.{key}: expected true or false, got {brief(value)}")
    return value


def _written(nvidia: Mapping[str, object]) -> str:
    """The settings that are read, as TOML; of what is cut only that it is."""
    lines = [f"[{'.'.join(_PATH)}]"]
    lines += [f"{key} = {_value(nvidia[key])}" for key in (_SHARING, _PARTITIONING) if key in nvidia]
    for name in (*_SECTIONS, _MIG):
        section = _table(nvidia, name)
        if section:
            lines.append(f"[{'.'.join((*_PATH, name))}]")
            lines += [f"{key} = {_value(section[key])}" for key in (_REPLICAS, _RENAME, _FAIL) if key in section]
            lines += ["profile = {}"] if name == _MIG else []
    return "".join(f"{line}\n" for line in lines)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    known = isinstance(value, str) and value in (*_STRATEGIES, *_PARTITIONS)
    return f'"{value}"' if known else '"?"'
