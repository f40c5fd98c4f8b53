"""Which MIG profile HAMi cuts for a request, and where.

A profile starts only where its GPU model allows, so that free memory in sum says nothing. HAMi books the profile's
memory and cores, not the request's.
"""

from kerf.model.gpu import DeviceState, Placement, Profile

# HAMi fills these from the high end, so that the low half stays whole for a larger profile.
_FROM_THE_TOP = ("1g.", "3g.")


def place_profile(
    device: DeviceState, memory_mib: int, placed: tuple[Placement, ...]
) -> tuple[Profile, Placement] | None:
    """The smallest profile of at least `memory_mib` with a free place beside `placed`; None when there is none."""
    taken = {part for placement in placed for part in placement.slices}
    for profile in sorted(device.profiles, key=lambda p: (p.memory_mib, p.slice_count)):
        if profile.memory_mib < memory_mib:
            continue
        for start in sorted(profile.starts, reverse=profile.name.startswith(_FROM_THE_TOP)):
            placement = Placement(profile.name, start, profile.size)
            if taken.isdisjoint(placement.slices):
                return profile, placement
    return None
