"""Each import contract of `.importlinter` fails when it is broken, and alone.

A breach is one import more in the graph of the real package, so that nothing has to be written or imported.
"""

import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from copy import deepcopy
from functools import cache
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import Contract

ROOT = Path(__file__).parents[1]
_FILE = ROOT / ".importlinter"
_TYPES: dict[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
}
BREACHES = (
    ("rooms", "kerf.sharing.hami.family", "kerf.manifests.metadata"),
    ("rooms", "kerf.lint.linter", "kerf.controllers.nodeclaim.stages"),
    ("pure", "kerf.engine.place.fit", "time"),
    ("pure", "kerf.engine.study.calendar", "random"),
    ("pure", "kerf.sharing.hami.family", "logging"),
    ("pure", "kerf.sharing.hami.config", "os"),
    ("pure", "kerf.model.schedules", "asyncio"),
    ("pure", "kerf.model.times", "structlog"),
    ("pure", "kerf.state.cluster", "kerf.config"),
    ("pure", "kerf.errors", "sys"),
    ("outside", "kerf.controllers.market", "kerf.clouds.fake"),
    ("outside", "kerf.controllers.usage", "kerf.kube.usage"),
    ("outside", "kerf.kube.writer", "kerf.controllers.actuator"),
    ("outside", "kerf.clouds.kwok.cloud", "kerf.kube.client"),
    ("stand-ins", "kerf.sim.course.scenario", "kerf.testing.builders"),
    ("stand-ins", "kerf.testing.conformance", "kerf.sim.clock"),
    ("inputs", "kerf.manifests.read", "kerf.catalog.aws"),
    ("edges", "kerf.cloudprovider", "kerf.telemetry"),
    ("state", "kerf.state.cluster", "kerf.engine.place.fit"),
    ("values", "kerf.manifests.decode", "kerf.engine.pacing"),
    ("values", "kerf.catalog.mig", "kerf.sharing.nvidia.mig"),
    ("lint", "kerf.lint.linter", "pathlib"),
    ("controllers", "kerf.controllers.usage", "kerf.manifests.usage"),
    ("kube", "kerf.kube.usage", "kerf.engine.study.usage.history"),
    ("clouds", "kerf.clouds.kwok.cloud", "kerf.engine.place.fit"),
    ("simulator", "kerf.sim.kubernetes.api", "kerf.kube.objects"),
    ("testing", "kerf.testing.builders", "kerf.engine.place.fit"),
    ("explain", "kerf.engine.gangs", "kerf.engine.explain.causes"),
    ("explain", "kerf.engine.headroom.windows.admission", "kerf.engine.explain.limits"),
    ("engine", "kerf.engine.place.trial", "kerf.engine.supply.offered"),
    ("engine", "kerf.engine.place.fit", "kerf.engine.buy.limits"),
    ("engine", "kerf.engine.place.yielding", "kerf.engine.headroom.windows.admission"),
    ("engine", "kerf.engine.supply.caps", "kerf.engine.buy.floors"),
    ("engine", "kerf.engine.buy.packing", "kerf.engine.headroom.bookings"),
    ("engine", "kerf.engine.decide", "kerf.engine.disruption.budgets"),
    ("study", "kerf.engine.decide", "kerf.engine.study.calendar"),
    ("study", "kerf.engine.place.trial", "kerf.engine.study.usage.history"),
    ("study", "kerf.engine.disruption.keeping", "kerf.engine.study.usage.overload"),
    ("rooms", "kerf.engine.study.calendar", "kerf.verify.check"),
    ("pure", "kerf.verify.nodes", "logging"),
    ("verify", "kerf.verify.cards", "kerf.sharing.hami.fit"),
    ("verify", "kerf.verify.cards", "kerf.sharing.nvidia.mig"),
    ("verify", "kerf.verify.nodes", "kerf.engine.place.fit"),
    ("verify", "kerf.verify.offers", "kerf.engine.buy.limits"),
    ("verify", "kerf.verify.going", "kerf.engine.disruption.budgets"),
    ("verify", "kerf.verify.passing", "kerf.engine.decide"),
    ("circles", "kerf.verify.after", "kerf.verify.check"),
    ("disruption", "kerf.engine.disruption.pricecaps", "kerf.engine.disruption.emptiness"),
    ("disruption", "kerf.engine.disruption.emptiness", "kerf.engine.disruption.consolidation"),
    ("circles", "kerf.cli.plan.text", "kerf.cli.explain.command"),
    ("circles", "kerf.cli.run.replica", "kerf.cli.run.command"),
    ("circles", "kerf.sim.hami.verdicts", "kerf.sim.kubernetes.api"),
    ("circles", "kerf.engine.buy.filling", "kerf.engine.buy.bound"),
)
"""(contract, importer, what it imports): at least one of each contract."""


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("kerf", include_external_packages=True, cache_dir=None)


