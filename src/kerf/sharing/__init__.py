"""How a pod asks for part of a GPU: one file per family behind the Protocol `family.Family`; `FAMILIES` lists them."""

from kerf.sharing.registry import FAMILIES, family_named, owner_of

__all__ = ["FAMILIES", "family_named", "owner_of"]
