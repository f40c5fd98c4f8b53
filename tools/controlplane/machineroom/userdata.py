"""What a machine learns from its user data: which cluster it joins, and as what.

A real machine believes its user data alone, so this reads it as the machine does and not as Kerf writes it: AL2023's
nodeadm takes the NodeConfig parts of a MIME message, one after the other, each over those before it; Bottlerocket takes
TOML. Whatever is wrong in it ends in a machine that never joins, and only its console says so.
"""

import email
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

NODE_CONFIG = "application/node.eks.aws"
_KINDS = ("node.eks.aws/v1alpha1", "NodeConfig")
_OWN_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NeverJoins(Exception):
    """The machine does not become a node; the text is what its console would say."""


@dataclass(frozen=True)
class Joining:
    """What the machine is to join, and as what. `taints` are as in a Node; `ca` is the PEM in base64."""

    cluster: str
    endpoint: str
    ca: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    max_pods: int | None = None


def read_user_data(text: str, is_bottlerocket: bool) -> Joining:
    """What the user data says, to a machine of that operating system. Raises NeverJoins."""
    found = _of_toml(text) if is_bottlerocket else _of_node_config(text)
    missing = [name for name in ("cluster", "endpoint", "ca") if not getattr(found, name)]
    if missing:
        raise NeverJoins(f"user data without {', '.join(missing)} of the cluster")
    refused = [key for key in sorted(found.labels) if not _is_kubelet_s(key)]
    if refused:
        # kubelet ends at its start: "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels".
        raise NeverJoins(f"kubelet may not set the labels {', '.join(refused)}")
    return found


def _is_kubelet_s(key: str) -> bool:
    """Whether kubelet sets a label: of the domains of Kubernetes only those that are listed (kubelet's own rule)."""
    domain = key.partition("/")[0] if "/" in key else ""
    if not any(domain == of or domain.endswith(f".{of}") for of in ("kubernetes.io", "k8s.io")):
        return True
    return key in _OWN_LABELS or any(domain == of or domain.endswith(f".{of}") for of in _LABEL_DOMAINS)


def _of_node_config(text: str) -> Joining:
    merged: dict[str, Any] = {}
    for document in _node_configs(text):
        merged = _merged(merged, document)
    if not merged:
        raise NeverJoins("no NodeConfig in the user data")
    if (merged.get("apiVersion"), merged.get("kind")) != _KINDS:
        raise NeverJoins(f"expected {' '.join(_KINDS)}, got {merged.get('apiVersion')} {merged.get('kind')}")
    spec = _mapping(merged, "spec")
    cluster, kubelet = _mapping(spec, "cluster"), _mapping(spec, "kubelet")
    config, flags = _mapping(kubelet, "config"), kubelet.get("flags") or []
    labels: dict[str, str] = {}
    # nodeadm writes them into an environment file, and systemd splits that into words and takes quotes away.
    for word in [word for flag in flags for word in shlex.split(str(flag))]:
        name, _, value = word.partition("=")
        if name == "--node-labels":
            labels |= dict(pair.split("=", 1) for pair in value.split(",") if "=" in pair)
    return Joining(
        str(cluster.get("name") or ""),
        str(cluster.get("apiServerEndpoint") or ""),
        str(cluster.get("certificateAuthority") or ""),
        labels,
        tuple(_taint(taint) for taint in config.get("registerWithTaints") or ()),
        config.get("maxPods"),
    )


def _node_configs(text: str) -> list[dict[str, Any]]:
    """The documents of all NodeConfig parts in their order; of a text that is no MIME message, the text itself."""
    if not text.lstrip().lower().startswith(("mime-version:", "content-type:")):
        return [_document(text)]
    message = email.message_from_string(text)
    if not message.is_multipart() or message.defects:
        raise NeverJoins(
            f"malformed MIME: {', '.join(type(defect).__name__ for defect in message.defects) or 'no parts'}"
        )
    bodies = [part.get_payload(decode=True) for part in message.walk() if part.get_content_type() == NODE_CONFIG]
    return [_document(body.decode()) for body in bodies if isinstance(body, bytes)]


def _document(text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise NeverJoins(f"a NodeConfig that is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise NeverJoins("a NodeConfig that is no mapping")
    return found


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge, flags are added up, and of all else the later one counts."""
    result = dict(below)
    for key, value in above.items():
        held = result.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            result[key] = _merged(held, value)
        elif key == "flags" and isinstance(held, list) and isinstance(value, list):
            result[key] = [*held, *value]
        else:
            result[key] = value
    return result


def _of_toml(text: str) -> Joining:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NeverJoins(f"user data that is no TOML: {error}") from error
    settings = _mapping(_mapping(parsed, "settings"), "kubernetes")
    taints = [
        {"key": key, "value": value.rpartition(":")[0], "effect": value.rpartition(":")[2]}
        for key, values in _mapping(settings, "node-taints").items()
        for value in values
    ]
    return Joining(
        str(settings.get("cluster-name") or ""),
        str(settings.get("api-server") or ""),
        str(settings.get("cluster-certificate") or ""),
        {key: str(value) for key, value in _mapping(settings, "node-labels").items()},
        tuple(_taint(taint) for taint in taints),
        settings.get("max-pods"),
    )


def _taint(given: Mapping[str, Any]) -> Mapping[str, str]:
    taint = {"key": str(given.get("key") or ""), "effect": str(given.get("effect") or "")}
    return {**taint, "value": str(given["value"])} if given.get("value") else taint


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = parent.get(key) or {}
    if not isinstance(found, Mapping):
        raise NeverJoins(f"{key}: expected a mapping, got {type(found).__name__}")
    return found
