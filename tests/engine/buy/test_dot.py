"""Products of arrays: what `@` gives, and one plan on every processor."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerf
from kerf.engine.buy.dot import dot

PACKAGE = Path(kerf.__file__).parent
PRODUCTS = {"dot", "inner", "linalg", "matmul", "matvec", "tensordot", "vdot", "vecdot", "vecmat"}
"""Names in numpy that ask a BLAS library."""
SEARCHES = """
import json
from random import Random
from kerf.cli.plan.json import plan_object
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type
types = [an_instance_type(f"c{cpu}", cpu=cpu, memory=f"{cpu * 4}Gi", price=price)
         for cpu, price in ((16, "0.70"), (4, "0.20"))]
for seed, count in ((1, 40), (2, 60), (5, 42), (9, 44), (11, 38)):
    chance = Random(seed)
    sizes = [(chance.randint(1, 20), chance.randint(1, 40)) for _ in range(count)]
    pods = [a_pod(f"p{at}", cpu=f"{cpu * 100}m", memory=f"{memory * 100}Mi") for at, (cpu, memory) in enumerate(sizes)]
    snapshot = a_snapshot(pods=pods, pools=[a_pool()])
    world = World(snapshot, a_market(*types))
    print(json.dumps(plan_object(plan(world.snapshot, world.market, Options(budget="1s")), world)))
"""


@pytest.mark.parametrize(
    "left, right", [((7,), (7,)), ((7,), (7, 3)), ((5, 7), (7,)), ((5, 7), (7, 3)), ((0, 7), (7,))]
)
@pytest.mark.parametrize("of", [np.float64, np.int64])
def test_a_product_is_what_the_operator_gives(left: tuple[int, ...], right: tuple[int, ...], of: type) -> None:
    """For one or two dimensions on either side, and of the same type."""
    chance = np.random.default_rng(1)
    these: NDArray[Any] = chance.integers(-9, 9, left).astype(of)
    those: NDArray[Any] = chance.integers(-9, 9, right).astype(of)

    assert np.array_equal(dot(these, those), these @ those)
    assert np.asarray(dot(these, those)).dtype == of


def test_a_plan_does_not_depend_on_the_processor() -> None:
    """Not on the kernels that a BLAS library has for it, nor on the instructions that numpy uses of it.

    Only an older processor can be stood in for: a newer one has instructions that this one may lack.
    """
    processors = [
        {},
        {"OPENBLAS_CORETYPE": "Nehalem"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    ]

    assert len({_printed(each) for each in processors}) == 1


def _printed(environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-c", SEARCHES]
    return subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True).stdout


def test_no_other_module_multiplies_matrices() -> None:
    """With floats `@` would be another product on another processor."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.MatMult) or getattr(node, "attr", "") in PRODUCTS
    }

    assert found == {"engine/buy/dot.py"}
