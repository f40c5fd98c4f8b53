"""Settings: one place for every number that an operator may turn.

Each field is a flag of `kerf run`, an environment variable and a key of its `--config` file, all of one name:
`batch_idle_s` is `--batch-idle`, `KERF_BATCH_IDLE` and `batch-idle`. Times are seconds here and durations such as
`1m30s` or `500ms` there. Defaults are Karpenter's where it has the knob, else those of docs/design/architecture.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kerf.errors import ConfigError
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.policies import AUTO, COST, FOLLOWING, MIN_VALUES, PREFERENCES, RESPECT, STRATEGIES, STRICT
from kerf.model.spreadforms import FORM, NONE

DURATION = "a duration such as 1m30s or 500ms"
NAMESPACES = "names of namespaces, separated by commas"
NUMBER = "a whole number from 1 on, of at most nine digits"
SWITCH = ("Off", "On")
IGNORE_BUDGETS = "IgnoreBudgets"
NODE_REPAIR = (*SWITCH, IGNORE_BUDGETS)


def _setting(default: Any, meaning: str, choices: tuple[str, ...] = (), form: str = "") -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices, "form": form})


@dataclass(frozen=True, slots=True)
class Settings:
    """What `kerf run` and the simulator start the controllers with."""

    strategy: str = _setting(COST, "How to choose nodes.", STRATEGIES)
    follow: str = _setting(AUTO, "How Kerf makes the schedulers follow the plan.", FOLLOWING)
    preference_policy: str = _setting(
        RESPECT, "Respect: buy nodes that pods prefer, where possible. Ignore: do not look at preferences.", PREFERENCES
    )
    min_values_policy: str = _setting(
        STRICT, "Strict: never go below a NodePool's minValues. BestEffort: go below them if needed.", MIN_VALUES
    )
    default_spread: str = _setting(
        NONE,
        "defaultConstraints of PodTopologySpread in kube-scheduler's configuration.",
        form=FORM,
    )
    spot_to_spot_consolidation: str = _setting(
        "Off",
        "On: replace a spot node by a spot node if fifteen types are cheaper.",
        SWITCH,
    )
    node_repair: str = _setting(
        "Off",
        "On: replace nodes that have a bad condition for too long. IgnoreBudgets: at once, whatever budgets say, as in "
        "Karpenter up to 1.14.",
        NODE_REPAIR,
    )
    batch_idle_s: float = _setting(1, "Plan when no new pod has come for this time.")
    batch_max_s: float = _setting(10, "Plan at the latest this long after the first pod.")
    replan_s: float = _setting(10, "How often to plan again for pods that still wait.")
    launch_deadline_s: float = _setting(5 * 60, "Give up a claim that the cloud has not launched after this time.")
    registration_deadline_s: float = _setting(15 * 60, "Give up a node that has not become ready after this time.")
    devices_deadline_s: float = _setting(
        10 * 60, "Give up a ready node whose GPUs have not registered after this time."
    )
    disruption_poll_s: float = _setting(10, "How often to look for nodes that can go.")
    repack_s: float = _setting(
        5 * 60,
        "Search again this long after a search that found no cheaper nodes. If much has changed, search sooner, but at "
        "the earliest after a fifth of this time.",
    )
    validation_s: float = _setting(15, "Remove a node only if the decision is the same again after this time.")
    settled_s: float = _setting(5 * 60, "How often to look again at an unchanged cluster.")
    pin_deadline_s: float = _setting(2 * 60, "Drop a pin or a reservation that no pod has used after this time.")
    instance_poll_s: float = _setting(30, "How often to compare claims with the cloud's instances.")
    orphan_age_s: float = _setting(30, "Terminate an instance without a claim when it is this old.")
    drain_poll_s: float = _setting(5, "How often to look again at a node that is being drained.")
    usage_poll_s: float = _setting(60, "How often to read what pods and nodes use.")
    usage_checkpoint_s: float = _setting(10 * 60, "How often to write the history of usage to the API.")
    sold_out_s: float = _setting(3 * 60, "Do not try a sold-out offering for this time at first.")
    sold_out_most_s: float = _setting(30 * 60, "Do not try a sold-out offering for this time at most.")
    back_off_s: float = _setting(5 * 60, "Do not try a type that failed for this time at first.")
    back_off_most_s: float = _setting(2 * 3600, "Do not try a type that failed for this time at most.")
    most_shapes: int = _setting(400, "Plan at most this many kinds of pods at a time. A later pass plans the others.")
    plugin_namespaces: tuple[str, ...] = _setting(
        PLUGIN_NAMESPACES, "Read how GPUs are shared from ConfigMaps of these namespaces only."
    )

    @property
    def one_age_s(self) -> float:
        """Pods that came within so long of each other are of one age: any order among them will do.

        Three batches. A burst that its controller makes over half a minute costs no write more, and no pod waits longer
        for want of order than that.
        """
        return 3 * self.batch_max_s


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of Settings as an operator knows it."""

    field: str
    flag: str
    variable: str
    key: str
    meaning: str
    choices: tuple[str, ...]
    default: str
    is_namespaces: bool = False
    is_number: bool = False
    is_spread: bool = False

    @property
    def form(self) -> str:
        """What stands for its value in a usage line."""
        if self.choices:
            return f"[{'|'.join(self.choices)}]"
        if self.is_spread:
            return "CONSTRAINTS"
        return "NAMESPACES" if self.is_namespaces else "NUMBER" if self.is_number else "DURATION"


