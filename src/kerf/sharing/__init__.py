"""How a pod asks for part of a GPU: `family.Family` is what each way must answer; `FAMILIES` lists them."""

from kerf.sharing.registry import FAMILIES, family_named, owner_of

__all__ = ["FAMILIES", "family_named", "owner_of"]
