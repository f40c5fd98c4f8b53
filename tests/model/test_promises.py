"""What a claim promises is read as it was written, whatever a person has made of it since."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kerf
from kerf.model import promises
from kerf.model.gpu import DeviceShape, GPUModel, Profile
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import PLANNED_OFFERING, PLANNED_PODS, PLANNED_PRICE, PLANNED_ROUNDS, PREDICTED_DEVICES
from kerf.model.promises import (
    BrokenPromise,
    Promises,
    planned_price_micro,
    planned_type,
    pods_under,
    read,
    resources,
    with_price,
    written,
)
from kerf.testing.builders import a_claim, an_instance_type, cards
from kerf.testing.builders import resources as amounts

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=12)
SMALL = st.integers(0, 16)
PROFILES = st.builds(
    Profile, NAMES, SMALL, st.lists(SMALL, max_size=3).map(tuple), st.integers(0, 2**20), SMALL, SMALL, st.booleans()
)
PLAIN = st.builds(DeviceShape, st.builds(GPUModel, NAMES, registered_as=NAMES), st.integers(1, 2**20))
CUT = st.builds(
    replace, PLAIN, profiles=st.lists(PROFILES, min_size=1, max_size=3).map(tuple), pci_ids=st.tuples(NAMES)
)
PROMISES = st.builds(
    Promises,
    st.dictionaries(NAMES, st.lists(SMALL, max_size=3).map(tuple), max_size=4),
    st.none() | st.builds(OfferingKey, NAMES, NAMES, NAMES),
    st.lists(PLAIN | CUT, max_size=3).map(tuple),
)


@given(PROMISES)
def test_promises_are_read_as_they_were_written(promised: Promises) -> None:
    """Pods in the order of the plan, the offering, and each card with its MIG profiles."""
    assert promised == read(written(promised))
    assert list(promised.pods) == list(read(written(promised)).pods)


def test_the_annotations_have_the_form_that_the_reference_states() -> None:
    """Other programs read them too, so their bytes stay."""
    promised = Promises({"a/b": (0, 1)}, OfferingKey("g5.xlarge", "z", "spot"), cards(1))

    assert {
        "kerf.dev/planned-pods": '{"a/b": [0, 1]}',
        "kerf.dev/planned-offering": "g5.xlarge/z/spot",
        "kerf.dev/predicted-devices": '[{"model": "A10G", "registeredAs": "NVIDIA A10G", "memoryMiB": 22888}]',
    } == written(promised)
    assert {"kerf.dev/planned-pods": "{}"} == written(Promises())


ANYTHING = st.text(max_size=30) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.text(max_size=5), held, max_size=3),
).map(json.dumps)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_whatever_a_person_writes_is_read_or_named(pods: str, offering: str, devices: str) -> None:
    """The rest is read as if the broken annotation were not there."""
    texts = {PLANNED_PODS: pods, PLANNED_OFFERING: offering, PREDICTED_DEVICES: devices}

    found = read(texts)

    names_of_broken = [problem.annotation for problem in found.broken]
    assert replace(found, broken=()) == read({name: texts[name] for name in texts if name not in names_of_broken})


@pytest.mark.parametrize("text", ["{", '["a"]', '{"a": "x"}', '{"a": "01"}', '{"a": [-1]}', "[" * 5000, "9" * 5000])
def test_broken_pods_are_none_and_named(text: str) -> None:
    """A claim without them takes pods as they come."""
    found = read({PLANNED_PODS: text})

    assert ({}, text[:80]) == (found.pods, found.broken[0].got)


@pytest.mark.parametrize("text", ["{", "[1]", '{"model": 1}', '[{"model": "T4"}]', '[{"model": "T4", "memoryMiB": 0}]'])
def test_broken_cards_are_none_and_named(text: str) -> None:
    """A person edited the annotation: planning goes on without cards."""
    found = read({PREDICTED_DEVICES: text})

    assert ((), [PREDICTED_DEVICES]) == (found.devices, [each.annotation for each in found.broken])


def test_each_broken_annotation_is_named_with_the_form_it_must_have() -> None:
    """So a person who edited it finds the place."""
    broken = read({PLANNED_OFFERING: "m5.large", PREDICTED_DEVICES: "[1]"}).broken

    assert BrokenPromise(PLANNED_OFFERING, "type/zone/capacity-type", "m5.large") == broken[0]
    assert (PREDICTED_DEVICES, "[1]") == (broken[1].annotation, broken[1].got)


def test_an_empty_annotation_promises_nothing_and_is_not_broken() -> None:
    """As if it were absent."""
    assert Promises() == read({}) == read({PLANNED_PODS: "", PLANNED_OFFERING: "", PREDICTED_DEVICES: ""})


def test_pods_are_found_without_parsing_every_claim() -> None:
    """All pods under a prefix; text without it is not parsed."""
    held = written(Promises({"a/b": (), "cronjob:a/run-0": (1,)}))

    assert ("cronjob:a/run-0",) == pods_under(held, "cronjob:")
    assert () == pods_under(held, "x") == pods_under({PLANNED_PODS: "cronjob:"}, "cronjob:")


def test_the_type_is_that_of_the_launch_before_that_of_the_plan() -> None:
    """A plan whose zone was broken still says the type, so limits go on counting it."""
    planned = {PLANNED_OFFERING: "m5.large/z/spot"}

    assert "m5.large" == planned_type(a_claim(instance_type="", annotations=planned))
    assert "m5.large" == planned_type(a_claim(instance_type="", annotations={PLANNED_OFFERING: "m5.large"}))
    assert "g5.xlarge" == planned_type(a_claim(instance_type="g5.xlarge", annotations=planned))


@given(st.integers(0, 10**15 - 1))
def test_a_price_is_read_as_it_was_written(price_micro: int) -> None:
    """To the millionth."""
    assert price_micro == planned_price_micro(a_claim(annotations=with_price(price_micro)))


@given(
    st.text() | st.floats().map(str) | st.sampled_from(["", "-1.00", "1", "1.0000001", "0x1", "\u0661.\u0660\u0660"])
)
def test_a_price_that_a_person_wrote_is_one_or_none(text: str) -> None:
    """Never an error, and never less than nothing."""
    found = planned_price_micro(a_claim(annotations={PLANNED_PRICE: text}))

    assert found is None or (found >= 0 and found == round(float(text) * 10**6))


def test_resources_are_as_launched_then_as_the_type_has_them() -> None:
    """What only the requests name is promised too."""
    kind = an_instance_type("m5.large", cpu=2)
    planned = a_claim(requests=amounts(cpu=1, licences=3))
    launched = replace(planned, allocatable=amounts(cpu=7))

    assert (1000, 3) == (resources(planned, None)["cpu"], resources(planned, None)["licences"])
    assert (kind.allocatable["cpu"], 7000) == (resources(planned, kind)["cpu"], resources(launched, kind)["cpu"])


def test_no_other_module_reads_or_writes_the_annotations() -> None:
    """Their names stand in the model of the claim, and their form in one module."""
    allowed = {"model/nodeclaim.py", "model/promises.py"}
    root, spelled = Path(kerf.__file__).parent, {PLANNED_PODS, PLANNED_OFFERING, PLANNED_PRICE, PREDICTED_DEVICES}
    constants = {"PLANNED_PODS", "PLANNED_OFFERING", "PLANNED_PRICE", "PREDICTED_DEVICES"}

    def is_named(node: ast.AST) -> bool:
        is_constant = isinstance(node, ast.Name) and node.id in constants
        return is_constant or (isinstance(node, ast.Constant) and node.value in spelled)

    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(map(is_named, ast.walk(ast.parse(path.read_text()))))
    }
    assert found <= allowed
    assert promises.__name__.endswith("promises")


@pytest.mark.parametrize("text", ["[]", "1", '{"a/b": "1"}', '{"a/b": -1}', '{"a/b": [1]}', "{"])
def test_rounds_that_a_person_has_broken_are_promised_no_more(text: str) -> None:
    """The pods still are; the pod then comes in the order of the queue."""
    found = read({**written(Promises({"a/b": ()}, rounds={"a/b": 1})), PLANNED_ROUNDS: text})

    assert ({"a/b": ()}, {}, [PLANNED_ROUNDS]) == (found.pods, found.rounds, [e.annotation for e in found.broken])
