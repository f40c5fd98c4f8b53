"""A call as the proxy reads it from the wire, and the record of all calls.

Which service is meant stands in the signature: `Credential=KEY/DATE/REGION/SERVICE/aws4_request`. The proxy checks no
signature, because what it stands for is not who calls but what is answered.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from kerf.testing.faultproxy.wire import EC2, JSON, QUERY, REST, Tree, of_form

OK, LOST = "ok", "lost"
"""Outcomes beside error codes. `lost`: carried out, and the reply never came."""
_SCOPE = re.compile(r"Credential=[^/,]+/\d*/(?P<region>[^/]+)/(?P<service>[^/]+)/")
_REST_ACTIONS = (("eks", "GET", re.compile(r"/clusters/[^/]+"), "DescribeCluster"),)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request. `parameters` are those of the wire, e.g. `InstanceId` for boto3's `InstanceIds` in EC2."""

    service: str
    action: str
    parameters: Tree
    region: str
    protocol: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """As IAM names the action, e.g. `ec2:CreateFleet`."""
        return f"{self.service}:{self.action}"

    @property
    def is_dry_run(self) -> bool:
        """Whether EC2 is only to say what it would do."""
        return self.parameters.get("DryRun") == "true"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call that came, and what became of it: `ok`, `lost` or an error code. `uses` are all actions it needs."""

    name: str
    at_s: float
    outcome: str
    parameters: Tree
    uses: tuple[str, ...]


def read_call(method: str, path: str, headers: Mapping[str, str], body: bytes) -> ApiCall:
    """The call in an HTTP request; its service is empty where the signature names none."""
    scope = _SCOPE.search(headers.get("Authorization", ""))
    service, region = (scope["service"], scope["region"]) if scope else ("", "")
    target = headers.get("X-Amz-Target", "")
    if target:
        action, parameters, protocol = target.rpartition(".")[2], _of_json(body), JSON
    elif "x-www-form-urlencoded" in headers.get("Content-Type", ""):
        parameters = of_form(body)
        action, protocol = str(parameters.pop("Action", "")), EC2 if service == "ec2" else QUERY
        parameters.pop("Version", None)
    else:
        action, protocol = _rest_action(service, method, path), REST
        parameters = {"name": unquote(urlsplit(path).path.rpartition("/")[2])}
    return ApiCall(service, action, parameters, region, protocol, method, path, headers, body)


def _of_json(body: bytes) -> Tree:
    found: Any = json.loads(body or b"{}")
    return found if isinstance(found, dict) else {}


def _rest_action(service: str, method: str, path: str) -> str:
    route = urlsplit(path).path
    for of_service, of_method, pattern, action in _REST_ACTIONS:
        if (service, method) == (of_service, of_method) and pattern.fullmatch(route):
            return action
    return f"{method} {route}"
