"""The pods that a plan is made for: those that wait, those that windows let in, and room for those that do not exist.

All code that plans, explains or moves pods asks here, so all of them keep the same room.
"""

from dataclasses import replace

from kerf.engine.decision import Refusal
from kerf.engine.headroom.bookings import awaited_request, bookings, unmade
from kerf.engine.headroom.buffers import buffered, ignored, unmade_buffer
from kerf.engine.headroom.grants import Grants, opportunistic_spec
from kerf.engine.headroom.prewarm import prewarming_pods
from kerf.engine.headroom.windows.admission import Judged, Shares, judged
from kerf.engine.headroom.windows.phases import Windows
from kerf.engine.headroom.windows.warm import virtual_pods
from kerf.engine.place.trial import Trial
from kerf.engine.supply.offered import Supply
from kerf.model.causes import AwaitsRequest, Name
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodSpec, label_keys_of, samples
from kerf.model.snapshot import ClusterSnapshot


def waiting_pods(snapshot: ClusterSnapshot, supply: Supply, trial: Trial, out: frozenset[str] = frozenset()) -> Judged:
    """Waiting pods without the gates that windows open, then the virtual ones; opportunistic ones apart.

    Those that are left `out`, by `namespace/name`, are in none of them.
    """
    pods = list(snapshot.pending)
    if any(pod.is_daemon for pod in snapshot.pending_samples):
        pods = [pod for pod in pods if not pod.is_daemon]
    pods = [pod for pod in pods if pod.key not in out] if out else pods
    grants = Grants(snapshot)
    # First, as `gangs` knows them: what they are granted must not depend on windows and runs.
    booked = bookings(snapshot, grants)
    awaited = {pod.key: request for pod in pods if (request := awaited_request(pod, booked))} if booked else {}
    awaiting = [pod for pod in pods if pod.key in awaited] if awaited else []
    pods = [pod for pod in pods if pod.key not in awaited] if awaited else pods
    windows = Windows(snapshot)
    found = judged(pods, snapshot.pending_samples, windows, Shares(trial, supply), snapshot.taken_at_s)
    own: dict[str, list[Pod]] = {}
    for pod in (*snapshot.windowed, *found.pods) if windows.windows else ():
        for window in windows.of(pod):
            own.setdefault(window.name, []).append(pod)
    found.opportunistic = _idle(found, snapshot)
    if found.opportunistic:
        found.pods = [pod for pod in found.pods if not pod.is_opportunistic]
    real = len(found.pods)
    found.pods += virtual_pods(windows, own, supply.families, grants)
    found.pods += prewarming_pods(snapshot, grants)
    # Last, as its pods: what a buffer keeps free takes nothing from what others ask for.
    buffers = buffered(snapshot, grants)
    grants.limited += (each.limited for each in buffers if each.limited is not None)
    found.notes += grants.limited
    strategies = ignored(snapshot)
    found.notes += [] if strategies is None else [strategies]
    found.pods += [pod for booking in booked for pod in booking.pods if pod.key not in out]
    found.pods += [pod for each in buffers for pod in each.pods]
    found.of_each_mark += samples(found.pods[real:])
    found.held += (Refusal((unmade_buffer(each),), Stage.INVALID, each.problem) for each in buffers if each.problem)
    found.held += (Refusal(tuple(unmade(each)), Stage.INVALID, each.problem) for each in booked if each.problem)
    found.held += (Refusal(tuple(unmade(each)), Stage.HELD, each.limited) for each in booked if each.limited)
    # Planned for by itself a pod would take the room, and its request would never have it all.
    found.held += (Refusal((pod,), Stage.HELD, AwaitsRequest(Name(awaited[pod.key]))) for pod in awaiting)
    return found


def _idle(judged: Judged, snapshot: ClusterSnapshot) -> list[Pod]:
    """The opportunistic ones, on the pools that let them, without the gate that is ours."""
    if OPPORTUNISTIC not in label_keys_of(judged.of_each_mark):
        return []
    # Equal pods share a spec, and must share the changed one: shapes are compared by it.
    specs: dict[tuple[int, str], PodSpec] = {}
    found = []
    for pod in judged.pods:
        if pod.is_opportunistic:
            key = id(pod.spec), pod.namespace
            if key not in specs:
                specs[key] = opportunistic_spec(_opened(pod.spec), pod.namespace, snapshot.node_pools)
            found.append(pod if specs[key] == pod.spec else replace(pod, spec=specs[key]))
    return found


def _opened(spec: PodSpec) -> PodSpec:
    gates = tuple(gate for gate in spec.scheduling_gates if gate != OPPORTUNISTIC)
    return spec if gates == spec.scheduling_gates else replace(spec, scheduling_gates=gates)
