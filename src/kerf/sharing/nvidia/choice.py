"""Which configurations of NVIDIA's plugins a pool lets Kerf choose from, by annotations of the pool.

A label of the template fixes what the annotation would leave open. Names stand in the pool's order of preference, which
decides between equal prices.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from kerf.model.causes import Cause, Name
from kerf.sharing.nvidia.config_names import TornConfig, UnknownConfig
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL
from kerf.sharing.nvidia.mig import MpsOnInstances
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG

MIG_CONFIGS, PLUGIN_CONFIGS = "kerf.dev/mig-configs", "kerf.dev/device-plugin-configs"
"""Annotations of a NodePool: names of configurations, separated by commas."""
_LABELS: Mapping[str, str] = {MIG_CONFIGS: MIG_CONFIG, PLUGIN_CONFIGS: CONFIG_LABEL}
_ANNOTATIONS = {label: Name(annotation) for annotation, label in _LABELS.items()}
CHOICES = tuple(_LABELS)
CONFIGURATION_LABELS = tuple(_LABELS.values())
"""The labels that a choice sets."""


def label_choices(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, has_mig: bool
) -> tuple[Mapping[str, str], ...]:
    """The sets of labels of which a new node gets one, beside those of the template; one empty set for no choice.

    A layout is only chosen for cards that have MIG.
    """
    open_ = {
        label: named(annotations[annotation])
        for annotation, label in _LABELS.items()
        if annotation in annotations and label not in labels and (has_mig or label != MIG_CONFIG)
    }
    open_ = {label: names for label, names in open_.items() if names}
    return tuple(dict(zip(open_, names, strict=True)) for names in product(*open_.values()))


def as_chosen(problem: Cause | None, labels: Mapping[str, str]) -> Cause | None:
    """What a family says of a label, said of the annotation where the label is one of these, chosen from one."""
    if not isinstance(problem, UnknownConfig | TornConfig | MpsOnInstances) or problem.label not in labels:
        return problem
    return replace(problem, annotation=_ANNOTATIONS[problem.label])


def named(text: str) -> tuple[str, ...]:
    """The names of a list such as `all-1g.5gb, all-3g.20gb`, each once."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
