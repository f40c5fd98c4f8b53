"""Answers of AWS that count for a while."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from kerf.ports import Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TimedCache(Generic[Key, Value]):
    """Values by key, each for `kept_s` seconds of an injected clock, or as long as it says itself."""

    def __init__(self, clock: Clock, kept_s: float) -> None:
        self._clock, self._kept_s = clock, kept_s
        self._held: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key) -> Value | None:
        """The value; None where there is none, or no longer one."""
        held = self._held.get(key)
        if held is None or held[0] <= self._clock.now_s():
            return None
        return held[1]

    def put(self, key: Key, value: Value, kept_s: float | None = None) -> None:
        """Keep it from now on; what has expired goes, so keys that come and go leave nothing."""
        now_s = self._clock.now_s()
        self._held = {held: each for held, each in self._held.items() if each[0] > now_s}
        self._held[key] = now_s + (self._kept_s if kept_s is None else kept_s), value

    def drop(self, key: Key) -> None:
        """Ask again next time."""
        self._held.pop(key, None)
