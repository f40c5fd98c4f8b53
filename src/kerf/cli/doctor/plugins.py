"""What `kerf doctor` finds where GPU plugins and their configuration do not meet, each with the command that fixes it.

In all of these states every pod of the plugins may look well, and nodes show no GPU, or more of it than there is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from kerf.cli.doctor.finding import LOOK, OK, Diagnosis
from kerf.cli.inputs.foreign import PLUGIN_NAMESPACES_VARIABLE, foreign_objects
from kerf.cli.inputs.input import ReadInput, plugin_namespaces
from kerf.cli.render import counted, some
from kerf.cli.stages import age_text
from kerf.config import Settings
from kerf.engine.explain.causes import cause_text
from kerf.errors import DecodeError
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.evidence import COPY, DevicePlugin, PluginEvidence, Project
from kerf.model.nodes import Node
from kerf.model.printable import one_line
from kerf.model.snapshot import ConfigMap
from kerf.sharing.hami.config import CONFIG_KEY, ConfigsDiffer, schedulers
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.misrecorded import misrecorded
from kerf.sharing.hami.records import HANDSHAKE, REGISTER, node_devices
from kerf.sharing.installed import is_operators, runs_on, what_is
from kerf.sharing.registry import CONFIG_MAPS, families_of, owner_of, problem_in
from kerf.sharing.unheeded import (
    DevicesUnheeded,
    GeometriesUnheeded,
    NamesUnheeded,
    NodeSettingsUnread,
    NodesSetAlone,
    RenameUnheeded,
)
from kerf.sharing.wiring import (
    ConfigMapAbsent,
    ConfigurationUnread,
    DefaultAbsent,
    ImageCuts,
    ImageSettingIdle,
    PassedOver,
    findings,
    read_by_plugins,
)

_OPERATORS, _PLUGINS = "gpu-operator", "kube-system"
"""Where the operator and HAMi's plugin are taken to be, for a command, where the input does not say it."""
_COMPONENT = "app.kubernetes.io/component=hami-device-plugin"
_GONE = "Deleted"
_MOST_NAMED = 3
_OPERATORS_LABEL = "nvidia.com/gpu.deploy.device-plugin"


def plugin_checks(read: ReadInput) -> Iterator[Diagnosis]:
    """One for each state that is broken; none where all plugins find what they read, and agree with their nodes."""
    hami = next(family for family in families_of(read.snapshot) if isinstance(family, Hami))
    nodes = [each.node for each in read.snapshot.nodes if each.node is not None]
    yield from _foreign(read)
    yield from _configurations(read, hami)
    yield from _both_plugins(read, nodes)
    yield from _gone(nodes, hami, read.snapshot.evidence)
    yield from _unregistered(read, hami)
    yield from _too_few_slots(nodes, hami, read.snapshot.evidence)
    yield from _misrecorded(read)
    yield from _idle_schedulers(read.snapshot.evidence)
    for pool, problem in dict.fromkeys(read.world.supply.sharing_problems):
        hint = f"kubectl edit nodepool {_word(pool)}: its labels, annotations or taints, or what the reason names"
        yield Diagnosis("pools", LOOK, f"NodePool {pool}: {cause_text(problem)}", hint)


def _foreign(read: ReadInput) -> Iterator[Diagnosis]:
    """What looks like a plugin's where none is configured: to be looked at, unless plugins that are seen say enough."""
    namespaces = plugin_namespaces()
    found = foreign_objects(read.decoded, namespaces)
    if not found:
        return
    programs = [each for each in found if each.runs]
    places = list(dict.fromkeys(each.namespace for each in programs or found))
    what = some([f"{each.kind} {each.key}" for each in sorted(found, key=lambda each: not each.runs)], _MOST_NAMED)
    is_one = len(found) == 1
    text = f"{what} {'looks' if is_one else 'look'} like a GPU plugin's and {'is' if is_one else 'are'} not read"
    text = f"{text}: plugins are configured in {', '.join(namespaces)}"
    if not programs and read.snapshot.evidence.plugins:
        yield Diagnosis("configuration", OK, text)
        return
    names = _word(",".join((*namespaces, *places)))
    hint = f"export {PLUGIN_NAMESPACES_VARIABLE}={names}; kerf run takes the same by --plugin-namespaces"
    is_sure = "" if programs else "where a plugin reads it, "
    yield Diagnosis("configuration", LOOK, text, is_sure + hint)


