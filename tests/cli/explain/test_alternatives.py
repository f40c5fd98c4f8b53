"""`kerf explain node` of a node that stays for its pods' sake: what could be bought for them, and why it is not."""

from pathlib import Path

import yaml

from tests.cli.program import ROOT, kerf

EXAMPLE = ROOT / "examples" / "nodes-over-time" / "cluster.yaml"
NOW = ("--now", "2026-01-05T08:00:00Z")


def test_the_nearest_alternative_is_named(tmp_path: Path) -> None:
    """The node is of the smallest type that its pod fits on, and nothing else has room."""
    alone = [
        each
        for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8"))
        if each["metadata"]["name"] in ("web", "full") or (each.get("spec") or {}).get("nodeName") == "full"
    ]
    (tmp_path / "alone.yaml").write_text(yaml.safe_dump_all(alone), encoding="utf-8")

    asked = ("explain", "node/full", "-f", str(tmp_path / "alone.yaml"), *NOW)
    why = "1 x m5.xlarge for 0.192 instead of 0.192 USD/h; it costs no less"
    assert f"  nearest alternative: {why}" in kerf(*asked).stdout.splitlines()
    (data,) = kerf(*asked, "-o", "json").data["items"]
    assert {"instanceTypes": {"m5.xlarge": 1}, "nodes": [], "perHour": 0.192, "why": why} == data["alternative"]


def test_a_node_that_another_thing_keeps_has_none() -> None:
    """What keeps it stands in the way of any."""
    assert None is kerf("explain", "node/kept", "-f", str(EXAMPLE), *NOW, "-o", "json").data["items"][0]["alternative"]
