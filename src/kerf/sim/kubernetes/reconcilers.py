"""The form of the stand-ins for Kubernetes' own controllers: when something has changed, they look at what is.

They read the API itself and no cache of it, so they need no expectations; many changes of one instant lead to one
look. What fails is tried again later, as the real ones do, so a refusal by admission does not end a workload.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar

from kerf.errors import ApiError
from kerf.model.times import instant_s, instant_text
from kerf.ports import Clock
from kerf.sim.kubernetes.api import Change, InMemoryApi
from kerf.sim.objects import Json, JsonList, controller_of, copied, name_of, owner_reference, uid_of

Key = tuple[str, str]
"""(namespace, name) of an object of the reconciler's kind."""

_FIRST_RETRY_S, _LAST_RETRY_S = 5, 1000


class Queue:
    """Keys that have to be looked at: each once however often it was added, in the order of the first time.

    `refused` is what the API last said to those that could not do what they wanted; `on_refusal` gets each once.
    """

    def __init__(
        self, clock: Clock, act: Callable[[str, Key], None], on_refusal: Callable[[str, Key, str], None]
    ) -> None:
        self._clock, self._act, self._on_refusal = clock, act, on_refusal
        self.refused: dict[tuple[str, Key], str] = {}
        self._due: dict[tuple[str, Key], None] = {}
        self._failures: dict[tuple[str, Key], int] = {}
        self._timers: set[tuple[float, str, Key]] = set()

    def add(self, kind: str, key: Key) -> None:
        """Look at `key` in the next turn of the loop."""
        if not self._due:
            self._clock.call_at(self._clock.now_s(), self._drain)
        self._due[(kind, key)] = None

    def add_at(self, when_s: float, kind: str, key: Key) -> None:
        """Look at `key` at that time."""
        timer = (when_s, kind, key)
        if timer not in self._timers:
            self._timers.add(timer)
            self._clock.call_at(when_s, lambda: self._ring(timer))

    def _ring(self, timer: tuple[float, str, Key]) -> None:
        self._timers.discard(timer)
        self.add(timer[1], timer[2])

    def _drain(self) -> None:
        due, self._due = self._due, {}
        for kind, key in due:
            try:
                self._act(kind, key)
            except ApiError as error:
                if self.refused.get((kind, key)) != str(error):
                    self.refused[(kind, key)] = str(error)
                    self._on_refusal(kind, key, str(error))
                failures = self._failures.get((kind, key), 0)
                self._failures[(kind, key)] = failures + 1
                delay_s = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** min(failures, 10))
                self.add_at(self._clock.now_s() + delay_s, kind, key)
            else:
                self._failures.pop((kind, key), None)
                self.refused.pop((kind, key), None)


class PodMaker:
    """Pods of workloads, with names that read well in a timeline: `gpu-inference-0`, `-1`, ... never used twice."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api
        self._next: dict[Key, int] = {}

    def create_numbered(self, workload: str, pod: Json) -> None:
        """Create `pod` under the next free name of its workload; one that is refused uses up no name."""
        namespace = pod["metadata"]["namespace"]
        number = self._next.get((namespace, workload), 0)
        while self._api.get("Pod", namespace, f"{workload}-{number}") is not None:
            number += 1
        self._api.create({**pod, "metadata": {**pod["metadata"], "name": f"{workload}-{number}"}})
        self._next[(namespace, workload)] = number + 1

    def make(self, owner: Json, template: Json, name: str = "", labels: dict[str, str] | None = None) -> Json:
        """A pod of `template`, controlled by `owner`, not yet created."""
        metadata = template.get("metadata") or {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": owner["metadata"]["namespace"],
                "labels": {**(metadata.get("labels") or {}), **(labels or {})},
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": copied(template["spec"]),
        }


class Reconciler(ABC):
    """Keeps the objects of one kind true."""

    kind: ClassVar[str]

    def __init__(self, api: InMemoryApi, clock: Clock, queue: Queue, pods: PodMaker) -> None:
        self.api, self.clock, self.queue, self.pods = api, clock, queue, pods

    @abstractmethod
    def reconcile(self, obj: Json) -> None:
        """Bring the world nearer to what `obj` says; called again after every change of it or of what it controls."""

    def controlled(self, owner: Json, kind: str = "Pod") -> JsonList:
        """The objects of `kind` that `owner` controls, oldest first."""
        uid = uid_of(owner)
        return [
            obj
            for obj in self.api.dependents(owner)
            if obj["kind"] == kind and (controller_of(obj) or {}).get("uid") == uid
        ]

    def set_status(self, obj: Json, **fields: object) -> None:
        """Write some fields of the status, and the generation that was seen; no event when nothing changes."""
        status = {**fields, "observedGeneration": obj["metadata"]["generation"]}
        namespace = obj["metadata"]["namespace"]
        self.api.patch(obj["kind"], namespace, name_of(obj), {"status": status}, subresource="status")

    def delete(self, obj: Json) -> None:
        """Delete an object with its own grace."""
        self.api.delete(obj["kind"], obj["metadata"]["namespace"], name_of(obj))

    def look_again(self, obj: Json, when_s: float) -> None:
        """Reconcile `obj` at that time."""
        self.queue.add_at(when_s, obj["kind"], (obj["metadata"]["namespace"], name_of(obj)))

    def now_text(self) -> str:
        """This moment as the API writes it."""
        return instant_text(self.clock.now_s())


class Watcher(Reconciler):
    """A reconciler that other objects than its own, and those it controls, concern too."""

    @abstractmethod
    def notice(self, change: Change) -> Iterable[Key]:
        """The keys that a change concerns."""


def template_hash(template: Json) -> str:
    """Five characters that are the same for equal templates."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:5]


def created_s(obj: Json) -> float:
    """When the API made it, in seconds since the epoch."""
    return instant_s(obj["metadata"]["creationTimestamp"])