def _configurations(read: ReadInput, hami: Hami) -> Iterator[Diagnosis]:
    snapshot = read.snapshot
    found = findings(snapshot.config_maps, snapshot.evidence)
    said = {str(each.cause.error) for each in found if isinstance(each.cause, ConfigurationUnread)}
    for each in found:
        text = cause_text(each.cause)
        if isinstance(each.cause, ConfigMapAbsent):
            yield Diagnosis("configuration", LOOK, text, _bring(each.cause, each.plugin))
        elif isinstance(each.cause, DefaultAbsent) and each.plugin is not None:
            yield Diagnosis("configuration", LOOK, text, _other_default(each.cause, each.plugin))
        elif isinstance(each.cause, ConfigurationUnread):
            yield Diagnosis("configuration", LOOK, text, _edit(each.cause.config_map))
        elif isinstance(each.cause, RenameUnheeded | DevicesUnheeded | NamesUnheeded):
            yield Diagnosis("configuration", LOOK, text, _edit(each.cause.config.partition(", ")[0]))
        elif isinstance(each.cause, ImageSettingIdle):
            kind, _, name = each.cause.node_class.partition(" ")
            yield Diagnosis("configuration", LOOK, text, f"kubectl edit {_word(kind.lower())} {_word(name)}")
        elif isinstance(each.cause, NodeSettingsUnread):
            yield Diagnosis("configuration", LOOK, text, _edit(each.cause.config_map))
        elif isinstance(each.cause, PassedOver) and each.cause.is_guess:
            yield Diagnosis("configuration", LOOK, text, _delete(each.cause.config_maps[0]))
        elif isinstance(each.cause, PassedOver | GeometriesUnheeded | NodesSetAlone | ImageCuts):
            yield Diagnosis("configuration", OK, text)
    yield from _unread_by_run(snapshot.config_maps, snapshot.evidence)
    for config_map in snapshot.config_maps:
        error = problem_in((config_map,))
        if error is not None and str(error) not in said:
            yield Diagnosis("configuration", LOOK, " ".join(str(error).split()), _edit(config_map.key))
    if isinstance(hami.fault, ConfigsDiffer):
        yield Diagnosis("configuration", LOOK, cause_text(hami.fault), _delete(hami.fault.config_maps[-1]))


def _delete(config_map: str) -> str:
    namespace, _, name = config_map.partition("/")
    return f"kubectl delete configmap {_word(name)} -n {_word(namespace)}, or the other, whichever is not meant"


def _word(text: str) -> str:
    """One word of a command, in one line: no object has a name with a line break, whatever a file says."""
    return quote(one_line(text))


def _edit(config_map: str) -> str:
    namespace, _, name = config_map.partition("/")
    return f"kubectl edit configmap {_word(name)} -n {_word(namespace)}"


