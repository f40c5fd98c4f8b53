"""A dump decides as its input does: what is cut away is nothing that any decoder reads."""

import io
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from kerf.cli.dumping import Cutter, objects_of, write_dump
from kerf.errors import InputError
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded, Workload
from kerf.manifests.read import parse
from kerf.model.cronjobs import CronJob
from kerf.model.dump import ClusterDump
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodTemplate
from kerf.model.snapshot import DaemonSet
from kerf.model.windows import CapacityWindow, WarmCapacity
from tests.property.test_manifests import EXAMPLES, mutated, often

NOW_S = 1_800_000_000.0
RETIRED = ("provisioner", "values")
"""Examples that are for `kerf migrate`."""
WORLDS = [path for path in EXAMPLES if path.stem not in RETIRED]
SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.yaml"))


HOLDING_PODS = Decoded | Workload | CronJob | DaemonSet | PodTemplate | CapacityWindow | WarmCapacity


def placeless(value: Any) -> Any:
    """The same, without where each pod stood in its file."""
    if isinstance(value, tuple):
        return tuple(map(placeless, value))
    if isinstance(value, Pod):
        return replace(value, source="")
    if not isinstance(value, HOLDING_PODS):
        return value
    return replace(value, **{each.name: placeless(getattr(value, each.name)) for each in fields(value)})


def without_remarks(decoded: Decoded) -> Decoded:
    """What was read, without what was said of it, the header, and objects of no form, which a dump leaves out."""
    workloads = tuple(each for each in decoded.workloads if each.template.spec.containers)
    pods = tuple(each for each in decoded.pods if each.spec.containers)
    bare = replace(decoded, pods=pods, workloads=workloads, skipped_kinds={}, warnings=(), left_out=())
    bare = replace(bare, dump=None, newest_s=None)
    named: Decoded = placeless(bare)
    return named


def again(text: str, output: str) -> tuple[Decoded, Decoded]:
    """What a text decodes to, and what its dump does."""
    documents = parse(text)
    first = decode(documents, NOW_S)
    out = io.StringIO()
    namespaces = {each.namespace for each in first.config_maps}
    objects = objects_of(documents, first, namespaces, Cutter(False))
    write_dump(out, output, ClusterDump(taken_at_s=NOW_S), objects)
    return without_remarks(first), without_remarks(decode(parse(out.getvalue())))


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("path", [*WORLDS, *SCENARIOS], ids=lambda path: path.stem)
def test_a_dump_of_an_example_decodes_to_the_same(path: Path, output: str) -> None:
    """Every example and every world of a scenario, in both forms."""
    first, second = again(path.read_text(), output)

    assert first == second


@often
@given(mutated())
def test_a_dump_of_a_mutated_example_decodes_to_the_same(value: Any) -> None:
    """Fields removed, renamed or replaced by anything that can still be read."""
    text = yaml.safe_dump(value)
    try:
        decode(parse(text), NOW_S)
    except InputError:
        return
    first, second = again(text, "json")

    assert first == second
