"""What a pod's annotations tell HAMi: which cards it accepts, and how they are ranked.

The spelling matters more than one expects: a blank `vgpu-mode` excludes every card while a blank `use-gputype`
excludes none, an unknown policy silently means the default, and types are compared as substrings (`A10` also takes an
A100). Rules of HAMi v2.10.0 as its scheduler showed them (tests/data/hami).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.gpu import DeviceState
from kerf.sharing.hami.config import HamiConfig

USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, AVOID_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
MODE, NUMA_BIND = "nvidia.com/vgpu-mode", "nvidia.com/numa-bind"
NODE_POLICY, GPU_POLICY = "hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy"
WEIGHTS = "hami.io/device-scoring-weights"
PINNED = "kerf.dev/pinned"
"""Beside `use-gpuuuid`: Kerf itself wrote that, so it is no wish of the user and planning ignores it."""

OF_PODS = (USE_TYPE, AVOID_TYPE, USE_UUID, AVOID_UUID, MODE, NUMA_BIND, NODE_POLICY, GPU_POLICY, WEIGHTS)
"""Annotations that HAMi reads of pods, and of nothing that makes them."""

TOPOLOGY_AWARE, MUTEX, MIG_MODE = "topology-aware", "mutex", "mig"
_POLICIES = {NODE_POLICY: ("binpack", "spread"), GPU_POLICY: ("binpack", "spread", MUTEX, "numa", TOPOLOGY_AWARE)}
"""The words that HAMi knows of each policy; it compares them as they are, with their case and their blanks."""
WORDED = (*_POLICIES, NUMA_BIND)
"""Annotations that have one of a few words."""
_OTHERWISE = {NODE_POLICY: "binpack", GPU_POLICY: "spread"}
"""What HAMi does by any other word, whatever its own default was set to."""
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
# Eighteen digits at most: more would not be an integer for HAMi either, whose integers have 64 bits.
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_WEIGHT_NAMES = ("slot", "core", "memory")


class WeightsError(ValueError):
    """The scoring weights cannot be read: HAMi then answers every filter call with this error."""


@dataclass(frozen=True, slots=True)
class WordUnknown(Cause):
    """An annotation has a word that HAMi does not know, `got`, so it goes by `taken`; `known` are those there are.

    In a list HAMi takes the words that it knows.
    """

    annotation: Name
    got: Quoted
    known: tuple[Name, ...]
    taken: Name


def unknown_words(annotations: Mapping[str, str]) -> tuple[WordUnknown, ...]:
    """What HAMi does not know of a pod's annotations, and passes over without a word."""
    found = []
    for key, known in _POLICIES.items():
        text = annotations.get(key)
        if text is None:
            continue
        # Only of cards may there be several, by commas.
        words = text.split(",") if key == GPU_POLICY else [text]
        wrong = next((word for word in words if word not in known), None)
        if wrong is not None:
            taken = ",".join(word for word in words if word in known) or _OTHERWISE[key]
            found.append(WordUnknown(Name(key), Quoted(wrong), tuple(map(Name, known)), Name(taken)))
    bound = annotations.get(NUMA_BIND)
    if bound is not None and bound not in _TRUE | _FALSE:
        found.append(WordUnknown(Name(NUMA_BIND), Quoted(bound), (Name("true"), Name("false")), Name("false")))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class HamiOptions:
    """The annotations that HAMi's scheduler reads, parsed. None: no such rule.

    `weights` are of slots, cores and memory.
    """

    gpu_policy: str = "spread"
    node_policy: str = "binpack"
    weights: tuple[int, int, int] = (1, 1, 1)
    use_types: tuple[str, ...] | None = None
    avoid_types: tuple[str, ...] | None = None
    use_ids: tuple[str, ...] | None = None
    avoid_ids: tuple[str, ...] | None = None
    mode: str | None = None
    numa_bind: bool = False

    @property
    def is_topology_aware(self) -> bool:
        """Whether cards are chosen by how well they are linked."""
        return TOPOLOGY_AWARE in self.gpu_policy.split(",")

    @property
    def is_mutex(self) -> bool:
        """Whether only idle cards are taken."""
        return MUTEX in self.gpu_policy.split(",")

    @property
    def allows_mig(self) -> bool:
        """Whether a card in MIG mode is not excluded by the mode."""
        return self.mode is None or MIG_MODE in self.mode

    def accepts_type(self, device: DeviceState) -> bool:
        """Whether type and mode of a card are allowed."""
        return _accepts(device.model, device.mode, self.mode, self.use_types, self.avoid_types)

    def accepts_id(self, device: DeviceState) -> bool:
        """Whether the card's UUID is allowed."""
        if self.use_ids is not None and device.id not in self.use_ids:
            return False
        return self.avoid_ids is None or device.id not in self.avoid_ids

    @property
    def ranking(self) -> tuple[str, ...]:
        """By what the cards are sorted, ascending, before they are tried from the last to the first."""
        return _ranking(self.gpu_policy, self.numa_bind)


