"""Refused pods for which one tried change is the answer: those of one workload, and bare pods that ask the same.

Without this each of a thousand bare pods would have decisions of its own, though one change helps all or none.
"""

from collections.abc import Container, Hashable, Sequence

from kerf.engine.decision import Refusal
from kerf.engine.explain.hints.related import RELATED, key_of
from kerf.model.causes import Cause
from kerf.model.owners import top_owner
from kerf.model.pods import Pod, PodSpec


class Alike:
    """Which of the refused pods share a hint; `cron_jobs` as for `top_owner`. Linear in the refused pods."""

    def __init__(self, refusals: Sequence[Refusal], cron_jobs: Container[str]) -> None:
        self._cron_jobs = cron_jobs
        # A spec is kept beside its number: an identity is free again once its object is gone.
        self._by_identity: dict[int, tuple[PodSpec, int]] = {}
        self._by_value: dict[PodSpec, int] = {}
        self._pods: dict[Hashable, list[Pod]] = {}
        for refusal in refusals:
            inner = refusal.innermost
            if isinstance(inner.cause, RELATED):
                for pod in inner.pods:
                    self._pods.setdefault(self.group(pod, inner.cause), []).append(pod)

    def group(self, pod: Pod, cause: Cause) -> Hashable:
        """Equal for pods that share a hint: their workload, of bare pods what `kind` says."""
        owner = top_owner(pod, self._cron_jobs)
        return (pod.namespace, owner) if owner is not None else self.kind(pod, cause)

    def kind(self, pod: Pod, cause: Cause) -> Hashable:
        """Equal for pods that ask the same, and are refused for causes of one kind over one label."""
        return pod.namespace, self._spec(pod.spec), type(cause), key_of(cause)

    def of(self, refusal: Refusal) -> tuple[Pod, ...]:
        """All pods that share a hint with those of the refusal."""
        return tuple(self._pods.get(self.group(refusal.pods[0], refusal.cause), refusal.pods))

    def _spec(self, spec: PodSpec) -> int:
        held = self._by_identity.get(id(spec))
        if held is None:
            held = self._by_identity[id(spec)] = spec, self._by_value.setdefault(spec, len(self._by_value))
        return held[1]