def settings_table() -> tuple[Setting, ...]:
    """All of them, in the order of the fields."""
    return tuple(_described(each.name, each.metadata, each.default) for each in fields(Settings))


def _described(name: str, metadata: Mapping[str, Any], default: Any) -> Setting:
    key = name.removesuffix("_s").replace("_", "-")
    is_namespaces = isinstance(default, tuple)
    # A duration's default may be written as a whole number; only its name says which.
    is_number = isinstance(default, int) and not name.endswith("_s")
    is_plain = is_number or isinstance(default, str)
    shown = ",".join(default) if is_namespaces else str(default) if is_plain else f"{default:g}s"
    variable = f"KERF_{key.upper().replace('-', '_')}"
    kinds = is_namespaces, is_number, bool(metadata["form"])
    return Setting(name, f"--{key}", variable, key, metadata["meaning"], metadata["choices"], shown, *kinds)


def settings_of(texts: Mapping[str, str]) -> Settings:
    """Settings from texts by field name; what is not given has its default. Raises ConfigError."""
    known = {setting.field: setting for setting in settings_table()}
    values: dict[str, Any] = {name: _value(known[name], text) for name, text in texts.items()}
    return Settings(**values)


def _value(setting: Setting, text: str) -> str | int | float | tuple[str, ...]:
    named = f"{setting.flag} ({setting.variable}, key {setting.key})"
    if setting.choices:
        if text not in setting.choices:
            raise ConfigError(f"{named}: expected one of {', '.join(setting.choices)}, got {text!r}")
        return text
    if setting.is_namespaces:
        names = tuple(sorted({name.strip() for name in text.split(",")}))
        if not all(map(_NAMESPACE.fullmatch, names)):
            raise ConfigError(f"{named}: expected {NAMESPACES}, got {text!r}")
        return names
    if setting.is_spread:
        # Not above: `kerf run --help` needs the table of settings, and nothing of what their values mean.
        from kerf.model.defaultspread import default_spread_of

        if default_spread_of(text) is None:
            raise ConfigError(f"{named}: expected {FORM}, got {text[:80]!r}")
        return text
    if setting.is_number:
        if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) > 0):
            raise ConfigError(f"{named}: expected {NUMBER}, got {text!r}")
        return int(text)
    seconds = seconds_of(text)
    if seconds is None:
        raise ConfigError(f"{named}: expected {DURATION}, got {text!r}")
    return seconds


_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PARTS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|h|m|s))+", re.ASCII)
_PART = re.compile(r"([0-9.]+)(ms|h|m|s)", re.ASCII)


def seconds_of(text: str) -> float | None:
    """The seconds of a duration; None for a text that is none."""
    if _PARTS.fullmatch(text) is None:
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
