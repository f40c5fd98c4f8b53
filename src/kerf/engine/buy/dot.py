"""Products of arrays, the same on every machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LETTERS = {(1, 1): "i,i", (1, 2): "i,ij", (2, 1): "ij,j->i", (2, 2): "ij,jk->ik"}


def dot(left: NDArray[Any], right: NDArray[Any]) -> Any:
    """What `left @ right` is, for one or two dimensions each; of floats every sum is taken in one order.

    `@` asks a BLAS library for products of floats, and the order of its sums depends on the processor and on how many
    of them there are. Sums that differ in their last digit end in other plans, and one snapshot has one plan. For
    whole numbers it asks no library. Costs as many steps as the product has; of large floats some three times `@`.
    """
    if left.dtype.kind != "f" and right.dtype.kind != "f":
        return left @ right
    return np.einsum(_LETTERS[left.ndim, right.ndim], left, right)
