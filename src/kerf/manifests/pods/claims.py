"""Templates of claims, of ephemeral volumes and of StatefulSets: what a claim that is still to be made asks."""

from collections.abc import Mapping
from typing import Any

from kerf.model.quantities import STORAGE, quantity
from kerf.model.volumes import ClaimTemplate


def claim_template_of(name: str, spec: Mapping[str, Any], *, is_ephemeral: bool = False) -> ClaimTemplate:
    """A template of claims of this spec, whose form has been checked."""
    attributes_class = spec.get("volumeAttributesClassName") or ""
    return ClaimTemplate(name, spec.get("storageClassName"), is_ephemeral, requested_of(spec), attributes_class)


def requested_of(spec: Mapping[str, Any]) -> int:
    """The bytes that a claim of this spec asks for; 0 for none."""
    return storage_of((spec.get("resources") or {}).get("requests"))


def storage_of(amounts: Mapping[str, Any] | None) -> int:
    """The bytes of storage among these amounts; 0 for none."""
    amount = (amounts or {}).get(STORAGE)
    return 0 if amount is None else quantity(amount)
