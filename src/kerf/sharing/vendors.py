"""Whose accelerators a resource stands for, where kubelet counts them whole: names for words alone.

Such a device is a number like any other, so nothing is decided by this table. A person who reads that a resource is
short wants to know what it is. Each name is that of its maker's own device plugin, or of HAMi's list of devices.
"""

from dataclasses import dataclass

from kerf.sharing.unsupported import UNSUPPORTED


@dataclass(frozen=True, slots=True)
class Vendor:
    """A maker's accelerators: as people call them, beginnings of their resources in small letters, and the source."""

    title: str
    resources: tuple[str, ...]
    source: str


VENDORS = (
    Vendor("AMD GPUs", ("amd.com/gpu",), "https://github.com/ROCm/k8s-device-plugin"),
    Vendor("Intel GPUs", ("gpu.intel.com/",), "https://github.com/intel/intel-device-plugins-for-kubernetes"),
    Vendor(
        "Intel Gaudi",
        ("habana.ai/gaudi",),
        "https://docs.habana.ai/en/latest/Installation_Guide/Additional_Installation/Kubernetes_Installation/",
    ),
    Vendor("Google TPUs", ("google.com/tpu",), "https://cloud.google.com/kubernetes-engine/docs/concepts/tpus"),
    Vendor("AWS Neuron", ("aws.amazon.com/neuron",), "https://awsdocs-neuron.readthedocs-hosted.com"),
    Vendor("Vastai", ("vastaitech.com/",), "https://github.com/Project-HAMi/HAMi, v2.10.0, docs/vastai-support.md"),
    Vendor("Biren", ("birentech.com/",), "https://github.com/Project-HAMi/HAMi, v2.10.0, docs/biren-support.md"),
    Vendor("Qualcomm Cloud AI", ("qualcomm.com/qaic",), "https://quic.github.io/cloud-ai-sdk-pages"),
    Vendor("FuriosaAI", ("furiosa.ai/", "beta.furiosa.ai/"), "https://developer.furiosa.ai"),
    Vendor("Rebellions", ("rebellions.ai/",), "https://github.com/rebellions-sw/rbln-k8s-device-plugin"),
    Vendor("Tenstorrent", ("tenstorrent.com/",), "https://github.com/tenstorrent/tt-k8s-device-plugin"),
)
"""As of 2026-11; the first whose beginning a resource has."""


def title_of(resource: str) -> str:
    """Whose accelerator a resource stands for, as a whole or in part; empty where that is not known."""
    name = resource.lower()
    known = ((each.title, each.resources) for each in (*VENDORS, *UNSUPPORTED))
    return next((title for title, beginnings in known if beginnings and name.startswith(beginnings)), "")