@cache
def _contracts() -> dict[str, Contract]:
    """The contracts by the name of their section."""
    read = read_configuration(str(_FILE))
    return {
        options["id"]: _TYPES[options["type"]](options["name"], read["session_options"], options)
        for options in read["contracts_options"]
    }


def _broken(graph: grimp.ImportGraph) -> list[str]:
    # A check takes the imports that it ignores out of its graph.
    return [name for name, held in _contracts().items() if not held.check(deepcopy(graph), verbose=False).kept]


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def test_the_package_keeps_every_contract() -> None:
    """Without a breach no contract is broken, so a breach alone breaks one."""
    assert [] == _broken(_graph())


@pytest.mark.parametrize("contract, importer, imported", BREACHES)
def test_a_breach_breaks_its_contract_alone(contract: str, importer: str, imported: str) -> None:
    """One import that a contract forbids fails that contract and no other, so its name says what is wrong."""
    graph = deepcopy(_graph())
    assert importer in graph.modules
    assert imported in graph.modules or not imported.startswith("kerf")
    graph.add_module(imported, is_squashed=not imported.startswith("kerf"))
    graph.add_import(importer=importer, imported=imported)

    assert [contract] == _broken(graph)


def test_every_contract_is_broken_once() -> None:
    """A contract that no breach is known of may be one that nothing breaks."""
    parser = ConfigParser()
    parser.read(_FILE, encoding="utf-8")
    sections = {name.rpartition(":")[2] for name in parser.sections() if name.startswith("importlinter:contract:")}

    assert sections == {contract for contract, _, _ in BREACHES}


@pytest.mark.parametrize("contract, room", [("rooms", "kerf.attic"), ("engine", "kerf.engine.attic")])
def test_a_room_without_a_place_in_the_order_fails(contract: str, room: str) -> None:
    """A new room at the top, or in the engine, is a decision: it must get a line in the order of the rooms."""
    graph = deepcopy(_graph())
    graph.add_module(room)

    assert [contract] == _broken(graph)


def test_a_clock_that_no_import_shows_is_refused() -> None:
    """`datetime` is for arithmetic; its clock is refused where it is called."""
    code = "import datetime\n\nNOW = datetime.datetime.now(datetime.UTC)\n"
    arguments = ["check", "--no-cache", "--output-format=concise", "--stdin-filename=src/kerf/engine/place/fit.py", "-"]

    done = subprocess.run(
        [_program("ruff"), *arguments], cwd=ROOT, input=code, capture_output=True, text=True, check=False
    )

    assert (1, True) == (done.returncode, "TID251" in done.stdout)


def test_the_check_fails_with_the_name_of_the_contract(tmp_path: Path) -> None:
    """What `make check` runs ends with 1 and shows the contract and the line that breaks it."""
    shutil.copytree(ROOT / "src" / "kerf", tmp_path / "kerf", ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(_FILE, tmp_path)
    with (tmp_path / "kerf" / "engine" / "place" / "fit.py").open("a", encoding="utf-8") as code:
        code.write("import time\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    done = subprocess.run(
        [_program("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (1, True) == (done.returncode, "kerf.engine.place.fit -> time" in done.stdout)
