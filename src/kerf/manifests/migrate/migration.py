"""Documents in, objects of today and a report out: which kind is converted by whom, and what two of them share.

The kubelet's settings made this hard. They belonged to each pool and belong to the NodeClass today, so pools which
share a class and differ in them need one class each.
"""

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kerf.errors import DecodeError, DecodeErrors, InputError
from kerf.manifests.documents import Document, YamlDocument
from kerf.manifests.migrate import forms, metadata, node_class, others, pools, values
from kerf.manifests.migrate.objects import FieldChange, FieldOutcome, New, Object, Old
from kerf.manifests.migrate.pools import Pool
from kerf.manifests.migrate.requirements import Offers, everything_is_sold
from kerf.manifests.migrate.served import note_refused
from kerf.manifests.read import Documents
from kerf.manifests.schema import Path, Record, Report, path_text, shown


@dataclass(frozen=True)
class Migration:
    """Objects of today in the order of the documents they come from, and a row for every field of the old ones.

    `is_values`: the one object is a file of Helm values, and no manifest.
    """

    objects: tuple[New, ...]
    rows: tuple[FieldChange, ...]
    is_values: bool = False

    @property
    def needs_look(self) -> bool:
        """Whether a user has to decide or fill in something."""
        return any(row.needs_look for row in self.rows)

    def count(self, outcome: FieldOutcome) -> int:
        """How many fields came to that."""
        return sum(row.outcome is outcome for row in self.rows)


@dataclass
class _Work:
    """What the documents share: names of classes, the pools, and each class with the list of objects it stands in."""

    offers: Offers
    taken: set[str]
    pools: list[Pool] = field(default_factory=list)
    classes: dict[str, tuple[New, list[New]]] = field(default_factory=dict)


def migrate(documents: Documents, offers: Offers = everything_is_sold, *, keeps_unchanged: bool = True) -> Migration:
    """Every document as today's API takes it; without `keeps_unchanged` only those in which something changes.

    `offers` judges the instance types that pools name.

    Raises DecodeErrors with all that cannot be read, among them retired kinds in a form that never was theirs, and
    InputError for values and manifests in one input, because no program takes both.
    """
    errors: list[InputError] = []
    found: list[tuple[Document, Object]] = []
    for entry in documents.entries:
        try:
            if isinstance(entry, InputError):
                raise entry
            found.append((entry, _checked(entry)))
        except InputError as error:
            errors.append(error)
    if errors:
        raise DecodeErrors(errors)
    return _values(found) or _manifests(found, offers, keeps_unchanged=keeps_unchanged)


def _values(found: list[tuple[Document, Object]]) -> Migration | None:
    files = [(document, value) for document, value in found if values.is_values(value)]
    if not files:
        return None
    if len(found) > 1:
        expected = "expected Helm values alone, or manifests alone"
        raise InputError(f"{files[0][0].place()}: {expected} (hint: migrate each file of values by itself)")
    rows: list[FieldChange] = []
    old = Old(*files[0], rows)
    return Migration((values.from_values(old),), tuple(rows), is_values=True)


def _manifests(found: list[tuple[Document, Object]], offers: Offers, *, keeps_unchanged: bool) -> Migration:
    classes = {_name(value) for _, value in found if value["kind"] in ("AWSNodeTemplate", node_class.KIND)}
    work = _Work(offers, classes)
    olds = [Old(document, value, []) for document, value in found]
    made = [_converted(work, old) for old in olds]
    _settle_kubelets(work)
    for old, several in zip(olds, made, strict=True):
        if _is_converted(old.value):
            note_refused(old, several)
    rows = tuple(row for old in olds for row in _rows(old))
    kept = (
        several
        for old, several in zip(olds, made, strict=True)
        if keeps_unchanged or old.rows or _is_converted(old.value)
    )
    return Migration(tuple(new for several in kept for new in several), rows)


def _is_converted(value: Object) -> bool:
    return (value["apiVersion"], value["kind"]) in _CONVERTED


def _rows(old: Old) -> list[FieldChange]:
    if old.rows:
        old.rest()
    return old.rows