def read_options(annotations: Mapping[str, str], config: HamiConfig, *, honours_pins: bool = False) -> HamiOptions:
    """The options of a pod. Raises WeightsError.

    A `use-gpuuuid` beside `kerf.dev/pinned` is Kerf's own and left out, unless `honours_pins` (the scheduler obeys it).
    """
    is_pinned = PINNED in annotations and not honours_pins
    weights = annotations.get(WEIGHTS)
    return HamiOptions(
        gpu_policy=annotations.get(GPU_POLICY, config.gpu_policy),
        node_policy=annotations.get(NODE_POLICY, config.node_policy),
        weights=(1, 1, 1) if weights is None else parse_weights(weights),
        use_types=_listed(annotations.get(USE_TYPE, "")),
        avoid_types=_listed(annotations.get(AVOID_TYPE, "")),
        use_ids=None if is_pinned else _listed(annotations.get(USE_UUID, "")),
        avoid_ids=_listed(annotations.get(AVOID_UUID, "")),
        mode=annotations.get(MODE),
        numa_bind=annotations.get(NUMA_BIND, "") in _TRUE,
    )


def parse_weights(text: str) -> tuple[int, int, int]:
    """Weights of slots, cores and memory from `slot=1,core=1,memory=3`. Raises WeightsError in HAMi's words."""
    items = text.split(",")
    if len(items) != len(_WEIGHT_NAMES):
        raise _weights_error(text, "expected slot, core, and memory weights")
    weights: dict[str, int] = {}
    for item in items:
        name, _, number = (part.strip() for part in item.partition("="))
        if name not in _WEIGHT_NAMES:
            raise _weights_error(text, f'unknown weight "{name}"')
        if name in weights:
            raise _weights_error(text, f'duplicate "{name}" weight')
        if _INTEGER.fullmatch(number) is None:
            raise _weights_error(text, f'"{name}" weight must be an integer')
        if int(number) < 0:
            raise _weights_error(text, f'"{name}" weight must not be negative')
        weights[name] = int(number)
    if not any(weights.values()):
        raise _weights_error(text, "at least one weight must be positive")
    return weights["slot"], weights["core"], weights["memory"]


def _weights_error(text: str, problem: str) -> WeightsError:
    return WeightsError(f'invalid {WEIGHTS} annotation "{text}": {problem}')


def _listed(text: str) -> tuple[str, ...] | None:
    """The entries of a comma list, trimmed; None when the whole is blank, which is no rule at all."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip()) if text.strip() else None


@lru_cache(maxsize=4096)
def _accepts(
    model: str, own_mode: str, mode: str | None, use: tuple[str, ...] | None, avoid: tuple[str, ...] | None
) -> bool:
    if mode is not None and (own_mode not in mode or not mode):
        return False
    name = model.lower()
    if use is not None and not any(wanted.lower() in name for wanted in use):
        return False
    return avoid is None or not any(unwanted.lower() in name for unwanted in avoid)


@lru_cache(maxsize=256)
def _ranking(policy: str, numa_bind: bool) -> tuple[str, ...]:
    if policy == MUTEX:
        return ("-slots", "numa")
    if policy == "numa" or "," in policy:
        known = {"binpack": "score", "spread": "-score", "numa": "numa"}
        keys = [known[word] for word in policy.split(",") if word in known] or ["-score"]
        return (*(["numa"] if numa_bind else []), *keys, "index")
    if policy == "binpack":
        return ("-numa", "score") if numa_bind else ("score", "numa")
    return ("numa", "-score") if numa_bind else ("-score", "numa")
