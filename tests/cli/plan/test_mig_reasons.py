"""Why no type of a pool shows its cards: the rule that holds for all, else each reason with a type that has it."""

import json

import pytest

from tests.cli.plan.test_found_configuration import Json, config_map, plan, pods, policy, pool
from tests.cli.program import Result, kerf

NAMED = "MIG configuration custom: "
UNEQUAL = f"{NAMED}with migStrategy single all instances of a node must have one profile, else no GPU is shown"


def cluster(*types: str, strategy: str = "mixed", **layout: int) -> list[Json]:
    """A pool of these types whose cards are cut into these instances (`g1_5` for `1g.5gb`), and the operator."""
    held = pool({"nvidia.com/mig.config": "custom"})
    held["spec"]["template"]["spec"]["requirements"][0]["values"] = list(types)
    operator = policy("")
    operator["spec"] = {"devicePlugin": {"enabled": True}, "mig": {"strategy": strategy}}
    devices = {f"{key[1:].replace('_', 'g.')}gb": count for key, count in layout.items()}
    entry = {"devices": "all", "mig-enabled": True, "mig-devices": devices}
    text = json.dumps({"version": "v1", "mig-configs": {"custom": [entry]}})
    return [held, operator, config_map("custom-mig-config", "gpu-operator", **{"config.yaml": text})]


def everywhere(objects: list[Json]) -> list[str]:
    """What the plan, doctor and lint print of it."""
    done = [plan(*objects, *pods(1, gpu=1)), plan(*objects, *pods(1, gpu=1), command="doctor"), lint(objects)]
    return [each.stdout for each in done]


def lint(objects: list[Json]) -> Result:
    """Lint of these objects."""
    return kerf("lint", "-", stdin="\n".join(f"---\n{json.dumps(each)}" for each in objects))


@pytest.mark.parametrize("types", [("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"), ("p5.48xlarge",)])
def test_a_rule_that_holds_for_all_models_comes_before_what_one_lacks(types: tuple[str, ...]) -> None:
    """Under `single` a node with several profiles shows no GPU, also of the model that has no such profile anyway."""
    for text in everywhere(cluster(*types, strategy="single", g1_10=2, g2_20=1, g3_40=1)):
        assert UNEQUAL in text
        assert "has no profile" not in text


def test_instances_that_no_plugin_shows_come_before_what_one_model_lacks() -> None:
    """With the strategy `none`, whatever the cards are."""
    for text in everywhere(cluster("p4d.24xlarge", "p5.48xlarge", strategy="none", g2_20=1)):
        assert "has no profile" not in text


def test_models_that_lack_different_things_are_each_said() -> None:
    """Each reason once, with a type that has it."""
    for text in everywhere(cluster("g5.xlarge", "g6.xlarge", "p4d.24xlarge", g2_20=1)):
        for reason in ("A10G has no MIG", "L4 has no MIG", "A100 has no profile 2g.20gb"):
            assert 1 == text.count(NAMED + reason)
        for name in ("g6.xlarge", "p4d.24xlarge"):
            assert name in text


def test_one_reason_of_several_types_is_said_once() -> None:
    """Sizes of one model."""
    objects = cluster("g5.xlarge", "g5.2xlarge", "g5.12xlarge", g2_20=1)

    assert 1 == plan(*objects, *pods(1, gpu=1)).stdout.count("A10G has no MIG")


def test_a_model_that_cannot_be_cut_beside_one_that_can_is_no_reason() -> None:
    """The pod is told what the other shows."""
    text = plan(*cluster("p4d.24xlarge", "p5.48xlarge", g2_20=1), *pods(1, gpu=1)).stdout

    assert "these GPUs are shown as nvidia.com/mig-2g.20gb" in text
    assert "has no profile" not in text
