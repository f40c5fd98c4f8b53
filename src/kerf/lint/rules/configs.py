"""ConfigMaps by which cards are shared."""

from kerf.engine.explain.causes import cause_text
from kerf.errors import brief, cut
from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import Subject
from kerf.model.snapshot import ConfigMap, NodeClass
from kerf.sharing.config_keys import HAMI, repeated, unknown_keys
from kerf.sharing.installed import plugin_of_image
from kerf.sharing.registry import problem_in
from kerf.sharing.unheeded import NodesSetAlone, unheeded
from kerf.sharing.wiring import of_image


@rule("KL006", "unreadable-sharing-configuration", Severity.ERROR, ("ConfigMap",))
def unreadable(subject: Subject, context: LintContext) -> Notes:
    """A ConfigMap that says how cards are shared cannot be read.

    HAMi's `hami-scheduler-device`, or a configuration of NVIDIA's device plugin or of its MIG manager, is no YAML,
    lacks its key, or has a value of another form than the program reads. That program does not start with it, or runs
    with its defaults, so nodes register other cards than are planned for. Of the ConfigMap that a ClusterPolicy names
    or a DaemonSet mounts every key is a configuration, whatever its form.
    """
    if not isinstance(subject.value, ConfigMap):
        return
    error = problem_in((subject.value,))
    if error is not None:
        got = error.got.strip("<>") if isinstance(error.got, str) and error.got.startswith("<") else brief(error.got)
        field = f"{error.path}: " if error.path else ""
        yield Note(("data",), f"{field}expected {error.expected}, got {got}", error.hint, at_key=True)
        return
    for cause in context.unread_configurations:
        if cause.config_map == subject.value.key:
            text = cause_text(cause).removeprefix(f"ConfigMap {cause.config_map}: ")
            yield Note(("data", str(cause.key)), text, at_key=True)


@rule("KL072", "unknown-plugin-key", Severity.WARNING, ("ConfigMap",))
def unknown_key(subject: Subject, context: LintContext) -> Notes:
    """A ConfigMap of a GPU plugin has a key that the plugin does not know.

    NVIDIA's device plugin and HAMi pass over such a key without a word, so what it was to set keeps its default: with
    `replica` for `replicas`, or `deviceSplitcount` for `deviceSplitCount`, cards are shared otherwise than the text
    says. Kerf reads the same keys and plans as the plugin would. Looked at are HAMi's `hami-scheduler-device` (its
    sections, and the keys of `nvidia`) and each configuration of NVIDIA's plugin.
    """
    del context
    if not isinstance(subject.value, ConfigMap):
        return
    for each in unknown_keys(subject.value):
        close = nearest(cut(each.key, 80).lower(), [name.lower() for name in each.known], 0.7)
        meant = next((name for name in each.known if name.lower() == close), "")
        hint = f"is {meant} meant?" if meant else f"known here are {', '.join(each.known)}"
        message = f"{cut(each.path, 80)}: {each.program} does not know this key and passes over it"
        yield Note(("data", each.data_key), message, hint, at_key=True)


@rule("KL074", "repeated-plugin-key", Severity.WARNING, ("ConfigMap",))
def repeated_key(subject: Subject, context: LintContext) -> Notes:
    """A key stands twice in the configuration of a GPU plugin.

    NVIDIA's device plugin and HAMi take the last value without a word (HAMi reads with gopkg.in/yaml.v2, not strict);
    of a section that stands twice HAMi takes the keys of both, and NVIDIA's plugin the last section alone. Kerf plans
    as they read it, but one of the two values is not what was meant. Take one of them out.
    """
    del context
    if not isinstance(subject.value, ConfigMap):
        return
    for program, data_key, path in repeated(subject.value):
        taken = "the keys of both" if program == HAMI and "." not in path else "the last"
        message = f"{cut(path, 80)}: expected every key once, got it twice: {program} takes {taken}"
        yield Note(("data", data_key), message, "take one of them out", at_key=True)


@rule("KL080", "unheeded-plugin-setting", Severity.WARNING, ("ConfigMap",))
def unheeded_setting(subject: Subject, context: LintContext) -> Notes:
    """A ConfigMap of a GPU plugin has a setting that its program knows and passes over.

    NVIDIA's device plugin drops `rename` and `devices` of a shared resource, and `resources` as a whole, with a warning
    in its log alone: each card is shown `replicas` times under the resource's own name, or under that name and
    `.shared` with `renameByDefault`. HAMi reads `knownMigGeometries` no more since 2.10, where `migProfileAllowlist`
    says what cards in MIG mode are cut into. And of settings for single nodes (`config.json` of `hami-device-plugin`)
    that are no JSON it reads none. Kerf plans as the programs do.
    """
    del context
    if not isinstance(subject.value, ConfigMap):
        return
    for each in unheeded(subject.value):
        if not isinstance(each.cause, NodesSetAlone):
            yield Note(("data", each.data_key), f"{cut(each.path, 80)}: {cause_text(each.cause)}", at_key=True)


@rule("KL081", "settings-of-single-nodes", Severity.INFO, ("ConfigMap",))
def single_nodes(subject: Subject, context: LintContext) -> Notes:
    """HAMi's settings for single nodes name nodes, and no node that is bought has such a name.

    `config.json` of the ConfigMap `hami-device-plugin` gives a node its own split count, scalings or cards, by the
    node's exact name. That is right for a node that stays. Nodes that an autoscaler buys have new names, so they get
    the settings of all nodes, in `device-config.yaml` of `hami-scheduler-device`, and Kerf plans them so.
    """
    del context
    if isinstance(subject.value, ConfigMap):
        for each in unheeded(subject.value):
            if isinstance(each.cause, NodesSetAlone):
                yield Note(("data", each.data_key), cause_text(each.cause), at_key=True)


@rule("KL084", "image-sharing-unread", Severity.WARNING, ("EC2NodeClass",))
def image_sharing(subject: Subject, context: LintContext) -> Notes:
    """Settings for GPUs in the user data of a Bottlerocket image are refused, do nothing, or are not planned for.

    Bottlerocket's images for NVIDIA bring the device plugin along. `device-sharing-strategy` in
    `settings.kubelet-device-plugins.nvidia` is `none`, `time-slicing` or `mps`, and the sections of these names say how
    often each card is shown: twice, and with `.shared` after its name, unless they say otherwise. Without the strategy
    a section does nothing, and with a value of another form the node does not start. Kerf plans nodes of such a class
    as these settings say, but does not read which MIG instances its cards are cut into.
    """
    del context
    plugin = plugin_of_image(subject.value) if isinstance(subject.value, NodeClass) else None
    image = plugin.settings.image if plugin is not None else None
    if plugin is None or image is None:
        return
    path = ("spec", "userData")
    if image.problem:
        yield Note(path, image.problem, "a node with such user data does not start", at_key=True)
    for cause in of_image(plugin):
        yield Note(path, cause_text(cause), at_key=True)
