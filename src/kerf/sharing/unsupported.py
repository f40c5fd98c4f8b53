"""Ways of sharing GPUs that Kerf recognises and does not plan for, so it buys nothing for their pods.

Counted like any resource, parts of cards would be summed over a node; left aside, a pod that asks by an annotation
would get a node without a GPU. Names are those of each project's own documentation and code, as of 2026-11.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerf.model.causes import Cause, Name
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.pods import Pod

__all__ = ["UNSUPPORTED", "Unsupported", "UnsupportedSharing", "unsupported_by"]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A project or vendor: beginnings of its resources, annotations with a number, and schedulers that share cards."""

    title: str
    resources: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()


UNSUPPORTED = (
    Unsupported("KAI Scheduler", (), ("gpu-fraction", "gpu-memory"), ("kai-scheduler", "runai-scheduler")),
    Unsupported("Koordinator", ("koordinator.sh/",), (), ("koord-scheduler",)),
    Unsupported("Volcano vGPU", ("volcano.sh/vgpu-", "volcano.sh/gpu-")),
    Unsupported("Alibaba's gpushare and cGPU", ("aliyun.com/gpu-",)),
    Unsupported("Tencent's gpu-manager", ("tencent.com/vcuda-",)),
    Unsupported("elastic-gpu", ("elasticgpu.com/",)),
    Unsupported("Huawei Ascend", ("huawei.com/Ascend",)),
    Unsupported("Cambricon", ("cambricon.com/",)),
    Unsupported("Hygon", ("hygon.com/",)),
    Unsupported("Kunlunxin", ("kunlunxin.com/",)),
    Unsupported("Moore Threads", ("mthreads.com/",)),
    Unsupported("MetaX", ("metax-tech.com/",)),
    Unsupported("Enflame", ("enflame.com/",)),
    Unsupported("Iluvatar", ("iluvatar.ai/",)),
)


@dataclass(frozen=True, slots=True)
class UnsupportedSharing(Cause):
    """The pod asks for accelerators of a kind that is not planned for: by a resource, an annotation or a scheduler."""

    title: Name
    asked: Name


def unsupported_by(pod: Pod) -> UnsupportedSharing | None:
    """The first of them that the pod asks for; None for a pod that asks for none.

    A scheduler of theirs counts where the pod asks for a GPU: what else it places, kube-scheduler would place alike.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    resources = sorted({name for each in containers for name, amount in each.requests.items() if amount > 0})
    for each in UNSUPPORTED:
        asked = _asked(each, pod, resources)
        if asked:
            return UnsupportedSharing(Name(each.title), Name(asked))
    return None


def _asked(each: Unsupported, pod: Pod, resources: Iterable[str]) -> str:
    """The resource, annotation or scheduler by which the pod asks; empty for none."""
    named = next((name for name in resources if name.startswith(each.resources)), "")
    if named:
        return named
    stated = next((key for key in each.annotations if _is_amount(pod.annotations.get(key, ""))), "")
    if stated:
        return stated
    is_theirs = pod.spec.scheduler_name in each.schedulers and NVIDIA_GPU in resources
    return pod.spec.scheduler_name if is_theirs else ""


def _is_amount(text: str) -> bool:
    """Whether an annotation states a positive number: another use of such a common word is no request."""
    try:
        return float(text) > 0
    except ValueError:
        return False
