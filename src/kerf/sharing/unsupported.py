"""Ways of sharing GPUs that Kerf recognises and does not plan for, so it buys nothing for their pods.

Counted like any resource, parts of cards would be summed over a node; left aside, a pod that asks by an annotation
would get a node without a GPU. Names are those of each project's own documentation and code, as of 2026-11. There are
more than can be listed, so a resource whose name says that it is a part of a card is one too. Devices that kubelet
counts whole, such as `amd.com/gpu` or `aws.amazon.com/neuroncore`, are none.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kerf.model.causes import Cause, Name
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.pods import Pod
from kerf.sharing.family import Family

__all__ = ["UNSUPPORTED", "Unsupported", "UnsupportedSharing", "counted_by", "unsupported_by"]


_CONTAINER_SHARE = re.compile(r"[./]gpu-[a-z-]+(\.[a-z-]+)*\.(request|limit)s?$")
"""An annotation for one container, whatever its prefix: `acme.com/container.main.gpu-memory.portion.limit`."""
_OF_GPUS = re.compile(r"(^|[./_-])v?gpus?([./_-]|$)")
"""An annotation that speaks of GPUs; of a pod whose scheduler shares cards it is a request."""
_AMOUNT = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+) ?([numkKMGTPE]i?[bB]?|[eE][+-]?[0-9]+|%)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A project or vendor: beginnings of its resources, annotations, and schedulers that share cards.

    Beginnings are in small letters and hold for names in any case. `shares` is the form of further annotations, for
    projects whose prefix is a setting.
    """

    title: str
    resources: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    shares: re.Pattern[str] | None = None

    def asks(self, key: str, text: str, is_of_scheduler: bool) -> bool:
        """Whether an annotation is a request, in a pod that one of the schedulers places or in any other.

        A key that is known is one whatever its value, unless that is nothing (`0`): a value that its scheduler cannot
        read makes no pod of it that runs without a GPU. What is not known of a scheduler's annotations may ask for a
        GPU as well, if it states an amount: a node without one would not do.
        """
        if key in self.annotations or (self.shares is not None and self.shares.search(key) is not None):
            return _amount(text) != 0
        return is_of_scheduler and _OF_GPUS.search(key) is not None and (_amount(text) or 0) > 0


UNSUPPORTED = (
    Unsupported(
        "KAI Scheduler",
        (),
        ("gpu-fraction", "gpu-memory"),
        ("kai-scheduler", "runai-scheduler"),
        _CONTAINER_SHARE,
    ),
    Unsupported("Koordinator", ("koordinator.sh/",), (), ("koord-scheduler",)),
    Unsupported("Volcano vGPU", ("volcano.sh/vgpu-", "volcano.sh/gpu-")),
    Unsupported("Alibaba's gpushare and cGPU", ("aliyun.com/gpu-",)),
    Unsupported("Tencent's gpu-manager", ("tencent.com/vcuda-",)),
    Unsupported("Tencent's qGPU", ("tke.cloud.tencent.com/qgpu",)),
    Unsupported("Baidu's cGPU and XPU", ("baidu.com/",)),
    Unsupported("Volcengine's mGPU", ("vke.volcengine.com/mgpu-",)),
    Unsupported("elastic-gpu", ("elasticgpu.com/", "elasticgpu.io/")),
    # HAMi also shares AMD's cards; whole ones are counted by kubelet.
    Unsupported("HAMi for AMD", ("amd.com/gpucores", "amd.com/gpumem")),
    Unsupported("Intel's GPU Aware Scheduling", ("gpu.intel.com/m", "gpu.intel.com/tiles")),
    Unsupported("Huawei Ascend", ("huawei.com/ascend", "huawei.com/npu")),
    Unsupported("Cambricon", ("cambricon.com/",)),
    Unsupported("Hygon", ("hygon.com/",)),
    Unsupported("Kunlunxin", ("kunlunxin.com/",)),
    Unsupported("Moore Threads", ("mthreads.com/",)),
    Unsupported("MetaX", ("metax-tech.com/",)),
    Unsupported("Enflame", ("enflame.com/",)),
    Unsupported("Iluvatar", ("iluvatar.ai/",)),
)

_PART = re.compile(
    r"(^|[-_.])v?(cores?|mem(ory)?|percent(age)?)([-.]\d*[kmgt]?i?b?)?$"  # acme.com/gpu-core, acme.com/gpu-mem.128mi
    r"|(^|[-_.])([cmqsv](gpu|npu|xpu)|vcuda|vdcu|vgcu|vmlu)(?![a-z])"  # acme.com/vgpu, acme.com/t4_cgpu_memory
)
_NO_PARTS = ("kubernetes.io/batch-", "kubernetes.io/mid-", "resource.katalyst.kubewharf.io/", "nvidia.com/")
"""Whose names may read so: what Koordinator and Katalyst lend of a node, and what NVIDIA's plugin and HAMi show."""


@dataclass(frozen=True, slots=True)
class UnsupportedSharing(Cause):
    """The pod asks for accelerators of a kind that is not planned for: by a resource, an annotation or a scheduler.

    An empty title: `asked` is a resource of which no more is known than that its name says a part of a card.
    """

    title: Name
    asked: Name


def unsupported_by(pod: Pod, known: Collection[str] = ()) -> UnsupportedSharing | None:
    """The first of them that the pod asks for; None for a pod that asks for none.

    `known` are resources that a family counts, whatever its configuration calls them. A scheduler of theirs counts
    where the pod asks for a GPU: what else it places, kube-scheduler would place alike.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    asking = {name for each in containers for name, amount in each.requests.items() if amount > 0}
    resources = sorted(asking.difference(known))
    for each in UNSUPPORTED:
        asked = _asked(each, pod, resources, has_gpu=NVIDIA_GPU in asking)
        if asked:
            return UnsupportedSharing(Name(each.title), Name(asked))
    part = next(filter(_is_part, resources), "")
    return UnsupportedSharing(Name(""), Name(part)) if part else None


def counted_by(families: Iterable[Family]) -> frozenset[str]:
    """The resources that are planned for as cards or parts of them, as the families are configured."""
    return frozenset(name for family in families for name in (*family.resources, family.counted))


def _is_part(resource: str) -> bool:
    """Whether the name of an extended resource says that it is a part of a card."""
    of, _, name = resource.lower().partition("/")
    return bool(name) and not f"{of}/{name}".startswith(_NO_PARTS) and _PART.search(name) is not None


def _asked(each: Unsupported, pod: Pod, resources: Iterable[str], *, has_gpu: bool) -> str:
    """The resource, annotation or scheduler by which the pod asks; empty for none."""
    named = next((name for name in resources if name.lower().startswith(each.resources)), "")
    if named:
        return named
    is_theirs = pod.spec.scheduler_name in each.schedulers
    stated = sorted(key for key, text in pod.annotations.items() if each.asks(key, text, is_theirs))
    if stated:
        return stated[0]
    return pod.spec.scheduler_name if is_theirs and has_gpu else ""


def _amount(text: str) -> float | None:
    """The number of an annotation that states an amount, whatever its unit; None for another text."""
    found = _AMOUNT.fullmatch(text.strip())
    return None if found is None else float(found[1])