def _converted(work: _Work, old: Old) -> list[New]:
    known = _CONVERTED.get((old.value["apiVersion"], old.value["kind"]))
    if known is not None:
        return known[1](work, old)
    if others.is_global_settings(old.value):
        others.global_settings(old)
        return []
    return [others.passed(old)]


def _provisioner(work: _Work, old: Old) -> list[New]:
    name = old.name if old.name not in work.taken else f"{old.name}-provider"
    pool = pools.from_provisioner(old, name, work.offers)
    provider: Path = ("spec", "provider")
    made = [pool.new]
    work.pools.append(pool)
    for field_ in ("apiVersion", "kind"):
        old.drop((*provider, field_), "it only said which cloud", look=False)
    if old.at("spec", "providerRef") is not None:
        for key in old.at(*provider) or {}:
            if key != "instanceTypes":
                old.drop((*provider, key), "v1alpha5 took only one of provider and providerRef")
        return made
    new = New.of(node_class.VERSION, node_class.KIND)
    new.put(("metadata", "name"), name)
    work.taken.add(name)
    work.classes[name] = (new, made)
    if old.at(*provider) is None:
        node_class.blank(old, new)
    else:
        node_class.from_template(old, provider, new)
    made.append(new)
    return made


def _node_template(work: _Work, old: Old) -> list[New]:
    made = _node_class(work, old)
    node_class.from_template(old, ("spec",), made[0])
    return made


def _node_class_beta(work: _Work, old: Old) -> list[New]:
    made = _node_class(work, old)
    node_class.from_beta(old, made[0])
    return made


def _node_class(work: _Work, old: Old) -> list[New]:
    new = New.of(node_class.VERSION, node_class.KIND)
    metadata.metadata(old, new)
    made = [new]
    work.classes[old.name] = (new, made)
    return made


def _node_pool_beta(work: _Work, old: Old) -> list[New]:
    pool = pools.from_beta(old, work.offers)
    work.pools.append(pool)
    return [pool.new]


def _node_claim_beta(_work: _Work, old: Old) -> list[New]:
    new = pools.claim_from_beta(old)
    old.drop(("spec", "kubelet"), *_NO_CLASS)
    return [new]


def _machine(_work: _Work, old: Old) -> list[New]:
    hint = "nodes of the old Karpenter go with it; today's makes NodeClaims for its own"
    old.drop((), "controllers make Machines, people do not", hint)
    return []


_NO_CLASS = (
    "it belongs to the EC2NodeClass today",
    "put it there as spec.kubelet, or migrate the file with its AWSNodeTemplate or EC2NodeClass together with this one",
)
_CONVERTED: dict[tuple[str, str], tuple[Record, Callable[[_Work, Old], list[New]]]] = {
    ("karpenter.sh/v1alpha5", "Provisioner"): (forms.PROVISIONER, _provisioner),
    ("karpenter.sh/v1alpha5", "Machine"): (forms.MACHINE, _machine),
    ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"): (forms.NODE_TEMPLATE, _node_template),
    ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"): (forms.NODE_CLASS_BETA, _node_class_beta),
    ("karpenter.sh/v1beta1", "NodePool"): (forms.NODE_POOL_BETA, _node_pool_beta),
    ("karpenter.sh/v1beta1", "NodeClaim"): (forms.NODE_CLAIM_BETA, _node_claim_beta),
}


_TEMPLATED = re.compile(r"\{\{-?\s*(?:\.|\$|if|else|end|range|with|include|template|toYaml|define)")
"""What stands in Helm's templates, and in no value that a webhook or a Job would keep for itself."""
_KUSTOMIZE = "render it first: kubectl kustomize DIR | kerf migrate -f -; a patch alone is a part of an object"
_GROUPS = ("karpenter.sh", "karpenter.k8s.aws")
_KINDS = tuple(sorted({kind for _, kind in _CONVERTED} | {"NodeOverlay"}))
"""Of Karpenter and its provider for AWS, of today and before."""


