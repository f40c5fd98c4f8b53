"""In which namespaces a ConfigMap or DaemonSet counts as a GPU plugin's."""

PLUGIN_NAMESPACES = (
    "gpu-operator",
    "hami-system",
    "kerf-system",
    "kube-system",
    "nvidia-device-plugin",
    "nvidia-gpu-operator",
)
"""Where the charts and guides of HAMi, of NVIDIA's GPU operator and device plugin, and of Kerf put what they install.

Any user may call a ConfigMap as a plugin calls its own; in a namespace of theirs no tenant may write.
"""
