"""What one decision hands to the next about what is for sale; the caller carries it, and may drop it at any time.

With it a plan begins where the last one ended. It may be another plan than without it, and states its bound as any
other does; the same snapshot and the same kept value give the same plan.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmth import KeptColumn, KeptProof, Warmth, sold_alike
from kerf.model.large import Large


@dataclass(frozen=True, eq=False, repr=False)
class WarmStart(Large):
    """Nothing at first, as after a restart.

    `columns` are ways to fill nodes, `gap` is how near to the bound nodes in parts of them came, relatively, and
    `proofs` are prices that prove a bound. `known` is what types, cards and kinds of pods were asked, and by whose
    numbers of shapes the others go. All of it is bounded: `engine.supply.warmth` says by how much.
    """

    known: Holding | None = None
    columns: tuple[KeptColumn, ...] = ()
    proofs: tuple[KeptProof, ...] = ()
    gap: float = 0.0

    def holding(self, offered_types: Iterable[OfferedType]) -> Holding:
        """What is known of these types, with what of the rest still holds for them.

        A type holds what it held while its offerings, their prices, its room, its taints and its labels are what they
        were. Cost: linear in the types and in what is kept.
        """
        types = tuple(offered_types)
        if self.known is None or self.known.is_full:
            found = Holding(types)
            found.warmth = Warmth()
            return found
        found = self.known.carried(types)
        there = set(map(id, types))
        proofs = (proof for proof in self.proofs if all(id(each) in there for each in proof.offered))
        found.warmth = Warmth(sold_alike(self.columns, types), proofs, self.gap)
        return found

    @staticmethod
    def of(holding: Holding) -> "WarmStart":
        """What is kept after the purchases that have asked the holding."""
        warmth = holding.warmth
        if warmth is None:
            return WarmStart()
        return WarmStart(holding, warmth.next_columns(), warmth.next_proofs(), warmth.next_gap())
