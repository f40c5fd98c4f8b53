"""Write what the chart takes from the code: roles, definitions, settings, the schema of its values, and two pages.

    python tools/generate_chart.py

A chart that is kept by hand grants yesterday's verbs and documents yesterday's defaults. Here the code and the comments
of values.yaml are the only source; a test compares every file that is written. In values.yaml a key with a comment
`# --` is a value, a key without one only holds others.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kerf.cli.inputs.live import READS
from kerf.cli.run.command import CLOUDS
from kerf.config import Setting, settings_table
from kerf.kube.crds import crd_texts
from kerf.kube.policies import policy_texts
from kerf.kube.rbac import decision_roles, reader_role, roles
from kerf.model.spreadforms import PATTERN as SPREAD_PATTERN

ROOT = Path(__file__).parents[1]
CHART = Path("charts/kerf")
BEGIN, END = "  # Settings: begin\n", "  # Settings: end\n"
DURATION = r"^([0-9]{1,9}([.][0-9]{1,9})?(ms|h|m|s))*$"
NUMBER = r"^([1-9][0-9]{0,8})?$"
SPREAD = f"^(none|System|{SPREAD_PATTERN})?$"
NAMESPACES = r"^([a-z0-9-]+(,[a-z0-9-]+)*)?$"

KARPENTER_NAMES = {"batch-idle": "batchIdleDuration", "batch-max": "batchMaxDuration"}
"""Settings that Karpenter's chart has too, by key."""
KARPENTER_OPTIONS = ("settings.clusterName", "settings.interruptionQueue")
"""Values that are no settings of the controllers and that Karpenter's chart has too."""
OWN = ("crds.", "policies.", "podMonitor.", "networkPolicy.", "controller.metrics.auth", "logFormat", "settings.")
"""How the values begin that Karpenter's chart has not."""

_NOT_ON_AWS = "of Karpenter's AWS provider; Kerf has no such setting"
_OF_EKS = "EKS says it: Kerf calls eks:DescribeCluster"
_NO_LOG_PATH = "logs go to standard error"
_NO_WEBHOOK = "Kerf has no webhook"
IGNORED = {
    "controller.sidecarVolumeMounts": "give the mounts in controller.sidecarContainer",
    "logConfig": _NO_LOG_PATH,
    "logErrorOutputPaths": _NO_LOG_PATH,
    "logOutputPaths": _NO_LOG_PATH,
    "serviceMonitor.sampleLimit": "limit the samples in your Prometheus",
    "settings.amiRefreshInterval": _NOT_ON_AWS,
    "settings.assumeRoleARN": _NOT_ON_AWS,
    "settings.assumeRoleDuration": _NOT_ON_AWS,
    "settings.awsFeatureGates": _NOT_ON_AWS,
    "settings.clusterCABundle": _OF_EKS,
    "settings.clusterEndpoint": _OF_EKS,
    "settings.disableClusterStateObservability": "metrics and events are always there",
    "settings.disableDryRun": "of Karpenter's AWS provider; settings.dryRun is something else",
    "settings.eksControlPlane": _NOT_ON_AWS,
    "settings.enableDRA": "claims of resource.k8s.io are not planned for",
    "settings.enableZonalShift": _NOT_ON_AWS,
    "settings.featureGates": "Kerf has no gates; NodeOverlay is always on",
    "settings.ignoreDRARequests": "claims of resource.k8s.io are not planned for",
    "settings.isolatedVPC": _NOT_ON_AWS,
    "settings.reservedENIs": _NOT_ON_AWS,
    "settings.subnetRefreshInterval": _NOT_ON_AWS,
    "settings.vmMemoryOverheadPercent": _NOT_ON_AWS,
    "webhook": _NO_WEBHOOK,
}
"""Values of Karpenter's chart that are accepted and do nothing, and why."""

_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
_NAMED = {"type": "array", "items": {"type": "object", "required": ["name"]}}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "replicas": {"type": "integer", "minimum": 0},
    "revisionHistoryLimit": {"type": "integer", "minimum": 0},
    "imagePullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "imagePullSecrets": _NAMED,
    "dnsPolicy": {"enum": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
    "logLevel": {"enum": ["debug", "info", "warning", "error"]},
    "logFormat": {"enum": ["json", "text"]},
    "terminationGracePeriodSeconds": {"type": ["integer", "null"], "minimum": 0},
    "podDisruptionBudget.maxUnavailable": {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]{1,3}%$"},
    "controller.image.digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "controller.env": _NAMED,
    "controller.metrics.port": _PORT,
    "controller.healthProbe.port": _PORT,
    # Empty is refused by the template, in words.
    "settings.cloud": {"enum": ["", *CLOUDS]},
}
"""Values whose default does not tell their whole form."""
_HEAD = "{{- /* Written by tools/generate_chart.py; do not edit. */}}\n"
_NAME, _NAMESPACE, _ACCOUNT, _LABELS = "(name)", "(namespace)", "(account)", "(labels)"
_TEMPLATES = {
    f"  labels: {_LABELS}": '  {{- include "kerf.metadata" (dict "root" .) | nindent 2 }}',
    _NAMESPACE: "{{ .Release.Namespace }}",
    _NAME: '{{ include "kerf.fullname" . }}',
    _ACCOUNT: '{{ include "kerf.serviceAccountName" . }}',
}
"""What stands in a role of the code, to what stands in the template for it."""
_FURTHER_RULES = "{{- with .Values.additionalClusterRoleRules }}\n{{- toYaml . | nindent 0 }}\n{{- end }}\n"
_TYPES = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}

