"""The admission policies that give pods their scheduling gates, and the PriorityClass of opportunistic pods.

A gate can be given at creation only, so no controller could come in time: the API server itself gives it, by
rules that lie beside this module as YAML. MutatingAdmissionPolicy is stable since Kubernetes 1.36; on older servers the
user writes the gate into the template.
"""

from importlib.resources import files


def policy_texts() -> dict[str, str]:
    """File name to YAML of several documents, comments included, in the order of the names."""
    folder = files("kerf.kube") / "admission"
    named = {entry.name: entry for entry in folder.iterdir() if entry.name.endswith(".yaml")}
    return {name: named[name].read_text(encoding="utf-8") for name in sorted(named)}
