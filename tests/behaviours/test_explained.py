"""What `kerf explain` says of each pod that a behaviour leaves without a place, and what its patch does."""

import json
from pathlib import Path

import pytest

from kerf.cli.inputs.input import Source, read_input
from kerf.cli.plan.planning import decided
from kerf.engine.options import Options
from kerf.manifests.read import parse
from kerf.model.plan import Plan, Stage
from kerf.model.policies import COST
from tests.behaviours.test_behaviours import BEHAVIOURS, HERE, options_of
from tests.patches import Object, patched

OF_POD = frozenset({Stage.INVALID, Stage.HELD, Stage.SCHEDULER, Stage.VOLUMES, Stage.DEVICES})
"""Where a pod may be refused that no node comes near to taking."""


def plan_of(objects: list[Object], behaviour: Path, folder: Path) -> Plan:
    """The plan for the manifests, with what the behaviour's own file sells."""
    catalog, file = options_of(behaviour).get("catalog"), folder / "input.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
    source = Source(files=(str(file),), catalog=None if catalog is None else str(HERE / catalog))
    return decided(read_input(source), Options(COST, with_bound=False))[1]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda path: path.stem)
def test_a_refused_pod_has_a_reason_and_a_patch_that_helps(behaviour: Path, tmp_path: Path) -> None:
    """Stage, reason and nearest miss of each; the patches, applied to the manifests, give it a place."""
    objects = [document.value() for document in parse(behaviour.read_text(encoding="utf-8"))]
    plan = plan_of(objects, behaviour, tmp_path)

    for each in plan.unplaced:
        assert each.reason
        assert each.misfits or each.stage in OF_POD
        if each.patches and each.pod in {key(found) for found in objects}:
            left = plan_of(patched(objects, *each.patches), behaviour, tmp_path).unplaced
            assert each.pod not in {other.pod for other in left}, each.hint


def key(found: Object) -> str:
    """Of a pod that a file has as it is."""
    return f"{found['metadata'].get('namespace', 'default')}/{found['metadata']['name']}"
