"""Pods that do not exist and for which room is kept: who keeps it is in their namespace, which no real one can have.

The keys of such pods stand in annotations of claims (`kerf.dev/planned-pods`), so what they mean must be readable after
a restart. This is the one place that writes and reads them.
"""

from dataclasses import dataclass
from enum import StrEnum

VIRTUAL = ":"
"""In the namespace of a placeholder; no namespace of an API has it."""
_EXCLUSIVE = "exclusive-"


class Keeper(StrEnum):
    """Whose room it is; the value begins the namespace of its placeholders."""

    WINDOW = "capacitywindow"
    RUN = "cronjob"
    REQUEST = "provisioningrequest"
    CHECK = "checkcapacity"
    BUFFER = "capacitybuffer"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Room that is kept: `name` is the window's, or `namespace/name` of the CronJob, request or buffer.

    `is_exclusive`: on nodes that only the window's pods may use.
    """

    keeper: Keeper
    name: str
    is_exclusive: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return f"{self.keeper}{VIRTUAL}{self.name.replace('/', '.', 1)}"

    def pod_name(self, kind: int, number: int) -> str:
        """The name of one pod of a window: `number` of its entry `kind`."""
        return f"{_EXCLUSIVE if self.is_exclusive else 'warm-'}{kind}-{number}"

    @classmethod
    def of(cls, key: str) -> "Placeholder | None":
        """What a pod's `namespace/name` stands for; None for a real pod."""
        namespace, _, name = key.partition("/")
        keeper, virtual, kept = namespace.partition(VIRTUAL)
        if not virtual or keeper not in set(Keeper):
            return None
        if keeper == Keeper.WINDOW:
            return cls(Keeper.WINDOW, kept, name.startswith(_EXCLUSIVE))
        return cls(Keeper(keeper), kept.replace(".", "/", 1))


def is_virtual(key: str) -> bool:
    """Whether a `namespace/name` is of a pod for which room is kept and that does not exist."""
    return VIRTUAL in key.partition("/")[0]
