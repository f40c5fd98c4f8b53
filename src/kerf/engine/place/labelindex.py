"""What may mean a pod, found by the pod's labels and not by asking each."""

from collections.abc import Iterable


class LabelIndex:
    """Things by labels that a pod must have one of: a pod finds those that may mean it."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._always: list[int] = []

    def add(self, number: int, hooks: Iterable[tuple[str, str]]) -> None:
        """Note it under each label; without any it may mean every pod."""
        found = False
        for hook in hooks:
            self._by_label.setdefault(hook, []).append(number)
            found = True
        if not found:
            self._always.append(number)

    def count(self, hooks: Iterable[tuple[str, str]]) -> int:
        """How many things are noted under these labels."""
        return sum(len(self._by_label.get(hook, ())) for hook in hooks)

    def copy(self) -> "LabelIndex":
        """The same; neither changes with the other."""
        other = LabelIndex()
        other._by_label = {label: list(numbers) for label, numbers in self._by_label.items()}
        other._always = list(self._always)
        return other

    def meeting(self, labels: Iterable[tuple[str, str]]) -> list[int]:
        """Those that may mean a pod with such labels, in the order in which they were noted."""
        return sorted({*self._always, *(each for label in labels for each in self._by_label.get(label, ()))})
