"""Which MIG profiles HAMi may cut, which it cuts for a request, and where.

A profile starts only where its GPU model allows, so free memory in sum says nothing. HAMi books the profile's
memory and cores, not the request's.
"""

from kerf.model.gpu import DeviceShape, DeviceState, Placement, Profile
from kerf.sharing.hami.config import HamiConfig

HAMI_MODE = "kerf.dev/hami-mode"
"""Annotation of a pool whose nodes HAMi's plugin runs in the mode `mig`: HAMi itself names such nodes one by one."""
# HAMi fills these from the high end, so the low half stays whole for a larger profile.
_FROM_THE_TOP = ("1g.", "3g.")


def allowed_profiles(shape: DeviceShape, config: HamiConfig) -> tuple[Profile, ...]:
    """The profiles of a card that HAMi's allowlist names for its model, in the card's order.

    Without a list of its own HAMi takes one profile for each size, neither with twice the memory nor with an engine
    more, and of seven slices no 4g (v2.10.0, chart `migProfileAllowlist`).
    """
    if config.mig_allowlist is None:
        return tuple(p for p in shape.profiles if _is_plain(p))
    names = f"{shape.model.registered_as} {shape.model.name}"
    allowed = {name for model, profiles in config.mig_allowlist if model in names for name in profiles}
    return tuple(p for p in shape.profiles if p.name in allowed)


def _is_plain(profile: Profile) -> bool:
    is_doubled = profile.slice_count == 1 and profile.size == 2
    is_four_of_seven = profile.slice_count == 4 and profile.cores < 100
    return "+" not in profile.name and not is_doubled and not is_four_of_seven


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
