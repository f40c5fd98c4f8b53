"""Who may call what: policy documents that the proxy enforces, and actions that a test forbids.

A call that may not be made is refused in the form of its service. What a fleet may not launch is no error of the call:
EC2 answers it among the errors of the fleet (aws/karpenter-provider-aws#6298).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.faults import Faults
from kerf.testing.faultproxy.needs import ACCOUNT, SPOT_ROLE, Needs
from kerf.testing.faultproxy.policies import Need, PolicyStatement, is_allowed, read_policy
from kerf.testing.faultproxy.wire import EC2, JSON, QUERY, CallRefused

_CALLER = f"arn:aws:sts::{ACCOUNT}:assumed-role/controller/faultproxy"
_NO_SPOT_ROLE = (
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
)


class Permissions:
    """The switches. Without a document every caller may do what no test denies."""

    def __init__(self, faults: Faults, needs: Needs) -> None:
        self._faults, self._needs = faults, needs
        self._statements: dict[str, tuple[PolicyStatement, ...]] = {}

    def enforce(self, policies: Mapping[str, Any], access_key: str = "") -> None:
        """From now on calls of `access_key`, of every caller where it is empty, need what these documents allow.

        `policies` is one document, or documents by name as `kerf aws iam` prints them. Raises ValueError for one that
        the proxy cannot evaluate, see `policies`.
        """
        documents = [policies] if "Statement" in policies else list(policies.values())
        self._statements[access_key] = tuple(each for document in documents for each in read_policy(document))

    def lift(self, access_key: str = "") -> None:
        """Every call of `access_key` is allowed again."""
        self._statements.pop(access_key, None)

    def new_account(self) -> None:
        """The account has never asked for spot: the first spot request makes the role of spot."""
        self._needs.has_spot_role = False

    def check(self, call: ApiCall) -> Mapping[Need, CallRefused]:
        """What the caller lacks for the call, each with its error; empty where it may do all of it."""
        known = self._statements.get(call.access_key, self._statements.get(""))
        needs = call.needs.all or (Need(call.name, "*"),) if self._faults.forbids(call.name) else call.needs.all
        refusals = {need: refused for need in needs if (refused := self._refusal(call, need, known))}
        if self._may_make_spot_role(replace(call, refusals=refusals)):
            self._needs.has_spot_role = True
        return refusals

    def _may_make_spot_role(self, call: ApiCall) -> bool:
        """Whether the call asks for spot, and something of it may be launched."""
        launches = [
            needs for needs in (call.needs.own, *call.needs.pools) if SPOT_ROLE in {each.action for each in needs}
        ]
        return not call.is_dry_run and any(call.refusal(needs) is None for needs in launches)

    def _refusal(self, call: ApiCall, need: Need, statements: tuple[PolicyStatement, ...] | None) -> CallRefused | None:
        if self._faults.forbids(need.action):
            return _refused(call, need, "with an explicit deny in an identity-based policy")
        if statements is None or is_allowed(statements, need):
            return None
        return _refused(call, need, f"because no identity-based policy allows the {need.action} action")


def _refused(call: ApiCall, need: Need, why: str) -> CallRefused:
    """As the service of the call says it."""
    if need.action == SPOT_ROLE and call.protocol == EC2:
        return CallRefused(*_NO_SPOT_ROLE, 403)
    text = f"User: {_CALLER} is not authorized to perform: {need} {why}"
    if call.protocol == EC2:
        return CallRefused("UnauthorizedOperation", f"You are not authorized to perform this operation. {text}", 403)
    if call.protocol == QUERY or call.service == "sqs":
        return CallRefused("AccessDenied", text, 403)
    return CallRefused("AccessDeniedException", text, 400 if call.protocol == JSON else 403)