_INTRODUCTION = """\
# Helm chart

Installs Kerf: definitions, roles, two replicas, their Service and PodDisruptionBudget. It is tested with Helm 4 and
uses nothing that Helm 3 has not. No image of Kerf is published, so the chart needs the name of yours; `kerf` must be on
its PATH. It also needs the cloud that launches nodes: aws, or kwok for a test cluster.

```sh
helm install kerf charts/kerf --namespace kerf-system --create-namespace \\
  --set controller.image.repository=REGISTRY/kerf,settings.cloud=kwok
```

## Values

`tools/generate_chart.py` writes this page from `values.yaml`. A value that is not here, or has another form, is refused
before anything is applied. Where the third column says yes, Karpenter's chart has a value of the same name and meaning;
its default may differ. Times are durations such as `1m30s` or `500ms`; empty means the program's own default.
"""
_ABOUT_IGNORED = """\
## Ignored values

Karpenter's chart has these; here they are accepted and do nothing, so one values file serves both. After an
installation Helm names those that were given.
"""


@dataclass(frozen=True)
class Value:
    """One documented value: `settings.cloud`, its default, and the words of its comment."""

    path: str
    default: Any
    meaning: str


def chart_name(setting: Setting) -> str:
    """What a setting is called in the chart: `launchDeadline` for the key `launch-deadline`."""
    first, *others = setting.key.split("-")
    return KARPENTER_NAMES.get(setting.key) or first + "".join(word.capitalize() for word in others)


