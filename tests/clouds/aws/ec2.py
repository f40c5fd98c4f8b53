"""EC2 in memory, as `Api`: fleets with tokens and stock, lists that lag, terminations that take their time.

moto is wrong in all that matters here (a token gives a second instance, the first override always wins, there are no
errors), so this one does what EC2's documentation says. It is the truth of unit tests only; on the wire there is moto
behind the fault proxy.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kerf.cloudprovider import Throttled
from kerf.clouds.aws.api import Api, ApiFailed, Reply
from kerf.clouds.aws.clients import ConnectionFailed

Refuses = Callable[[Mapping[str, Any]], str]
"""The error code with which an override is refused; empty for none."""
STATES = ("pending", "running", "shutting-down", "terminated")


@dataclass
class Machine:
    """An instance as EC2 describes it."""

    record: dict[str, Any]
    shown_s: float
    ends_s: float | None = None


@dataclass
class FakeEC2(Api):
    """One account and region. What a test sets: `refuses`, `lag_s`, `lose_replies`, `throttle`, `answers`, `protected`.

    One protected instance fails a whole call of TerminateInstances, as EC2 says of those in one zone.
    """

    now_s: Callable[[], float] = lambda: 0.0
    refuses: Refuses = lambda override: ""
    lag_s: float = 0
    end_takes_s: float = 0
    lose_replies: int = 0
    throttle: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Callable[..., Reply]] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    machines: dict[str, Machine] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _tokens: dict[str, tuple[str, Reply]] = field(default_factory=dict)

    async def call(self, service: str, operation: str, **parameters: Any) -> Reply:
        """See Api."""
        await asyncio.sleep(0)
        self.calls.append((operation, parameters))
        if self.throttle.get(operation, 0) > 0:
            self.throttle[operation] -= 1
            raise Throttled
        if operation in self.answers:
            return self.answers[operation](**parameters)
        known: dict[str, Callable[[Mapping[str, Any]], Reply]] = {
            "CreateFleet": self.launch,
            "DescribeInstances": self._describe_instances,
            "TerminateInstances": self._terminate_instances,
            "CreateLaunchTemplate": lambda given: {},
        }
        return known[operation](parameters)

    async def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Sequence[Any]:
        """See Api."""
        return list((await self.call(service, operation, **parameters)).get(key) or ())

    def asked(self, operation: str) -> list[dict[str, Any]]:
        """The parameters of each call of an operation."""
        return [parameters for name, parameters in self.calls if name == operation]

    @property
    def running(self) -> list[dict[str, Any]]:
        """The records of instances that nobody ended."""
        return [each.record for each in self.machines.values() if each.record["State"]["Name"] in STATES[:2]]

    def run(self, tags: Mapping[str, str], instance_type: str = "g5.xlarge", zone: str = "us-east-1a") -> str:
        """An instance that is there, whoever launched it; its id."""
        return self._start({"InstanceType": instance_type, "AvailabilityZone": zone, "SubnetId": "s"}, dict(tags), "")

    def _start(self, chosen: Mapping[str, Any], tags: Mapping[str, str], lifecycle: str) -> str:
        number = f"i-{len(self.machines) + 1:04d}"
        record = {
            "InstanceId": number,
            "InstanceType": chosen["InstanceType"],
            "State": {"Name": "pending"},
            "Placement": {"AvailabilityZone": chosen["AvailabilityZone"]},
            "SubnetId": chosen["SubnetId"],
            "ImageId": chosen.get("ImageId", ""),
            "LaunchTime": datetime.fromtimestamp(self.now_s(), UTC),
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            **({"InstanceLifecycle": "spot"} if lifecycle == "spot" else {}),
        }
        self.machines[number] = Machine(record, self.now_s() + self.lag_s)
        return number

    def launch(self, given: Mapping[str, Any]) -> Reply:
        """CreateFleet, for a test whose `answers` change the reply."""
        parameters = {name: value for name, value in given.items() if name != "ClientToken"}
        token = given["ClientToken"]
        body = json.dumps(parameters, sort_keys=True)
        if token in self._tokens:
            known, reply = self._tokens[token]
            if known != body:
                raise ApiFailed("CreateFleet", "IdempotentParameterMismatch", "the request has changed")
            return reply
        reply = self._launched(parameters)
        self._tokens[token] = body, reply
        if self.lose_replies > 0:
            self.lose_replies -= 1
            raise ConnectionFailed("CreateFleet: the connection failed before the reply")
        return reply

    def _launched(self, parameters: Mapping[str, Any]) -> Reply:
        overrides = [each for config in parameters["LaunchTemplateConfigs"] for each in config["Overrides"]]
        errors: list[dict[str, Any]] = []
        lifecycle = parameters["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
        tags = {tag["Key"]: tag["Value"] for tag in parameters["TagSpecifications"][0]["Tags"]}
        for override in sorted(overrides, key=lambda each: each["Priority"]):
            code = self.refuses(override)
            chosen = {"Overrides": override}
            if not code:
                number = self._start(override, tags, lifecycle)
                made = {"InstanceIds": [number], "InstanceType": override["InstanceType"], "Lifecycle": lifecycle}
                return {"Instances": [{**made, "LaunchTemplateAndOverrides": chosen}], "Errors": errors}
            errors.append({"ErrorCode": code, "ErrorMessage": f"{code}.", "LaunchTemplateAndOverrides": chosen})
        return {"Instances": [], "Errors": errors}

    def _describe_instances(self, given: Mapping[str, Any]) -> Reply:
        self._pass()
        shown = [each.record for each in self.machines.values() if each.shown_s <= self.now_s()]
        found = [record for record in shown if all(_fits(record, each) for each in given["Filters"])]
        return {"Reservations": [{"Instances": [record]} for record in found]}

    def _terminate_instances(self, given: Mapping[str, Any]) -> Reply:
        unknown = [each for each in given["InstanceIds"] if each not in self.machines]
        if unknown:
            raise ApiFailed("TerminateInstances", "InvalidInstanceID.NotFound", f"{unknown} do not exist")
        if self.protected & set(given["InstanceIds"]):
            raise ApiFailed("TerminateInstances", "OperationNotPermitted", "One of them may not be terminated.")
        for each in given["InstanceIds"]:
            machine = self.machines[each]
            if machine.ends_s is None:
                machine.ends_s = self.now_s() + self.end_takes_s
                machine.record["State"]["Name"] = "shutting-down"
        return {}

    def _pass(self) -> None:
        for machine in self.machines.values():
            if machine.ends_s is not None and machine.ends_s <= self.now_s():
                machine.record["State"]["Name"] = "terminated"


def _fits(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    name, values = wanted["Name"], wanted["Values"]
    tags = {tag["Key"]: tag["Value"] for tag in record["Tags"]}
    if name == "tag-key":
        return any(value in tags for value in values)
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    held = {"instance-id": record["InstanceId"], "instance-state-name": record["State"]["Name"]}
    return held[name] in values
