"""The CustomResourceDefinitions of the objects that Kerf shares with Karpenter.

They lie beside this module as YAML that a person can read and apply as it is. What makes them hard is that two
programs own them: a server that has Karpenter's must serve Kerf as well, and a manifest must be accepted or refused
alike by both, with the same words. So the form is Karpenter's field for field, also where a stricter one would be
better; only descriptions and the last columns of NodeClaim are ours.
"""

from importlib.resources import files
from typing import Any

import yaml


def crd_texts(cloud: str = "") -> dict[str, str]:
    """File name to YAML, comments included, in the order of the names: what `kubectl apply` and a chart take.

    `cloud` adds the kinds of that cloud alone. The chart leaves them out: where Karpenter's has installed them, two
    charts would own one definition.
    """
    folder = files("kerf.kube") / "crds"
    folders = [folder, folder / cloud] if cloud and (folder / cloud).is_dir() else [folder]
    texts: dict[str, str] = {}
    for each in folders:
        named = {entry.name: entry for entry in each.iterdir() if entry.name.endswith(".yaml")}
        texts |= {name: named[name].read_text(encoding="utf-8") for name in sorted(named)}
    return texts


def crds(cloud: str = "") -> tuple[dict[str, Any], ...]:
    """The definitions as objects, in the order of `crd_texts`; new ones with each call, so they may be changed."""
    return tuple(yaml.safe_load(text) for text in crd_texts(cloud).values())
