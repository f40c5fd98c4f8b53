"""The cluster as the events so far describe it: the only mutable model, and what it knows of cards still to come."""

from kerf.state.cluster import ClusterState
from kerf.state.joining import noted_observations, observed_memory

__all__ = [
    "ClusterState",
    "noted_observations",
    "observed_memory",
]
