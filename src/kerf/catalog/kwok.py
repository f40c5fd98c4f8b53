"""The KWOK catalogue: Karpenter's 144 generic types by their rule, and files of the same shape.

A file is what a user writes by hand for hardware that no cloud sells, so every mistake in it is reported with its
place. The shape is that of KWOK's generator, with three additions: `overhead`, `labels` and `devices`.
"""

import re
from functools import cache

from kerf.catalog.kwok_file import Entry, read
from kerf.catalog.packaged import one_of
from kerf.model.constraints import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.market import Market
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, MIB, PODS, Resources, quantity_text

PREFIX = "karpenter.kwok.sh/instance-"
GIB = 1024 * MIB
ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
OVERHEAD = Resources({CPU: 100, MEMORY: 10 * MIB})
"""What KWOK's provider reserves on every node."""
DEFAULT_PODS = 110
_SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_FAMILIES = (("c", 2), ("s", 4), ("m", 8))
_AWS_NAME = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")


@cache
def generic() -> Market:
    """Karpenter's generated types: sizes by families by systems by architectures; spot and on demand in 4 zones."""
    types = [
        _generic_type(cpu, family, gib_a_cpu, system, arch)
        for cpu in _SIZES
        for family, gib_a_cpu in _FAMILIES
        for system in ("linux", "windows")
        for arch in ("amd64", "arm64")
    ]
    return Market(tuple(sorted(types, key=lambda kind: kind.name)), "USD", "kwok", "")


def _generic_type(cpu: int, family: str, gib_a_cpu: int, system: str, arch: str) -> InstanceType:
    """Price: 0.025 a CPU and 0.001 for 10**9 bytes of memory; spot 0.7 of it."""
    memory = cpu * gib_a_cpu * GIB
    amounts = {CPU: cpu * 1000, MEMORY: memory, PODS: min(cpu * 16, 1024), EPHEMERAL_STORAGE: 20 * GIB}
    exact = 25_000 * cpu * 10**6 + memory
    price = {ON_DEMAND: (exact + 500_000) // 10**6, SPOT: (exact * 7 + 5_000_000) // 10**7}
    offerings = tuple(Offering(zone, kind, price[kind]) for zone in ZONES for kind in (SPOT, ON_DEMAND))
    entry = Entry(f"{family}-{cpu}x-{arch}-{system}", arch, (system,), Resources(amounts), offerings)
    return instance_type(entry)


def decode(text: str, place: str) -> Market:
    """The market of a file; `place` names it in messages. Raises DecodeError for the first mistake."""
    entries, notes = read(text, place)
    types = sorted((instance_type(entry) for entry in entries if entry.offerings), key=lambda kind: kind.name)
    unsold = tuple(f"{place}: {entry.name} has no offering and is left out" for entry in entries if not entry.offerings)
    return Market(tuple(types), "USD", "kwok", "", notes=notes + unsold)


def instance_type(entry: Entry) -> InstanceType:
    """The type as KWOK's provider would publish it, with the file's own labels over it."""
    capacity = Resources({PODS: DEFAULT_PODS}).replaced(entry.resources)
    cpu = quantity_text(CPU, capacity.get(CPU, 0))
    aws_name = _AWS_NAME.fullmatch(entry.name)
    family = re.split(r"[.-]", entry.name)[0] if re.search(r"[.-]", entry.name) else entry.name[0]
    labels = {
        PREFIX + "size": aws_name[1] if aws_name else cpu,
        PREFIX + "family": family,
        PREFIX + "cpu": cpu,
        PREFIX + "memory": quantity_text(MEMORY, capacity.get(MEMORY, 0)),
        **entry.labels,
        INSTANCE_TYPE: entry.name,
        ARCH: entry.architecture,
    }
    sets = [
        one_of(OS, *entry.systems),
        one_of(ZONE, *(offering.zone for offering in entry.offerings)),
        one_of(CAPACITY_TYPE, *(offering.capacity_type for offering in entry.offerings)),
    ]
    requirements = Requirements([*(one_of(key, value) for key, value in labels.items()), *sets])
    overhead = OVERHEAD if entry.overhead is None else entry.overhead
    return InstanceType(entry.name, requirements, capacity, overhead, entry.offerings, entry.devices, family)
