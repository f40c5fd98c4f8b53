"""A Plan as the JSON that docs/reference/plan.md describes; every other form of output shows the same facts."""

from collections.abc import Iterable, Sequence
from typing import Any

from kerf.cli.plan.nodecards import NodeCards
from kerf.cli.render import patch_text, whole
from kerf.engine.explain.causes import misfit_text, missing_text
from kerf.engine.explain.lowerbounds import ignored_text
from kerf.engine.world import World
from kerf.model.gpu import Slice
from kerf.model.instancetypes import MICRO, price_number
from kerf.model.lowerbound import NANO, LowerBound, PriceSplit, WholeType
from kerf.model.plan import (
    Admission,
    Deletion,
    Eviction,
    Launch,
    Misfit,
    NodePlacement,
    Patch,
    Plan,
    Repartition,
    RunnerUp,
    Unplaced,
)

API_VERSION = "kerf.dev/v1alpha1"
Json = dict[str, Any]


def plan_object(plan: Plan, world: World) -> Json:
    """The whole plan, keys in the order of the reference."""
    return whole(plan_parts(plan, world))


def plan_parts(plan: Plan, world: World) -> Json:
    """The same with an iterator for each list that grows with the pods: all of it takes more room than the plan."""
    cost, gpus, cards = plan.cost, plan.gpus, NodeCards(world)
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "strategy": plan.strategy,
        "gpus": {"paid": cards_number(gpus.paid), "allocated": cards_number(gpus.allocated), "kerf": _whole(gpus.kerf)},
        "cost": {
            "currency": cost.currency,
            "perHourBefore": price_number(cost.before_micro),
            "perHourAfter": price_number(cost.after_micro),
            "perHourLowerBound": None if cost.bound_micro is None else price_number(cost.bound_micro),
        },
        **({"lowerBound": _proof(cost.bound)} if cost.bound is not None and cost.bound.worths else {}),
        "launches": map(launch_object, plan.launches),
        **({"relabels": [_relabel(relabel) for relabel in plan.relabels]} if plan.relabels else {}),
        "deletions": [_deletion(each, cards) for each in plan.deletions if not each.replaced_by],
        "replacements": [_replacement(each, cards) for each in plan.deletions if each.replaced_by],
        "evictions": map(_eviction, plan.evictions),
        "placements": (placement_object(placement, cards) for placement in plan.placements),
        "unplaced": map(unplaced_object, plan.unplaced),
        "notes": list(plan.notes),
        "admissions": map(_admission, plan.admissions),
    }


def _proof(bound: LowerBound) -> Json:
    """What proves the bound: prices of what nodes have, and what pods are worth at these."""
    return {
        "perHour": price_number(bound.micro),
        "dearestNodePerHour": price_number(bound.node_micro),
        "ignores": [ignored_text(each) for each in bound.ignored],
        "prices": [_split(split) for split in bound.splits],
        "wholeNodes": [
            {"nodePool": each.node_pool, "instanceType": each.instance_type, **_whole_cards(each)}
            for each in bound.whole
        ],
        "worth": [{"pod": w.pod, "pods": w.count, "perHour": _nano_number(w.nano)} for w in bound.worths],
    }


def _split(split: PriceSplit) -> Json:
    """The price of a type in parts; `card` is for each of its cards."""
    cards = {
        "cards": split.cards,
        "card": _nano_number(split.card),
        "slices": [
            {
                **({"profile": p.profile} if p.profile else {"memoryMiB": p.memory_mib, "cores": p.cores}),
                "perHour": _nano_number(p.nano),
            }
            for p in split.pieces
        ],
    }
    return {
        "nodePool": split.node_pool,
        "instanceType": split.instance_type,
        "perHour": price_number(split.price_micro),
        **_whole_cards(split),
        "parts": {name: _nano_number(part) for name, part in split.parts},
        **(cards if split.cards else {}),
    }


def _whole_cards(of: PriceSplit | WholeType) -> Json:
    return {} if of.whole_cards is None else {"wholeCards": of.whole_cards}


def _nano_number(nano: int) -> float | int:
    """Nano-units as a JSON number; exact to nine decimals."""
    whole, rest = divmod(nano, MICRO * NANO)
    return whole if not rest else float(f"{whole}.{rest:09d}")


def _eviction(eviction: Eviction) -> Json:
    """An opportunistic pod that gives its place back."""
    who = "scheduler" if eviction.by_scheduler else "kerf"
    return {"pod": eviction.pod, "node": eviction.node, "for": eviction.for_pod, "by": who}


def _admission(admission: Admission) -> Json:
    """A pod whose gate may be opened; `gpus` is what it takes of cards."""
    window = {"window": admission.window, "gpus": cards_number(admission.share)} if admission.window else {}
    return {"pod": admission.pod, "gates": list(admission.gates), **window}


def cards_number(ten_thousandths: int) -> float | int:
    """Parts of cards as a number of cards."""
    return ten_thousandths // 10_000 if ten_thousandths % 10_000 == 0 else ten_thousandths / 10_000


