"""Settings of the controllers; one place for every number that an operator may turn.

Times are seconds. Defaults are Karpenter's where it has the knob, else those of the design notes in docs/design.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What `kerf run` and the simulator start the controllers with."""

    strategy: str = "cost"
    follow: str = "auto"
    batch_idle_s: float = 1
    batch_max_s: float = 10
    replan_s: float = 10
    launch_deadline_s: float = 5 * 60
    registration_deadline_s: float = 15 * 60
    devices_deadline_s: float = 10 * 60
    disruption_poll_s: float = 10
    validation_s: float = 15
    settled_s: float = 5 * 60
    pin_deadline_s: float = 2 * 60
    instance_poll_s: float = 30
    orphan_age_s: float = 30
    sold_out_s: float = 3 * 60
    sold_out_most_s: float = 30 * 60
    back_off_s: float = 5 * 60
    back_off_most_s: float = 30 * 60
