"""The spread constraints that a scheduler gives pods without any of their own: its `defaultConstraints`.

Written as in `topology.kubernetes.io/zone=5,kubernetes.io/hostname=3:DoNotSchedule`: topology key, maxSkew, and what
happens where it cannot hold, which is ScheduleAnyway unless stated.
"""

import re

from kerf.model.constraints import ANYTHING, HOSTNAME, ZONE
from kerf.model.spreadforms import NONE, PATTERN, SYSTEM
from kerf.model.topology import TopologySpreadConstraint

DefaultSpread = tuple[TopologySpreadConstraint, ...]
_SYSTEM: DefaultSpread = (
    TopologySpreadConstraint(HOSTNAME, 3, ANYTHING, is_required=False),
    TopologySpreadConstraint(ZONE, 5, ANYTHING, is_required=False),
)
"""kube-scheduler's own (podtopologyspread/plugin.go, `systemDefaultConstraints`)."""


def default_spread_of(text: str) -> DefaultSpread | None:
    """The constraints, without the selectors that pods give them; None for a text that is of no such form."""
    if text in (NONE, SYSTEM):
        return _SYSTEM if text == SYSTEM else ()
    if re.fullmatch(PATTERN, text, re.ASCII) is None:
        return None
    return tuple(map(_one, text.split(",")))


def _one(text: str) -> TopologySpreadConstraint:
    key, _, stated = text.partition("=")
    skew, _, action = stated.partition(":")
    return TopologySpreadConstraint(key, int(skew), ANYTHING, is_required=action == "DoNotSchedule")
