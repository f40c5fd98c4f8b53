"""Physical GPUs and the parts of them that pods ask for.

A slice lives on one card. Nothing here sums over a node: a node has a list of devices, each with its own free memory,
cores, slots and MIG placements.
"""

from dataclasses import dataclass, replace
from operator import attrgetter

NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_MEMORY = "nvidia.com/gpumem"


@dataclass(frozen=True, slots=True)
class GPUModel:
    """A GPU as its vendor sells it, e.g. `A10G`; `registered_as` is the name a driver reports (`NVIDIA A10G`)."""

    name: str
    vendor: str = "nvidia"
    registered_as: str = ""


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """One card of an instance type, as it is expected to register.

    `memory_mib` is what a driver registers (see docs/reference/catalogue.md), never the number on the box.
    `eighths` is the share of a physical card in eighths: 8, or less for types that are sold a fraction (g6f).
    `profiles` are the card's MIG profiles, empty where it has no MIG; `pci_ids` the device ids by which configurations
    of MIG name a model (`20B0`).
    """

    model: GPUModel
    memory_mib: int
    memory_source: str = ""
    eighths: int = 8
    profiles: tuple["Profile", ...] = ()
    pci_ids: tuple[str, ...] = ()

    @property
    def is_fraction(self) -> bool:
        """Whether the cloud sells only a part of the card with this type."""
        return self.eighths < 8


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile, e.g. `3g.20gb`: what it books and where the hardware lets it start.

    `size` and `starts` are in memory slices; `cores` in percent of the card; `slice_count` is what HAMi registers and
    sorts by after memory. One instance of a card at most `has_media_engine` (`1g.5gb+me`).
    """

    name: str
    size: int
    starts: tuple[int, ...]
    memory_mib: int
    cores: int
    slice_count: int = 0
    has_media_engine: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """A profile at a fixed place on one GPU."""

    profile: str
    start: int
    size: int

    @property
    def slices(self) -> range:
        """The memory slices it covers."""
        return range(self.start, self.start + self.size)


@dataclass(frozen=True, slots=True)
class Partition:
    """Equal parts of one card that kubelet counts under one name: replicas of it, or its MIG instances of a profile.

    `count` parts, of which `used` are taken, each of `memory_mib` and `cores` percent of the card; both are 0 where
    nothing divides them (time-slicing). A container may ask for `most` of the name, 0 for any number. `profile` is
    empty where the parts are no MIG instances.
    """

    resource: str
    count: int
    memory_mib: int
    cores: int
    used: int = 0
    most: int = 0
    profile: str = ""

    @property
    def free(self) -> int:
        """Parts that no pod holds."""
        return self.count - self.used


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One physical GPU of a node (or of a node to be) and what is used of it.

    Memory in MiB, cores in percent of one card, slots in containers. `id` is the UUID, or `gpu-N` while it is not
    known. `numa` and `mode` as the device plugin registers them; `profiles` only where MIG instances are cut as pods
    come; `partitions` only where parts were fixed beforehand.
    """

    id: str
    index: int
    model: str
    memory_mib: int
    cores: int = 100
    slots: int = 1
    numa: int = 0
    mode: str = ""
    healthy: bool = True
    cordoned: bool = False
    used_memory_mib: int = 0
    used_cores: int = 0
    used_slots: int = 0
    profiles: tuple[Profile, ...] = ()
    placements: tuple[Placement, ...] = ()
    partitions: tuple[Partition, ...] = ()

    @property
    def free_memory_mib(self) -> int:
        """Memory that no slice has booked; negative when the card registered less than was booked."""
        return self.memory_mib - self.used_memory_mib

    @property
    def free_cores(self) -> int:
        """Percent points that no slice has booked."""
        return self.cores - self.used_cores

    @property
    def is_idle(self) -> bool:
        """Whether nothing uses it."""
        return self.used_slots == 0

    @property
    def allocated_percent_points(self) -> int:
        """How much of the card is used, in 1/10000: the largest of its memory, core and slot share."""
        shares = [
            used * 10_000 // total
            for used, total in (
                (self.used_memory_mib, self.memory_mib),
                (self.used_cores, self.cores),
                (self.used_slots, self.slots),
            )
            if total > 0
        ]
        return min(10_000, max(shares, default=0))

    def taking(self, memory_mib: int, cores: int, slots: int = 1, placement: Placement | None = None) -> "DeviceState":
        """The same card with one more slice on it (a negative amount gives it back)."""
        # Field by field: every look at a node does this for each slice on it, and `replace` takes five times as long.
        return DeviceState(
            self.id,
            self.index,
            self.model,
            self.memory_mib,
            self.cores,
            self.slots,
            self.numa,
            self.mode,
            self.healthy,
            self.cordoned,
            self.used_memory_mib + memory_mib,
            self.used_cores + cores,
            self.used_slots + slots,
            self.profiles,
            self.placements if placement is None else (*self.placements, placement),
            self.partitions,
        )

    def holding(self, part: "Slice") -> "DeviceState":
        """The same card with a slice that was planned on it; of a card that was cut beforehand, one part of that name.

        Of several parts of one name the one that is used least, as the device plugin gives them out.
        """
        taken = self.taking(part.memory_mib, part.cores, placement=part.placement)
        if not part.resource:
            return taken
        parts = list(self.partitions)
        free = [(held.used, at) for at, held in enumerate(parts) if held.resource == part.resource and held.free > 0]
        if not free:
            return taken
        _, at = min(free)
        parts[at] = replace(parts[at], used=parts[at].used + 1)
        return replace(taken, partitions=tuple(parts))


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """What one container asks of each of `count` different physical GPUs.

    `memory_mib` 0 means: `memory_percent` of the card; 100 with neither given. `cores` are percent points of a card.
    `resource` is the name under which kubelet counts it, where a family knows more than one.
    """

    count: int
    memory_mib: int = 0
    memory_percent: int = 100
    cores: int = 0
    resource: str = ""

    def memory_on(self, device: DeviceState) -> int:
        """The MiB it takes of `device`, rounded down as HAMi does."""
        return self.memory_mib or device.memory_mib * self.memory_percent // 100


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of one device that one container holds, or will hold.

    `resource` is the name under which kubelet counts it, where the card was cut beforehand; else empty.
    """

    pod: str
    container: str
    device: int
    device_id: str
    memory_mib: int
    cores: int
    placement: Placement | None = None
    resource: str = ""

    def of(self, pod: str) -> "Slice":
        """The same part as another pod's. Plans ask for each pod, and the constructor takes twice as long."""
        made = object.__new__(Slice)
        _SET_POD(made, pod)
        for written, read in _OTHERS:
            written(made, read(self))
        return made


_SET_POD = Slice.__dict__["pod"].__set__
_OTHERS = tuple((Slice.__dict__[name].__set__, attrgetter(name)) for name in Slice.__slots__ if name != "pod")
