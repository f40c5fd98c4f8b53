"""What exactly is lacking where HAMi says only `1/1 CardInsufficientMemory`.

HAMi's reason counts cards; whoever must change a manifest needs the figure: how many MiB more one card would have to
have free. It is the smallest over the cards, never a sum, since a slice lives on one card.
"""

from collections.abc import Iterable

from kerf.model.gpu import DeviceState
from kerf.sharing.family import NoFit
from kerf.sharing.hami_fit import (
    CORDONED,
    CORES_EXHAUSTED,
    EXCLUSIVE,
    NO_CORES,
    NO_MEMORY,
    NO_MIG_PLACE,
    NO_SLOT,
    NOT_HEALTHY,
    OVER_QUOTA,
    TOO_FEW,
    VENDOR,
    WRONG_ID,
    WRONG_TYPE,
    Shortage,
)
from kerf.sharing.hami_options import MIG_MODE, HamiOptions
from kerf.sharing.mig_geometry import free_starts


def explain(shortage: Shortage, options: HamiOptions) -> NoFit:
    """HAMi's reason with the smallest quantity that is lacking on any one card."""
    if shortage.reason == TOO_FEW:
        return _too_few_cards(shortage)
    lacks = sorted(_lacks(shortage))
    if lacks:
        _, amount, unit, detail = lacks[0]
        cut = next((card for card in shortage.devices if card.mode == MIG_MODE), None)
        return NoFit(shortage.reason, f"{amount} {unit}", amount, f"{detail}; {_free(cut)}" if cut else detail)
    return NoFit(shortage.reason, detail=_other_cause(shortage, options))


def _too_few_cards(shortage: Shortage) -> NoFit:
    wanted, there = shortage.request.count, sum(VENDOR in device.model.upper() for device in shortage.devices)
    more = wanted - there
    detail = f"needs {_gpus(wanted)} on one node; this one has {there}"
    return NoFit(TOO_FEW, _gpus(more), more, detail)


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _lacks(shortage: Shortage) -> Iterable[tuple[int, int, str, str]]:
    """For each card that a quantity would mend: the lack in 1/10000 of the need, the lack, its unit, the sentence."""
    request = shortage.request
    cards = [(shortage.devices[position], reason) for position, reason in shortage.refusals]
    largest = max((card.free_memory_mib for card, reason in cards if reason == NO_MEMORY), default=0)
    most = max((card.free_cores for card, reason in cards if reason == NO_CORES), default=0)
    cores = min(request.cores, 100)
    where = "on one GPU" if request.count == 1 else f"on each of {request.count} GPUs"
    for card, reason in cards:
        if reason == NO_MEMORY:
            need = request.memory_on(card)
            lack = need - card.free_memory_mib
            yield lack * 10_000 // max(1, need), lack, "MiB", f"needs {need} MiB {where}; the largest free is {largest}"
        elif reason == NO_CORES:
            lack = cores - card.free_cores
            yield lack * 10_000 // max(1, cores), lack, "cores", f"needs {cores} cores {where}; the most free is {most}"
        elif reason in (NO_SLOT, EXCLUSIVE, CORES_EXHAUSTED):
            yield 10_000, 1, "GPU", _SENTENCES[reason]


_SENTENCES = {
    NO_SLOT: "needs a free slot of a GPU; every slot is taken",
    EXCLUSIVE: "needs a GPU for itself; none is idle",
    CORES_EXHAUSTED: "needs a GPU with cores left; all of them are booked",
}


_OTHER_SENTENCES = {
    OVER_QUOTA: "the ResourceQuota of its namespace does not leave that much",
    CORDONED: "every GPU that would do is cordoned",
    NOT_HEALTHY: "every GPU that would do is unhealthy",
}


def _other_cause(shortage: Shortage, options: HamiOptions) -> str:
    reasons = {reason for _, reason in shortage.refusals}
    if WRONG_TYPE in reasons:
        return _type_sentence(shortage.devices, options)
    if NO_MIG_PLACE in reasons:
        return _mig_sentence(shortage)
    if WRONG_ID in reasons:
        wanted = ", ".join(options.use_ids or ())
        return f"asks for the GPU {wanted}, which is not here" if wanted else "excludes each of these GPUs by its UUID"
    return next((sentence for reason, sentence in _OTHER_SENTENCES.items() if reason in reasons), "")


def _mig_sentence(shortage: Shortage) -> str:
    """The profiles that would do with their starts, none of which is free, and what still is on that card."""
    position = next(position for position, reason in shortage.refusals if reason == NO_MIG_PLACE)
    card = shortage.devices[position]
    need = shortage.request.memory_on(card)
    large = [p for p in card.profiles if p.memory_mib >= need]
    if not large:
        most = max((p.memory_mib for p in card.profiles), default=0)
        return f"needs {need} MiB in one MIG instance; the largest profile has {most}"
    fitting = ", ".join(f"{p.name} at {_starts(p.starts)}" for p in large)
    return f"needs {need} MiB in one MIG instance ({fitting}): none of these starts is free; {_free(card)}"


def _free(card: DeviceState) -> str:
    free = [f"{name} at {_starts(starts)}" for name, starts in free_starts(card.profiles, card.placements).items()]
    return f"free starts: {', '.join(free)}" if free else "no profile has a free start"


def _starts(starts: Iterable[int]) -> str:
    return "/".join(map(str, sorted(starts)))


def _type_sentence(devices: tuple[DeviceState, ...], options: HamiOptions) -> str:
    here = ", ".join(sorted({device.model for device in devices}))
    if options.use_types is not None:
        return f"asks for a GPU type with {' or '.join(options.use_types) or 'nothing'} in its name; here is {here}"
    if options.mode is not None:
        modes = ", ".join(sorted({device.mode for device in devices}))
        return f"asks for the sharing mode {options.mode or 'nothing'}; here is {modes}"
    return f"excludes GPU types with {' or '.join(options.avoid_types or ())} in their name; here is {here}"
