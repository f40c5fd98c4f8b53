"""Karpenter's published behaviours, and Kerf's own, that one decision shows: each file beside this one is a cluster.

A file is what `kerf plan -f` reads, and its first comment states the behaviour. The `.out` file has the plan, the pods
of each node, and of each pod that is refused what `kerf explain` says. They come from one decision, without its bound
and in this process, so that a file costs tenths of a second. `# strategies: A B` plans it by each, and
`# catalog: FILE` sells what a file beside it lists. `KERF_UPDATE=1` writes the `.out` files; the diff is then part of
the review.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.cli.explain.pods import PodAnswers, explain_pods
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.plan.planning import assumed, decided
from kerf.cli.plan.text import plan_lines
from kerf.engine.options import Options
from kerf.model.plan import Plan
from kerf.model.policies import COST

HERE = Path(__file__).parent
BEHAVIOURS = sorted(HERE.glob("[0-9k]*.yaml"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda path: path.stem)
def test_a_behaviour_is_as_it_was(behaviour: Path) -> None:
    """Plan, pods by node and explanations are what the `.out` file holds: a changed line is a changed decision."""
    golden, printed = behaviour.with_suffix(".out"), "\n".join(shown(behaviour)) + "\n"

    if os.environ.get("KERF_UPDATE"):
        golden.write_text(printed, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == printed


def test_the_page_of_behaviours_names_every_file() -> None:
    """Once, in the table of `docs/concepts/karpenters-behaviours.md`."""
    page = (HERE.parents[1] / "docs/concepts/karpenters-behaviours.md").read_text(encoding="utf-8")

    assert [] == [path.stem for path in BEHAVIOURS if page.count(f"`{path.stem}`") != 1]


def shown(behaviour: Path) -> Iterator[str]:
    """The lines of the golden file."""
    read, strategies = read_of(behaviour), options_of(behaviour).get("strategies", COST).split()
    for strategy in strategies:
        if len(strategies) > 1:
            yield f"# strategy {strategy}"
        yield from _planned(read, strategy)


def read_of(behaviour: Path) -> ReadInput:
    """The cluster of a file, with what its `catalog` sells."""
    catalog = options_of(behaviour).get("catalog")
    return read_input(Source(files=(str(behaviour),), catalog=None if catalog is None else str(HERE / catalog)))


def options_of(behaviour: Path) -> dict[str, str]:
    """What comments with a colon ask of the test."""
    lines = behaviour.read_text(encoding="utf-8").splitlines()
    pairs = (line.removeprefix("# ").partition(": ") for line in lines if line.startswith("# "))
    return {key: value for key, _, value in pairs if key in ("strategies", "catalog")}


def _planned(read: ReadInput, strategy: str) -> Iterator[str]:
    decision, plan = decided(read, Options(strategy, with_bound=False))
    yield from plan_lines(plan, read.world, is_wide=True)
    yield from (f"note: {note}" for note in assumed(read))
    yield from _pods_by_node(plan)
    refused = [unplaced.pod for unplaced in plan.unplaced]
    for explanation in explain_pods(refused, PodAnswers(read, decision, plan)):
        yield from ("", *explanation.lines)


def _pods_by_node(plan: Plan) -> Iterator[str]:
    """Who is together: for each launch its pods, and for each node that is there those that it gets."""
    held = {
        f"{each.name}, {each.offering.instance_type}": [placed.pod for placed in each.pods] for each in plan.launches
    }
    for placed in plan.placements:
        held.setdefault(placed.node, []).append(placed.pod.pod)
    yield from ("", "NODE GETS PODS")
    yield from (f"  {node}: {', '.join(sorted(pods))}" for node, pods in held.items())