def _settle_kubelets(work: _Work) -> None:
    """Give each class the kubelet's settings of its pools, and pools that differ from the others a class of their own.

    A pool without settings keeps the class as it is; where all have some, those of the first go into it.
    """
    by_class: dict[str, list[Pool]] = {}
    for pool in work.pools:
        by_class.setdefault(pool.class_name, []).append(pool)
    for name, members in by_class.items():
        if name not in work.classes:
            for pool in members:
                pool.old.drop(pool.kubelet, *_NO_CLASS)
            continue
        shared, made = work.classes[name]
        plain = shared.copy()
        texts = [_text(pool.old.at(*pool.kubelet)) for pool in members]
        base = "" if "" in texts else texts[0]
        own = {base: shared}
        for pool, text in zip(members, texts, strict=True):
            if text not in own:
                own[text] = _another(work, pool, plain)
                made.append(own[text])
            if own[text] is not shared:
                pool.refer(own[text].value["metadata"]["name"])
            if text:
                node_class.kubelet(pool.old, pool.kubelet, own[text])


def _another(work: _Work, pool: Pool, plain: New) -> New:
    name = f"{pool.class_name}-{pool.old.name}"
    while name in work.taken:
        name += "-kubelet"
    work.taken.add(name)
    new = plain.copy()
    pool.old.add(
        new, ("metadata", "name"), name, f"another pool of {pool.class_name} has other settings of the kubelet"
    )
    return new


def _text(value: object) -> str:
    return "" if not value else json.dumps(value, sort_keys=True)


def _name(value: Object) -> str:
    found = value.get("metadata")
    return str(found.get("name", "")) if isinstance(found, dict) else ""


def _checked(document: Document) -> Object:
    """The value of a document. Raises DecodeErrors where it has not the form of its kind."""
    if isinstance(document, YamlDocument) and _TEMPLATED.search(document.text):
        hint = "render it first: helm template CHART | kerf migrate -f -"
        raise DecodeError("", "YAML as it is applied", "<a Helm template>", place=document.place(), hint=hint)
    value = document.value()
    if values.is_values(value):
        return dict(value)
    if not isinstance(value, dict):
        raise DecodeError(
            "", "a Kubernetes object or values of Karpenter's chart", shown(value), place=document.place()
        )
    if "kind" not in value and _is_kustomization(document):
        raise DecodeError(
            "", "objects as they are applied", "<a Kustomization>", place=document.place(), hint=_KUSTOMIZE
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise DecodeError(name, "text such as v1 or Pod", shown(value.get(name)), place=document.place((name,)))
    version, kind = value["apiVersion"], value["kind"]
    form = _CONVERTED.get((version, kind))
    if form is None:
        _refuse_others(document, version, kind)
        return value
    report = Report()
    form[0].check(value, (), report)
    problems = [
        DecodeError(path_text(p.path), p.expected, p.got, place=document.place(p.path), hint=p.hint)
        for p in report.problems
    ]
    if problems:
        raise DecodeErrors(problems)
    return value


def _is_kustomization(document: Document) -> bool:
    """Kustomize asks for neither apiVersion nor kind in its own file."""
    name = document.name if isinstance(document, YamlDocument) else ""
    return name.rpartition("/")[2] in ("kustomization.yaml", "kustomization.yml", "Kustomization")


def _refuse_others(document: Document, version: str, kind: str) -> None:
    """Versions of the retired kinds that are older than what is converted, and what is no manifest of a cluster."""
    known = sorted(v for v, k in _CONVERTED if k == kind)
    group, _, number = version.partition("/")
    if group == "kustomize.config.k8s.io":
        place = document.place(("kind",))
        raise DecodeError("kind", "objects as they are applied", kind, place=place, hint=_KUSTOMIZE)
    if group in _GROUPS and kind not in _KINDS:
        close = difflib.get_close_matches(kind, _KINDS, 1)
        hint = f"is {close[0]} meant?" if close else f"kinds of Karpenter are {', '.join(_KINDS)}"
        raise DecodeError("kind", "a kind of Karpenter", kind, place=document.place(("kind",)), hint=hint)
    if known and "karpenter" in group and (number != "v1" or kind in ("Provisioner", "Machine", "AWSNodeTemplate")):
        raise DecodeError("apiVersion", " or ".join(known), version, place=document.place(("apiVersion",)))
