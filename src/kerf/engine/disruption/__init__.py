"""Which nodes may go: each module has `propose(snapshot, market, candidates)`; the first plan of the first wins."""

from kerf.engine.disruption import consolidation, emptiness

METHODS = (emptiness.propose, consolidation.propose)
"""In the order in which they are asked, as Karpenter's."""
