"""The scenario around a trace: what the command line says goes before what a scenario says, and neither is needed."""

from dataclasses import dataclass, replace

from kerf.catalog.select import load_market
from kerf.errors import InputError
from kerf.model.times import duration_text, instant_s
from kerf.sim.course.scenario import DEFAULT_START, CloudSettings, Scenario
from kerf.sim.objects import Json
from kerf.sim.traces.replay import Replay, TraceSource, read_replay

_REST_S = 3600
"""How long a replay without a duration goes on after the last pod has come."""


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """What the command line says; None leaves it to the scenario."""

    path: str | None = None
    format: str | None = None
    copies: int | None = None
    skip_s: int | None = None
    span_s: int | None = None
    longest_s: int | None = None
    seed: int | None = None
    duration_s: int | None = None
    bound_every_s: int | None = None


def with_flags(scenario: Scenario | None, flags: TraceFlags) -> Scenario:
    """The scenario as it is to be run. Raises InputError, also where flags belong to a trace and none is there.

    Without a scenario there are two pools, of GPUs that HAMi shares and of machines without, on demand in `us-east-1`.
    """
    held = scenario.replay if scenario is not None else None
    of_trace = {
        "path": flags.path,
        "format": flags.format,
        "copies": flags.copies,
        "skip_s": flags.skip_s,
        "span_s": flags.span_s,
        "longest_s": flags.longest_s,
    }
    given = {name: value for name, value in of_trace.items() if value is not None}
    if held is None and flags.path is None:
        if given or flags.bound_every_s is not None:
            raise InputError("--trace FILE.csv: expected with the other flags of a trace, or `trace` in the scenario")
        assert scenario is not None
        return _timed(scenario, flags)
    source = replace(held.source, **given) if held is not None else TraceSource(**given)  # type: ignore[arg-type]
    replay = held if held is not None and held.source == source else read_replay(source)
    found = scenario or _around(replay)
    every_s = flags.bound_every_s
    if every_s is None:
        every_s = found.bound_every_s if held is not None else None
    return _timed(replace(found, replay=replay, bound_every_s=every_s), flags)


def _timed(scenario: Scenario, flags: TraceFlags) -> Scenario:
    seed = scenario.seed if flags.seed is None else flags.seed
    duration_s = scenario.duration_s if flags.duration_s is None else flags.duration_s
    late = [*(e.at_s for e in scenario.expectations), *(step.at_s for step in scenario.timeline)]
    if any(at_s > duration_s for at_s in late):
        text = f"expected at least {duration_text(max(late))}, when the scenario has its last step or expectation"
        raise InputError(f"--duration {duration_text(duration_s)}: {text}")
    return replace(scenario, seed=seed, duration_s=duration_s)


def _around(replay: Replay) -> Scenario:
    return Scenario(
        name="trace",
        start_s=instant_s(DEFAULT_START),
        duration_s=replay.span_s + _REST_S,
        seed=0,
        cloud=CloudSettings("aws"),
        market=load_market(None, "aws"),
        objects=(_pool("cpu", _MACHINES), _pool("gpu", _CARDS, {"gpu": "on"})),
    )


_ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
_AMD64 = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
_CARDS = {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]}
_MACHINES = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["c7i", "m7i", "r7i"]}


def _pool(name: str, machines: Json, labels: Json | None = None) -> Json:
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [_ON_DEMAND, _AMD64, machines],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"},
            "template": {"metadata": {"labels": labels or {}}, "spec": spec},
        },
    }