def values_text(text: str) -> str:
    """values.yaml with the settings between its two marks written anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + "".join(map(_setting_text, settings_table())) + END + after


def _setting_text(setting: Setting) -> str:
    form = f" One of {', '.join(setting.choices)}." if setting.choices else ""
    return (
        f"  # -- {setting.meaning}{form} By default {setting.default}. Flag `{setting.flag}`.\n"
        f'  {chart_name(setting)}: ""\n'
    )


def documented(text: str) -> list[Value]:
    """Every value of values.yaml in the order of the file. Raises ValueError for one without a comment."""
    return list(_documented(yaml.compose(text), yaml.safe_load(text), text.splitlines(), ""))


def _documented(node: Any, data: Any, lines: list[str], path: str) -> Iterator[Value]:
    for key, inner in node.value:
        name = f"{path}.{key.value}".removeprefix(".")
        meaning = _comment_above(lines, key.start_mark.line)
        if meaning:
            yield Value(name, data[key.value], meaning)
        elif isinstance(inner, yaml.MappingNode) and inner.value:
            yield from _documented(inner, data[key.value], lines, name)
        else:
            raise ValueError(f"values.yaml:{key.start_mark.line + 1}: {name}: expected a comment `# -- ...` above it")


def _comment_above(lines: list[str], line: int) -> str:
    words: list[str] = []
    for number in range(line - 1, -1, -1):
        text = lines[number].strip()
        if not text.startswith("#"):
            return ""
        words.insert(0, text.removeprefix("#").removeprefix(" --").strip())
        if text.startswith("# --"):
            return " ".join(words)
    return ""


def schema(values: list[Value]) -> dict[str, Any]:
    """JSON Schema of the values: what is not documented or ignored is a mistake."""
    top: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#", **_group()}
    for value in values:
        _put(top, value.path, {"description": value.meaning, **_form(value)})
    for path, reason in IGNORED.items():
        _put(top, path, {"description": f"Ignored: {reason}."})
    # Helm itself puts this beside the values.
    _put(top, "global", {"type": "object"})
    return top


def _group() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(top: dict[str, Any], path: str, form: dict[str, Any]) -> None:
    *groups, name = path.split(".")
    for group in groups:
        top = top["properties"].setdefault(group, _group())
    top["properties"][name] = form


def _form(value: Value) -> Mapping[str, Any]:
    settings = {f"settings.{chart_name(setting)}": setting for setting in settings_table()}
    if value.path in settings:
        setting = settings[value.path]
        choices = setting.choices
        pattern = NAMESPACES if setting.is_namespaces else NUMBER if setting.is_number else DURATION
        if setting.is_spread:
            pattern = SPREAD
        return {"enum": ["", *choices]} if choices else {"type": "string", "pattern": pattern}
    return FORMS.get(value.path) or {"type": _TYPES[type(value.default)]}


def templates() -> str:
    """The named templates that follow from the code: the flags of the settings, and what is ignored."""
    settings = "".join(
        f"{{{{- with .Values.settings.{chart_name(setting)} }}}}\n- {setting.flag}={{{{ . }}}}\n{{{{- end }}}}\n"
        for setting in settings_table()
    )
    ignored = "".join([*map(_ignored, IGNORED.items()), *map(_unused, KARPENTER_OPTIONS)])
    parts = {"kerf.settings": settings, "kerf.ignored": ignored}
    named = [f'{{{{- define "{name}" -}}}}\n{text}{{{{- end }}}}\n' for name, text in parts.items()]
    return "\n".join([_HEAD, *named])


def rbac() -> str:
    """The template of all roles and bindings; the service account has values of its own and a template by hand."""
    branches = ["{{- if .Values.settings.dryRun }}\n", _roles(is_dry_run=True)]
    for cloud in CLOUDS:
        branches += [f'{{{{- else if eq .Values.settings.cloud "{cloud}" }}}}\n', _roles(cloud)]
    reader = reader_role(f"{_NAME}-reader", READS)
    others = (f"---\n{_role(each)}" for each in (reader, *decision_roles(_NAMESPACE, _NAME)))
    return "".join([_HEAD, *branches, "{{- end }}\n", *others])


def _roles(cloud: str = "", *, is_dry_run: bool = False) -> str:
    made = roles(_NAMESPACE, _NAME, cloud, is_dry_run=is_dry_run)
    return "".join(f"---\n{_role(each)}" for each in made if each["kind"] != "ServiceAccount")


def _role(role: Mapping[str, Any]) -> str:
    subjects = [
        {**subject, "name": _ACCOUNT if subject["name"] == _NAME else subject["name"]}
        for subject in role.get("subjects", ())
    ]
    written = {**role, "metadata": {**role["metadata"], "labels": _LABELS}} | (
        {"subjects": subjects} if subjects else {}
    )
    text = yaml.safe_dump(written, sort_keys=False)
    for mark, template in _TEMPLATES.items():
        text = text.replace(mark, template)
    own = " ".join(f'"{key}" "{value}"' for key, value in role["metadata"].get("labels", {}).items())
    if own:
        # A role with labels of its own is that of people, who have no part in what is granted to Kerf besides.
        return text.replace('(dict "root" .)', f'(dict "root" . "labels" (dict {own}))')
    return text + (_FURTHER_RULES if role["kind"] == "ClusterRole" and role["metadata"]["name"] == _NAME else "")


def _unused(path: str) -> str:
    """A value that only the cloud aws takes."""
    given = f'{{{{- if and .Values.{path} (ne .Values.settings.cloud "aws") }}}}'
    return f"{given}\n{path}: of Karpenter's AWS provider; it needs settings.cloud=aws\n{{{{- end }}}}\n"


def _ignored(entry: tuple[str, str]) -> str:
    path, reason = entry
    group, _, name = f".Values.{path}".rpartition(".")
    return f'{{{{- if hasKey {group} "{name}" }}}}\n{path}: {reason}\n{{{{- end }}}}\n'


def page(values: list[Value]) -> str:
    """The reference of the values, for the documentation and for those who have only the chart."""
    rows = [(f"`{each.path}`", f"`{json.dumps(each.default)}`", _origin(each.path), each.meaning) for each in values]
    ignored = [(f"`{path}`", reason) for path, reason in IGNORED.items()]
    head = ("value", "default", "as Karpenter's", "meaning")
    return f"{_INTRODUCTION}\n{_table(head, rows)}\n{_ABOUT_IGNORED}\n{_table(('value', 'why'), ignored)}"


def _origin(path: str) -> str:
    is_setting = path in KARPENTER_OPTIONS or path.removeprefix("settings.") in KARPENTER_NAMES.values()
    is_karpenter = is_setting or not path.startswith(OWN)
    return "yes" if is_karpenter else ""


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def generated(text: str) -> dict[Path, str]:
    """Every generated file by its path in the project; `text` is values.yaml as it is now."""
    now = values_text(text)
    values = documented(now)
    return {
        CHART / "values.yaml": now,
        CHART / "values.schema.json": json.dumps(schema(values), indent=2) + "\n",
        CHART / "templates/_generated.tpl": templates(),
        CHART / "templates/rbac.yaml": rbac(),
        CHART / "README.md": page(values),
        Path("docs/reference/chart.md"): page(values),
        **{CHART / "files/crds" / name: crd for name, crd in crd_texts().items()},
        **{CHART / "files/policies" / name: text for name, text in policy_texts().items()},
    }


def main() -> None:
    """Write all of them."""
    for path, text in generated((ROOT / CHART / "values.yaml").read_text(encoding="utf-8")).items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
