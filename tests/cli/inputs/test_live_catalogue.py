"""`--catalog aws:live`: what AWS sells just now, by the credentials of the environment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerf.cli import exits
from kerf.cli.inputs import catalogue
from tests.awscloud import REGION
from tests.cli.program import POOL_000, WORKLOAD_000, files, kerf

INPUT = (*files(POOL_000, WORKLOAD_000), "--catalog")
SIGNED = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": ""}


@pytest.fixture(autouse=True)
def _not_asked_yet() -> Iterator[None]:
    """Each command is a process of its own."""
    yield
    catalogue._asked.cache_clear()


@pytest.fixture
def url(_proxy: Any) -> str:
    """Where moto answers."""
    proxy, _ = _proxy
    return str(proxy.url)


def test_a_plan_has_what_the_region_sells(url: str) -> None:
    """Once by its name and once by the environment; moto has no prices, which is said."""
    asked = {**SIGNED, "AWS_ENDPOINT_URL": url}
    named = kerf("plan", *INPUT, f"aws:live:{REGION}", "-o", "json", environment=asked)
    catalogue._asked.cache_clear()
    meant = kerf("plan", *INPUT, "aws:live", "-o", "json", environment={**asked, "AWS_REGION": REGION})

    assert (named.returncode, named.stdout) == (meant.returncode, meant.stdout)
    assert named.data["launches"]
    assert "note: on-demand prices are not live (the price list has nothing for us-east-1)" in named.stderr
    assert "instance types are not live" not in named.stderr


def test_a_dump_has_no_live_prices_and_never_asks_for_them(url: str, tmp_path: Path) -> None:
    """Whoever sent the dump must not decide what is asked with the credentials of whoever reads it."""
    asked, dump = {**SIGNED, "AWS_ENDPOINT_URL": url}, tmp_path / "dump.json"
    taken = kerf("snapshot", *INPUT, f"aws:live:{REGION}", environment=asked)
    dump.write_text(taken.stdout, encoding="utf-8")
    catalogue._asked.cache_clear()
    again = kerf("plan", "--replay", str(dump), environment=asked)

    assert f"note: the prices of aws:live:{REGION} are not in the dump" in taken.stderr
    assert exits.USAGE == again.returncode
    assert "(hint: --catalog aws, or --catalog aws:live for those of now)" in again.stderr
    assert 3 == kerf("plan", "--replay", str(dump), "--catalog", "aws", environment=asked).returncode


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        (("aws:live",), {"AWS_DEFAULT_REGION": ""}, "expected a region: aws:live:REGION, --region, or AWS_REGION"),
        (("aws:live:eu-west-1", "--region", "us-east-1"), {}, "expected one region, got two"),
        (("aws:eu-west-1",), {}, "(hint: --catalog aws:live:eu-west-1 asks AWS)"),
    ],
)
def test_a_region_must_be_known_once(flags: tuple[str, ...], environment: dict[str, str], said: str) -> None:
    """Exit 2, in one line."""
    run = kerf("plan", *INPUT, *flags, environment={**SIGNED, **environment})

    assert (exits.USAGE, "", True) == (run.returncode, run.stdout, said in run.stderr)


def test_where_aws_does_not_answer_it_is_said_in_a_line() -> None:
    """Exit 4, as for a cluster that does not."""
    unsigned = dict.fromkeys(SIGNED, "") | {"AWS_EC2_METADATA_DISABLED": "true"}
    run = kerf("plan", *INPUT, "aws:live:eu-west-1", environment=unsigned)

    assert (exits.UNREACHABLE, "") == (run.returncode, run.stdout)
    assert "error: --catalog aws:live:eu-west-1: AWS eu-west-1 says nothing: " in run.stderr
    assert "there are no AWS credentials" in run.stderr
    assert "Traceback" not in run.stderr
