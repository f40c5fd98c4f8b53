"""Pods on the way to a node to be bought, each in the strictest form of its preferences that gets one.

Karpenter relaxes a pod by one preference whenever neither a node nor a type takes it. Here all pods are bought for at
once, and those that got nothing are relaxed and bought for again, together with the others: a relaxed pod then fills up
a node that is bought anyway. What no type takes is dropped before anything is bought.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from kerf.engine.place.preferences import Form, Forms, formed
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Holding
from kerf.model.pods import Pod
from kerf.model.preferences import Preference

_MOST_ROUNDS = 12
"""So many times pods are relaxed by one preference; what is left then is bought for without any."""


@dataclass
class _Part:
    """Pods of one shape in one of its forms."""

    shape: Shape
    forms: tuple[Form, ...]
    number: int
    pods: tuple[Pod, ...]

    @property
    def form(self) -> Form:
        return self.forms[self.number]

    @property
    def formed(self) -> Shape:
        if self.form.spec is self.shape.spec and self.pods is self.shape.pods:
            return self.shape
        return formed(Shape(self.pods), self.form)


class Relaxing:
    """Shapes in the forms in which they are bought for. `rows` are those of `holding` that are on offer."""

    def __init__(self, shapes: Sequence[Shape], forms: Forms, holding: Holding, rows: Amounts) -> None:
        self._rounds = 0
        self._parts = [_Part(shape, forms.of(shape.spec), 0, shape.pods) for shape in shapes]
        self._holding, self._rows = holding, rows
        for part in self._parts:
            part.number = self._taken(part, 0)

    def _taken(self, part: _Part, first: int) -> int:
        """The first form from this one on that some type takes; the last where none does."""
        last = len(part.forms) - 1
        for number in range(first, last):
            shape = formed(Shape(part.pods), part.forms[number])
            if self._holding.alone(shape, self._holding.kind(shape))[self._rows].any():
                return number
        return last

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What is bought for, in the order of the queue; of one shape the strictest first."""
        return tuple(part.formed for part in self._parts)

    def relax(self, unserved: Container[str]) -> bool:
        """Drop one preference more of these pods, by their keys; whether any had one left."""
        self._rounds += 1
        is_relaxed, parts = False, list[_Part]()
        for part in self._parts:
            last = len(part.forms) - 1
            left = tuple(pod for pod in part.pods if pod.key in unserved) if part.number < last else ()
            if not left:
                parts.append(part)
                continue
            is_relaxed = True
            if len(left) < len(part.pods):
                served = tuple(pod for pod in part.pods if pod.key not in unserved)
                parts.append(_Part(part.shape, part.forms, part.number, served))
            number = last if self._rounds >= _MOST_ROUNDS else self._taken(part, part.number + 1)
            parts.append(_Part(part.shape, part.forms, number, left))
        self._parts = _joined(parts)
        return is_relaxed

    def dropped(self) -> Mapping[str, tuple[Preference, ...]]:
        """By key of a pod the preferences that it has lost; pods that have all are left out."""
        return {pod.key: part.form.dropped for part in self._parts if part.form.dropped for pod in part.pods}


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """The same with pods of one shape that have come to the same form together again, in their order."""
    found: dict[tuple[int, int], _Part] = {}
    for part in parts:
        key = id(part.shape), part.number
        if key in found:
            mine = {pod.key for each in (found[key], part) for pod in each.pods}
            pods = tuple(pod for pod in part.shape.pods if pod.key in mine)
            found[key] = _Part(part.shape, part.forms, part.number, pods)
        else:
            found[key] = part
    return list(found.values())
