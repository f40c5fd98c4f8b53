"""The cluster as the events so far describe it: the only mutable model, and what it knows of cards still to come."""

from kerf.state.cluster import ClusterState
from kerf.state.joining import devices_annotation, lacks, noted_observations, observed_memory, predicted_shapes

__all__ = [
    "ClusterState",
    "devices_annotation",
    "lacks",
    "noted_observations",
    "observed_memory",
    "predicted_shapes",
]
