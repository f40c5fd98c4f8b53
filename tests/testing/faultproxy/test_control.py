"""The switches over HTTP, for what runs in another process."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets


def turn(cloud: AwsCloud, switch: str, **given: Any) -> Any:
    """What the control endpoint answers."""
    body = json.dumps(given).encode() if switch != "calls" else None
    with urlopen(Request(f"{cloud.proxy.url}/_faultproxy/{switch}", data=body)) as reply:
        return json.load(reply)


def test_a_switch_is_turned_over_http(aws_cloud: AwsCloud) -> None:
    """Sold out by a request, and the calls are listed."""
    fleets = Fleets(aws_cloud)
    turn(aws_cloud, "stock/sell_out", instance_type="m5.*")

    assert [] == fleets.ask(fleets.pool())["Instances"]
    assert "ec2:CreateFleet" == turn(aws_cloud, "calls")[-1]["name"]


@pytest.mark.parametrize("switch, status", [("stock/take", 404), ("nothing/at_all", 404), ("stock/sell_out", 400)])
def test_what_is_no_switch_is_refused(aws_cloud: AwsCloud, switch: str, status: int) -> None:
    """404 for what is none, 400 for arguments that it does not take."""
    with pytest.raises(HTTPError) as error:
        turn(aws_cloud, switch, unknown=1)
    assert status == error.value.code
    error.value.close()
