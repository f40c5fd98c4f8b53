"""A call as the proxy reads it from the wire, and the record of all calls.

Which service is meant stands in the signature: `Credential=KEY/DATE/REGION/SERVICE/aws4_request`. The proxy checks no
signature, because what it stands for is not who calls but what is answered.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from kerf.testing.faultproxy.policies import Need
from kerf.testing.faultproxy.wire import EC2, JSON, QUERY, REST, CallRefused, Tree, of_form

OK, LOST = "ok", "lost"
"""Outcomes beside error codes. `lost`: carried out, and the reply never came."""
_SCOPE = re.compile(r"Credential=(?P<key>[^/,]+)/\d*/(?P<region>[^/]+)/(?P<service>[^/]+)/")
_REST_ACTIONS = (("eks", "GET", re.compile(r"/clusters/[^/]+"), "DescribeCluster"),)


@dataclass(frozen=True, slots=True)
class CallNeeds:
    """What a caller must be allowed to do, see `needs`.

    `own` decide about the call; `pools` about one override of a fleet each, in the order of the request.
    """

    own: tuple[Need, ...] = ()
    pools: tuple[tuple[Need, ...], ...] = ()

    @property
    def all(self) -> tuple[Need, ...]:
        """Each once."""
        return tuple(dict.fromkeys((*self.own, *(need for pool in self.pools for need in pool))))


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request. `parameters` are those of the wire, e.g. `InstanceId` for boto3's `InstanceIds` in EC2.

    `refusals` are those of its needs that the caller lacks, each with the error that says so.
    """

    service: str
    action: str
    parameters: Tree
    region: str
    protocol: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    access_key: str = ""
    needs: CallNeeds = CallNeeds()
    refusals: Mapping[Need, CallRefused] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As IAM names the action, e.g. `ec2:CreateFleet`."""
        return f"{self.service}:{self.action}"

    @property
    def held_as(self) -> str:
        """The name by which a hold stops it: a dry run is an action of its own, e.g. `CreateFleet (dry run)`."""
        return f"{self.action} (dry run)" if self.is_dry_run else self.action

    @property
    def is_dry_run(self) -> bool:
        """Whether EC2 is only to say what it would do."""
        return self.parameters.get("DryRun") == "true"

    def refusal(self, needs: Iterable[Need]) -> CallRefused | None:
        """The error of the first of these needs that the caller lacks; None where it has them all."""
        return next((self.refusals[need] for need in needs if need in self.refusals), None)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call that came, and what became of it: `ok`, `lost` or an error code.

    `uses` are all actions it needs, `needs` each with its resource and condition keys, `refused` those of them that the
    caller lacks.
    """

    name: str
    at_s: float
    outcome: str
    parameters: Tree
    uses: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    refused: tuple[Need, ...] = ()
    access_key: str = ""


def read_call(method: str, path: str, headers: Mapping[str, str], body: bytes) -> ApiCall:
    """The call in an HTTP request; its service is empty where the signature names none."""
    scope = _SCOPE.search(headers.get("Authorization", ""))
    service, region, key = (scope["service"], scope["region"], scope["key"]) if scope else ("", "", "")
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
    return ApiCall(service, action, parameters, region, protocol, method, path, headers, body, key)


def _of_json(body: bytes) -> Tree:
    found: Any = json.loads(body or b"{}")
    return found if isinstance(found, dict) else {}


def _rest_action(service: str, method: str, path: str) -> str:
    route = urlsplit(path).path
    for of_service, of_method, pattern, action in _REST_ACTIONS:
        if (service, method) == (of_service, of_method) and pattern.fullmatch(route):
            return action
    return f"{method} {route}"
