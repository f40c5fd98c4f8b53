"""Products of arrays, whose sums are taken in one order whatever the processor."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LETTERS = {(1, 1): "i,i", (1, 2): "i,ij", (2, 1): "ij,j->i", (2, 2): "ij,jk->ik"}


def dot(left: NDArray[Any], right: NDArray[Any]) -> Any:
    """What `left @ right` is, for one or two dimensions each; of floats every sum is taken in one order.

    For floats `@` asks a BLAS library, and there the order of sums depends on the processor and on the number of its
    cores. Sums that differ in their last digit can end in different plans. For whole numbers `@` asks no library.
    Costs twice what `@` does for a vector, and up to twelve times that for two matrices of thousands of numbers.
    """
    if left.dtype.kind != "f" and right.dtype.kind != "f":
        return left @ right
    return np.einsum(_LETTERS[left.ndim, right.ndim], left, right)
