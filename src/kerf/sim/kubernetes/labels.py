"""Which pods bear a label, so those that a selector takes are found among few of them."""

from kerf.sim.objects import Json, JsonList, key_of, labels_of

_Label = tuple[str, str, str]
"""(namespace, label, value)."""


class PodsByLabel:
    """The objects of one kind by their labels."""

    def __init__(self) -> None:
        self._bearing: dict[_Label, dict[str, Json]] = {}

    def replace(self, old: Json | None, new: Json | None) -> None:
        """Take note that `old` has become `new`; None for an object that was not, or is not any more."""
        _, namespace, name = key_of(new or old or {})
        for key, value in labels_of(old).items() if old is not None else ():
            bearing = self._bearing[namespace, key, value]
            del bearing[name]
            if not bearing:
                del self._bearing[namespace, key, value]
        for key, value in labels_of(new).items() if new is not None else ():
            self._bearing.setdefault((namespace, key, value), {})[name] = new or {}

    def bearing(self, namespace: str, key: str, value: str) -> JsonList:
        """The objects of a namespace that have that label, by name."""
        found = self._bearing.get((namespace, key, value), {})
        return [found[name] for name in sorted(found)]
