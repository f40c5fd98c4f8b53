"""Which nodes may go: each module has `propose(snapshot, market, candidates)`; the first plan of the first wins."""

from kerf.engine.disruption import consolidation, emptiness, pricecaps

METHODS = (emptiness.propose, consolidation.propose, pricecaps.propose)
"""In the order in which they are asked, as Karpenter's; what is too dear is replaced where nothing can just go."""
