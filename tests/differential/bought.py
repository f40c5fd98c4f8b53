"""What Kerf plans for random workloads on an empty cluster, and what has come of the plan."""

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from kerf.cli.inputs.input import Source, read_input
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from tests.differential.workloads import ALL, Json, RandomWorkloads, random_workloads


def planned(workloads: RandomWorkloads) -> Decision:
    """As `kerf plan -f` decides, without its words."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workloads.json"
        path.write_text(json.dumps({"kind": "List", "items": [*workloads.objects, *workloads.pods]}), encoding="utf-8")
        read = read_input(Source(files=(str(path),)))
    return decide(World(read.snapshot, read.market), Options(with_bound=False))


def placed(decision: Decision) -> frozenset[str]:
    """The keys of the pods for which nodes are bought."""
    return frozenset(pod.pod for launch in decision.launches for pod in launch.pods)


def settled(seed: int, pods: int, kinds: frozenset[str] = ALL) -> tuple[RandomWorkloads, int]:
    """The workloads of a seed without pods that no node can be bought for, and how many nodes are planned.

    What a pod without a place lacks can change once nodes are there: until then no zone but those has any domain.
    """
    workloads = random_workloads(seed, pods, kinds)
    while True:
        decision = planned(workloads)
        found = placed(decision)
        kept = [pod for pod in workloads.pods if key_of(pod) in found]
        if len(kept) == len(workloads.pods):
            return workloads, len(decision.launches)
        workloads = replace(workloads, pods=kept)


def key_of(pod: Json) -> str:
    """`namespace/name`."""
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


@dataclass
class Course:
    """Pods that wait or are gone, and how many claims there have been."""

    wait: dict[str, str] = field(default_factory=dict)
    claims: int = 0

    def note(self, what: str, obj: Json) -> None:
        """An event of the API."""
        if obj["kind"] == "NodeClaim" and what == "ADDED":
            self.claims += 1
        if obj["kind"] == "Pod" and not obj["metadata"].get("ownerReferences"):
            said = [each.get("message", "") for each in obj.get("status", {}).get("conditions", ())]
            if what == "DELETED" or not obj["spec"].get("nodeName"):
                self.wait[key_of(obj)] = "; ".join(said) or what
            else:
                self.wait.pop(key_of(obj), None)