def _whole(number: float) -> float | int:
    """0 and not 0.0, so the same value is always the same text."""
    return int(number) if number == int(number) else number


def launch_object(launch: Launch) -> Json:
    """One node to buy; `devices` only where it has some."""
    slices = [part for pod in launch.pods for part in pod.slices]
    devices = [_device(index, shape.model.name, shape.memory_mib, slices) for index, shape in enumerate(launch.devices)]
    return {
        "name": launch.name,
        "nodePool": launch.node_pool,
        "instanceType": launch.offering.instance_type,
        "capacityType": launch.offering.capacity_type,
        "zone": launch.offering.zone,
        "perHour": price_number(launch.price_micro),
        "alternatives": list(launch.alternatives),
        **({"runnerUp": _runner_up(launch.runner_up)} if launch.runner_up is not None else {}),
        "pods": [pod.pod for pod in launch.pods],
        **({"devices": devices} if devices else {}),
        **({"labels": dict(launch.labels)} if launch.labels else {}),
        **({"replaces": list(launch.replaces)} if launch.replaces else {}),
        "follow": launch.follow,
        **_turns(launch),
        "why": launch.why,
    }


def _runner_up(found: RunnerUp) -> Json:
    return {"instanceType": found.instance_type, "nodes": found.nodes, "perHour": price_number(found.price_micro)}


def _turns(launch: Launch) -> Json:
    """Pods in the turns in which they must come to their cards, where any order will not do."""
    number = 1 + max((placed.turn for placed in launch.pods), default=0)
    found = [[placed.pod for placed in launch.pods if placed.turn == turn] for turn in range(number)]
    return {"turns": found} if number > 1 else {}


def _relabel(relabel: Repartition) -> Json:
    """An idle node that gets another configuration of GPU sharing."""
    return {
        "node": relabel.node,
        "nodePool": relabel.node_pool,
        "labels": dict(relabel.labels),
        "pods": [placed.pod for placed in relabel.pods],
        "why": relabel.why,
    }


def placement_object(placement: NodePlacement, cards: NodeCards) -> Json:
    """A pod on a node that is there or on its way, with the cards it uses there."""
    there = cards.of(placement.node)
    devices = [
        _device(index, there[index].model, there[index].memory_mib, placement.pod.slices)
        for index in placement.pod.cards
    ]
    return {"pod": placement.pod.pod, "node": placement.node, "devices": devices}


def _device(index: int, model: str, memory_mib: int, slices: Iterable[Slice]) -> Json:
    held = [slice_object(part) for part in slices if part.device == index]
    return {"index": index, "model": model, "memoryMiB": memory_mib, "slices": held}


def slice_object(part: Slice) -> Json:
    """A part of one card; the name under which kubelet counts it, and the MIG instance that HAMi cuts, where known."""
    placed = part.placement
    return {
        "pod": part.pod,
        "container": part.container,
        "memoryMiB": part.memory_mib,
        "cores": part.cores,
        **({"resource": part.resource} if part.resource else {}),
        **({"profile": placed.profile, "start": placed.start} if placed is not None else {}),
    }


def _deletion(deletion: Deletion, cards: NodeCards) -> Json:
    moves = [placement_object(placement, cards) for placement in deletion.moved]
    return {
        "node": deletion.node,
        "nodePool": deletion.node_pool,
        "reason": deletion.reason,
        "perHourSaved": price_number(deletion.saved_micro),
        **({"moves": moves} if moves else {}),
        "why": deletion.why,
    }


def _replacement(deletion: Deletion, cards: NodeCards) -> Json:
    """A node that goes once the launches that get its pods are up."""
    return {
        **_deletion(deletion, cards),
        "launches": list(deletion.replaced_by),
        "moved": [p.pod.pod for p in deletion.moved],
    }


def unplaced_object(unplaced: Unplaced) -> Json:
    """A pod that nothing serves, with every near miss."""
    return {
        "pod": unplaced.pod,
        "stage": unplaced.stage.value,
        "reason": unplaced.reason,
        **({"place": unplaced.place} if unplaced.place else {}),
        "hint": unplaced.hint,
        "patch": None if unplaced.patch is None else patch_object(unplaced.patch),
        **({"more": [patch_object(patch) for patch in unplaced.more]} if unplaced.more else {}),
        "misfits": misfit_objects(unplaced.misfits),
    }


def patch_object(patch: Patch) -> Json:
    """A change that would help; `patch` is JSON text."""
    return {"kind": patch.kind, "namespace": patch.namespace, "name": patch.name, "patch": patch_text(patch)}


def misfit_objects(misfits: Sequence[Misfit]) -> list[Json]:
    """Why each target refuses the pod."""
    return [
        {"target": str(m.target), "stage": m.stage.value, "reason": misfit_text(m), "missing": missing_text(m)}
        for m in misfits
    ]
