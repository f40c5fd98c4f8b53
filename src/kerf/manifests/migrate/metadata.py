"""What every object of Kubernetes has beside its spec, and what of it a manifest may not have."""

from collections.abc import Mapping
from typing import Any

from kerf.manifests.migrate.objects import New, Object, Old
from kerf.manifests.schema import Path

_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
_WRITTEN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "karpenter.sh/provisioner-hash",
        "karpenter.sh/nodepool-hash",
        "karpenter.sh/nodepool-hash-version",
        "karpenter.k8s.aws/nodetemplate-hash",
        "karpenter.k8s.aws/ec2nodeclass-hash",
        "karpenter.k8s.aws/ec2nodeclass-hash-version",
        "compatibility.karpenter.sh/v1beta1-kubelet-conversion",
        "compatibility.karpenter.sh/v1beta1-nodeclass-reference",
    }
)
"""Annotations that kubectl, Kubernetes and Karpenter write."""
RENAMED = {
    "karpenter.sh/provisioner-name": "karpenter.sh/nodepool",
    "karpenter.sh/do-not-evict": "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-consolidate": "karpenter.sh/do-not-disrupt",
}
"""Labels and annotations that have another name since 0.32 (its upgrade notes)."""


def as_written(raw: Mapping[str, Any]) -> Object:
    """An object of a server as its author wrote it: without its status and what servers, kubectl and Karpenter add."""
    kept = {key: value for key, value in raw["metadata"].items() if key not in _SERVER}
    noted = {key: text for key, text in (kept.pop("annotations", None) or {}).items() if key not in _WRITTEN}
    if noted:
        kept["annotations"] = noted
    return {**{key: value for key, value in raw.items() if key != "status"}, "metadata": kept}


def metadata(old: Old, new: New) -> None:
    """Kind, name, labels and annotations; what servers and controllers write is left out, with the status."""
    for name in ("apiVersion", "kind"):
        origin: Path = (name,)
        new.origins[origin] = (old.document, origin)
        old.done(origin)
    new.lines[("spec",)] = [(old.document, ("spec",))]
    old.keep(("metadata", "name"), new, ("metadata", "name"))
    old.keep(("metadata", "labels"), new, ("metadata", "labels"))
    annotations(old, ("metadata", "annotations"), new, ("metadata", "annotations"))
    for name in _SERVER:
        old.drop(("metadata", name), "the server writes it", look=False)
    old.drop(("metadata", "finalizers"), "controllers write them", look=False)
    old.drop(("metadata", "namespace"), "objects of this kind are in no namespace", look=False)
    old.drop(("metadata", "ownerReferences"), "its owner made the old object, not this one")
    old.drop(("status",), "the controller writes it", look=False)


def annotations(old: Old, at: Path, new: New, to: Path) -> None:
    """The annotations at `at`, one by one, some with their new names."""
    given = old.at(*at) or {}
    for key, value in given.items():
        today = RENAMED.get(key)
        if key in _WRITTEN:
            old.drop((*at, key), "kubectl and Karpenter write it", look=False)
        elif today is None:
            old.keep((*at, key), new, (*to, key))
        elif today in given:
            old.drop((*at, key), f"{today}, its new name, is there too", look=given[today] != value)
        else:
            old.change((*at, key), new, (*to, today), value, "it has been renamed")