def _unread_by_run(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> Iterator[Diagnosis]:
    """Maps that plugins read and `kerf run` does not: its role names the ConfigMaps that it may read."""
    read = [m for m in config_maps if m.key in read_by_plugins(config_maps, evidence)]
    copies = {key for m in config_maps if m.name == COPY for key in m.data}
    for config_map in read:
        if config_map.name not in CONFIG_MAPS and not config_map.data.keys() <= copies:
            text = f"ConfigMap {config_map.key} is read by a plugin, and kerf run may not read it by that name"
            copy = _copied(config_map.namespace, config_map.name, config_map.namespace, COPY)
            yield Diagnosis("configuration", LOOK, text, copy)


def _bring(cause: ConfigMapAbsent, plugin: DevicePlugin | None) -> str:
    """The command that puts the ConfigMap where it is looked for, or has another one read that is there."""
    name, namespace = cause.config_map, cause.namespace or _OPERATORS
    if cause.elsewhere:
        return _copied(cause.elsewhere[0], name, namespace, name)
    if cause.instead and plugin is not None and plugin.of_operator:
        return _patched_policy(plugin, {"config": {"name": cause.instead[0]}})
    if cause.instead:
        return _copied(namespace, cause.instead[0], namespace, name)
    key = plugin.settings.default or "any" if plugin is not None and plugin.project is Project.NVIDIA else CONFIG_KEY
    return f"kubectl create configmap {_word(name)} -n {_word(namespace)} --from-file={_word(key)}=FILE"


def _copied(namespace: str, name: str, to_namespace: str, to_name: str) -> str:
    metadata = f"{{name: {json.dumps(to_name)}, namespace: {json.dumps(to_namespace)}}}"
    kept = quote(f"{{apiVersion, kind, data, metadata: {metadata}}}")
    return f"kubectl get configmap {_word(name)} -n {_word(namespace)} -o json | jq {kept} | kubectl apply -f -"


def _other_default(cause: DefaultAbsent, plugin: DevicePlugin) -> str:
    if plugin.of_operator and cause.known:
        return _patched_policy(plugin, {"config": {"default": cause.known[0]}})
    place = f"{_word(cause.config_map)} -n {_word(plugin.namespace or _OPERATORS)}"
    return f"kubectl edit configmap {place}: add the key {_word(cause.default)}"


def _patched_policy(plugin: DevicePlugin, change: Mapping[str, Any]) -> str:
    patch = json.dumps({"spec": {"devicePlugin": change}}, separators=(",", ":"))
    return f"kubectl patch clusterpolicies.nvidia.com {_word(plugin.name)} --type merge -p {quote(patch)}"


def _both_plugins(read: ReadInput, nodes: Sequence[Node]) -> Iterator[Diagnosis]:
    """HAMi's plugin and NVIDIA's on one node: each registers the same cards, and the last to do so has them."""
    evidence = read.snapshot.evidence
    pools = read.snapshot.node_pools
    for own in evidence.of(Project.HAMI):
        is_anywhere = any(runs_on(own, pool.labels) for pool in pools) or any(_runs(own, node) for node in nodes)
        for rival in evidence.of(Project.NVIDIA):
            shared_pools = [p.name for p in pools if runs_on(own, p.labels) and runs_on(rival, p.labels)]
            shared_nodes = [node.name for node in nodes if _runs(own, node) and _runs(rival, node)]
            is_open = not is_anywhere and not dict(own.selector).keys() & dict(rival.selector).keys()
            if not shared_pools and not shared_nodes and not is_open:
                continue
            places = [f"node {name}" for name in shared_nodes] + [f"NodePool {name}" for name in shared_pools]
            where = some(places) if places else "any node with HAMi's label"
            text = f"{what_is(own)} of HAMi and {what_is(rival)} of NVIDIA both run on {where}"
            yield Diagnosis(
                "plugins", LOOK, f"{text}: each gives out the same cards", _parted(rival, shared_pools, shared_nodes)
            )
            break


def _runs(plugin: DevicePlugin, node: Node) -> bool:
    return all(node.labels.get(key) == value for key, value in plugin.selector)


def _parted(rival: DevicePlugin, pools: Sequence[str], nodes: Sequence[str]) -> str:
    """The command that keeps NVIDIA's plugin off HAMi's nodes, or off all of them."""
    if not is_operators(rival):
        return f"kubectl delete daemonset {_word(rival.name)} -n {_word(rival.namespace)}"
    if pools:
        labels = {"template": {"metadata": {"labels": {_OPERATORS_LABEL: "false"}}}}
        patch = json.dumps({"spec": labels}, separators=(",", ":"))
        return f"kubectl patch nodepool {_word(pools[0])} --type merge -p {quote(patch)}"
    if nodes:
        return f"kubectl label node {_word(nodes[0])} {_OPERATORS_LABEL}=false --overwrite"
    if rival.of_operator:
        return _patched_policy(rival, {"enabled": False})
    return f"kubectl label node NODE {_OPERATORS_LABEL}=false --overwrite"


def _gone(nodes: Sequence[Node], hami: Hami, evidence: PluginEvidence) -> Iterator[Diagnosis]:
    """Nodes that HAMi's scheduler has given up: older versions never take such a node again (HAMi#1839)."""
    selector = dict((hami.selector and [hami.selector]) or ())
    found = [
        node.name
        for node in nodes
        if node.annotations.get(HANDSHAKE, "").startswith(_GONE)
        and (hami.selects(node.labels, {}) or selector.items() <= node.labels.items())
    ]
    if found:
        text = f"HAMi's scheduler has given up {some([f'node {name}' for name in found])}: the handshake says Deleted_"
        forget = f"kubectl annotate node {_word(found[0])} {HANDSHAKE}-"
        yield Diagnosis("hami", LOOK, text, f"{forget} && {_restart(found[0], evidence)}")


def _unregistered(read: ReadInput, hami: Hami) -> Iterator[Diagnosis]:
    """Nodes that are HAMi's by their label and whose cards it has not registered in the time that a new node has."""
    evidence, now_s, found = read.snapshot.evidence, read.snapshot.taken_at_s, list[Node]()
    families, deadline_s = families_of(read.snapshot), Settings().devices_deadline_s
    for node in (each.node for each in read.snapshot.nodes if hami.own or evidence.has_register):
        if node is None or not node.is_ready or not node.created_s or now_s < node.created_s + deadline_s:
            continue
        if node.annotations.get(REGISTER, "").strip() or node.annotations.get(HANDSHAKE, "").startswith(_GONE):
            continue
        kind = read.market.find(node.labels.get(INSTANCE_TYPE, ""))
        if (kind is None or kind.devices) and owner_of(node.labels, node.annotations, families) == hami:
            found.append(node)
    if found:
        age = age_text(now_s - min(node.created_s for node in found))
        text = f"{some([f'node {node.name}' for node in found])} has no card in HAMi's register, {age} after it came"
        yield Diagnosis("hami", LOOK, text, _restart(found[0].name, evidence))


def _misrecorded(read: ReadInput) -> Iterator[Diagnosis]:
    """Pods whose record does not say which cards they hold; the first few, and how many more there are."""
    found = [held for node in read.snapshot.nodes for held in misrecorded(node)]
    for number, (pod, cause) in enumerate(found[:_MOST_NAMED], 1):
        left = len(found) - number if number == _MOST_NAMED else 0
        more = f"; so it is with {counted(left, 'more pod')}" if left else ""
        hint = f"kubectl delete pod {_word(pod.name)} -n {_word(pod.namespace)}"
        hint = f"{hint}: the one in its place gets a record of its own"
        yield Diagnosis("hami", LOOK, f"Pod {pod.key}: {cause_text(cause)}{more}", hint)


def _idle_schedulers(evidence: PluginEvidence) -> Iterator[Diagnosis]:
    """HAMi's scheduler without replicas: none of the pods that wait for it is bound."""
    for each in schedulers(evidence):
        if not each.runs and (evidence.of(Project.HAMI) or evidence.has_register):
            text = f"HAMi's scheduler has no replicas (Deployment {each.namespace}/{each.name}): it binds no pod"
            hint = f"kubectl scale deployment {_word(each.name)} -n {_word(each.namespace)} --replicas=1"
            yield Diagnosis("hami", LOOK, text, hint)


def _too_few_slots(nodes: Sequence[Node], hami: Hami, evidence: PluginEvidence) -> Iterator[Diagnosis]:
    """Nodes of which kubelet shows fewer slots than HAMi has registered: it fails pods that HAMi binds there."""
    for node in nodes:
        if REGISTER not in node.annotations or node.annotations.get(HANDSHAKE, "").startswith(_GONE):
            continue
        try:
            devices = node_devices(node) or ()
        except DecodeError:
            # The line about cards says it.
            continue
        slots, shown = sum(card.slots for card in devices if card.healthy), node.allocatable.get(hami.counted, 0)
        if shown < slots:
            what = f"node {node.name}: kubelet shows {shown} {hami.counted}, and HAMi's register has "
            yield Diagnosis("hami", LOOK, what + counted(slots, "slot"), _restart(node.name, evidence))


def _restart(node: str, evidence: PluginEvidence) -> str:
    namespace = next((each.namespace for each in evidence.of(Project.HAMI)), _PLUGINS)
    chosen = f"-l {_COMPONENT} --field-selector spec.nodeName={_word(node)}"
    return f"kubectl delete pod -n {_word(namespace)} {chosen}"
