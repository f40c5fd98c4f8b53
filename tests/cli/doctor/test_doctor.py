"""`kerf doctor`: each thing that Kerf needs, found or missing, on servers with canned answers and on files."""

from pathlib import Path
from typing import Any

import pytest

from kerf.cli.doctor.objects import checks_of
from kerf.cli.inputs.input import Source, read_input
from tests.cli.canned import kubeconfig, serving
from tests.cli.program import CLUSTER, ROOT, files, kerf

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
GROUPS = ("karpenter.sh", "karpenter.k8s.aws", "kerf.dev", "apps", "metrics.k8s.io")
KINDS = {
    "/apis/karpenter.sh/v1": ("nodepools", "nodeclaims"),
    "/apis/karpenter.sh/v1alpha1": ("nodeoverlays",),
    "/apis/kerf.dev/v1alpha1": ("capacitywindows",),
}


def healthy(**changed: tuple[int, object]) -> dict[str, tuple[int, object]]:
    """The answers of a server that has all kinds."""
    kinds = {path: (200, {"resources": [{"name": name} for name in names]}) for path, names in KINDS.items()}
    return {"/apis": (200, {"groups": [{"name": name} for name in GROUPS]}), **kinds, **changed}


def checked(folder: Path, answers: dict[str, tuple[int, object]], *flags: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and by check the last line that is not ok, or else the last."""
    with serving(answers) as server:
        done = kerf("doctor", "--kubeconfig", kubeconfig(folder, server), *flags, "-o", "json")
    found: dict[str, Any] = {}
    for item in done.data["items"]:
        if item["check"] not in found or item["status"] not in ("ok", "-"):
            found[item["check"]] = item
    return done.returncode, found


def daemons(*images: str) -> dict[str, tuple[int, object]]:
    """DaemonSets with these images, in a namespace of plugins."""
    items = [
        {
            "metadata": {"name": f"d{number}", "namespace": "kube-system", "uid": f"u{number}"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": i}]}},
            },
        }
        for number, i in enumerate(images)
    ]
    return {"/apis/apps/v1/daemonsets": (200, {"metadata": {"resourceVersion": "1"}, "items": items})}


def test_a_cluster_with_all_kinds_lacks_pools_and_metrics(tmp_path: Path) -> None:
    """What is there is ok; each line that is not says what to do."""
    code, found = checked(tmp_path, healthy())

    assert 3 == code
    assert ["ok"] * 6 == [
        found[name]["status"] for name in ("cluster", "kubernetes", "kinds", "cloud", "roles", "cards")
    ]
    assert ("check", "check") == (found["pools"]["status"], found["metrics"]["status"])
    assert "v1.36.3" == found["kubernetes"]["found"]
    assert all(item["hint"] for item in found.values() if item["status"] in ("check", "failed"))


@pytest.mark.parametrize(
    "changed, check, status, text",
    [
        ({"/version": (200, {"gitVersion": "v1.29.1"})}, "kubernetes", "check", "1.33"),
        ({"/version": (200, {"gitVersion": "v1.34.0"})}, "kubernetes", "ok", "--kubernetes-version=1.34"),
        ({"/version": (200, {"gitVersion": "new"})}, "kubernetes", "check", "v1.36.0"),
        ({"/apis/karpenter.sh/v1": (404, {})}, "kinds", "failed", "no NodePool and no NodeClaim"),
        ({"/apis/kerf.dev/v1alpha1": (404, {})}, "kinds", "check", "no CapacityWindow of kerf.dev/v1alpha1"),
        ({"/apis": (200, {"groups": [{"name": "karpenter.sh"}]})}, "cloud", "check", "no NodeClass kind"),
        ({REVIEWS: (201, {"status": {"allowed": False}})}, "roles", "failed", "you may not read "),
        (daemons("docker.io/projecthami/hami:v2.10.0"), "hami", "ok", "HAMi v2.10.0"),
        (daemons("projecthami/hami:v2.6.1"), "hami", "ok", "HAMi v2.6.1; Kerf follows 2.10"),
        (daemons("registry:5000/projecthami/hami:v3.0.0@sha256:00"), "hami", "check", "HAMi v3.0.0"),
        (daemons("nvcr.io/nvidia/k8s-device-plugin:v0.18.0"), "device plugin", "ok", "plugin v0.18.0"),
    ],
)
def test_each_thing_is_looked_at(
    changed: dict[str, tuple[int, object]], check: str, status: str, text: str, tmp_path: Path
) -> None:
    """The version, the kinds, the cloud, roles, plugins."""
    code, found = checked(tmp_path, healthy(**changed))

    assert (3, status) == (code, found[check]["status"])
    assert text in f"{found[check]['found']}: {found[check]['hint']}"


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """Without the kinds there is no plan, and nothing more to find."""
    _, found = checked(tmp_path, healthy(**{"/apis/karpenter.sh/v1": (404, {})}))

    assert ("-", False) == (found["objects"]["status"], "pools" in found)


def test_no_cluster_is_said_and_exits_with_four(tmp_path: Path) -> None:
    """Settings are checked all the same."""
    done = kerf("doctor", "--kubeconfig", kubeconfig(tmp_path, "http://127.0.0.1:1"), "-o", "json")

    assert 4 == done.returncode
    assert [("cluster", "failed"), ("settings", "ok")] == [(i["check"], i["status"]) for i in done.data["items"]]


def test_a_dump_is_checked_for_what_is_in_it() -> None:
    """And all is ok where it is."""
    done = kerf("doctor", *files(CLUSTER))

    assert (0, "all is ok") == (done.returncode, done.stdout.splitlines()[-1])
    assert "hami           ok      HAMi (its version is not in the input)" in done.stdout.splitlines()


def test_old_prices_are_shown() -> None:
    """Half a year after the day of the catalogue."""
    done = kerf("doctor", *files(CLUSTER), "--now", "2028-01-01T00:00:00Z", "-o", "json")
    catalogue = next(item for item in done.data["items"] if item["check"] == "catalogue")

    assert (3, "check", "--catalog aws:live has those of now") == (
        done.returncode,
        catalogue["status"],
        catalogue["hint"],
    )


def test_settings_are_those_of_kerf_run(tmp_path: Path) -> None:
    """Of the environment and of the file of --config."""
    config = tmp_path / "kerf.yaml"
    config.write_text("batch-idle: soon\n", encoding="utf-8")
    given = {"KERF_BATCH_MAX": "never"}
    done = kerf("doctor", *files(CLUSTER), "--config", str(config), "-o", "json", environment=given)
    lines = [item for item in done.data["items"] if item["check"] == "settings"]

    assert [("failed", True), ("failed", True)] == [
        (line["status"], text in line["found"])
        for line, text in zip(lines, ("--batch-max", "--batch-idle"), strict=True)
    ]


def test_objects_are_looked_at_in_an_order() -> None:
    """Nothing is missing in a dump, so there is no line for that."""
    read = read_input(Source(files=(str(ROOT / CLUSTER),)))
    names = [check.name for check in checks_of(read, ())]

    assert ["pools", "hami", "device plugin", "cards", "catalogue"] == names
