"""`kerf gpus` and `kerf nodes`: what is there, card by card and node by node."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kerf.cli.cards import Card, Holder, cards_of
from kerf.cli.echo import echo
from kerf.cli.exits import DONE
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.naming import Wanted
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.inputs.wanted import key_of
from kerf.cli.output.screen import Screen, current
from kerf.cli.output.written import in_order
from kerf.cli.plan.json import API_VERSION, Json, cards_number
from kerf.cli.prices import price_cell, price_of, unpriced_text
from kerf.cli.render import counted, emit, table
from kerf.cli.stages import age_text, stage_of
from kerf.engine.explain.notes import unread_cards
from kerf.engine.supply.pricing import capacity_type_of, present_price
from kerf.model.constraints import INSTANCE_TYPE, NODE_POOL, ZONE
from kerf.model.instancetypes import price_text
from kerf.model.snapshot import ClusterNode

if TYPE_CHECKING:
    from kerf.cli.fill import NodeLine

_ENOUGH = 60
"""Columns from which bars have room beside their figures."""


def show_gpus(flags: dict[str, Any]) -> int:
    """Print each GPU and its holders; the exit code. Raises ObjectNotFound for a node that is not there."""
    read = _selected(read_input(Source.of(flags)), flags)
    for note in unread_cards(read.snapshot.nodes):
        echo(f"note: {note}", err=True)
    cards = [(node, card) for node in read.snapshot.nodes for card in cards_of(node, read.snapshot)]
    cards = in_order(cards, lambda card: _card_object(*card), flags["sort_by"])
    is_wide = flags["output"] == "wide"
    data = {"apiVersion": API_VERSION, "kind": "GPUInventory", "items": [_card_object(*card) for card in cards]}
    emit(flags["output"], lambda: data, lambda: _card_lines(cards, read.place, is_wide))
    return DONE


def show_nodes(flags: dict[str, Any]) -> int:
    """Print each node and the sum of their prices; the exit code. Raises ObjectNotFound for one that is not there."""
    read = _selected(read_input(Source.of(flags)), flags)
    nodes = in_order(read.snapshot.nodes, lambda node: _node_object(node, read), flags["sort_by"])
    read = replace(read, snapshot=replace(read.snapshot, nodes=tuple(nodes)))
    items = [_node_object(node, read) for node in nodes]
    data = {"apiVersion": API_VERSION, "kind": "NodeInventory", "currency": read.market.currency, "items": items}
    emit(flags["output"], lambda: data, lambda: _node_lines(read, flags["output"] == "wide"))
    return DONE


def _selected(read: ReadInput, flags: dict[str, Any]) -> ReadInput:
    """Only the nodes with the labels of -l, and of those the ones that are named, in the order of their names."""
    asked = parse_selector(flags["selector"])
    meant = [node for node in read.snapshot.nodes if asked.unsatisfied_by(node.labels) is None]
    names = [name.rpartition("/")[2] for name in flags["names"]]
    if names:
        known = {each.name: node for node in meant for each in (node.node, node.claim) if each is not None}
        found = [known[key_of(Wanted("node", name), known, read)] for name in names]
        meant = list({node.name: node for node in found}.values())
    return replace(read, snapshot=replace(read.snapshot, nodes=tuple(meant)))


def pool_of(node: ClusterNode) -> str:
    """The name of the node's pool; empty for a node of none."""
    return node.claim.node_pool if node.claim is not None else node.labels.get(NODE_POOL, "")


def _card_object(node: ClusterNode, card: Card) -> Json:
    return {"node": card.node, "nodePool": pool_of(node), **card_object(card)}


def card_object(card: Card) -> Json:
    """A card with what is used of it and its holders; `memoryMiB` 0 where it is unknown."""
    device = card.device
    return {
        "index": device.index,
        "id": device.id,
        "model": device.model,
        "memoryMiB": device.memory_mib,
        "usedMemoryMiB": device.used_memory_mib,
        "cores": device.cores,
        "usedCores": device.used_cores,
        "slots": device.slots,
        "usedSlots": device.used_slots,
        "allocated": cards_number(device.allocated_percent_points),
        "healthy": device.healthy,
        "holders": [
            {"pod": h.pod, "memoryMiB": h.memory_mib, "cores": h.cores, "slots": h.slots, "bound": h.is_bound}
            for h in card.holders
        ],
    }


def _is_drawn(screen: Screen, is_wide: bool) -> bool:
    """Whether bars take the place of the table; they need some room."""
    return screen.is_drawn and screen.has_headers and not is_wide and (screen.width or _ENOUGH) >= _ENOUGH


def _card_lines(cards: Iterable[tuple[ClusterNode, Card]], place: str, is_wide: bool) -> Sequence[str]:
    cards, screen = list(cards), current()
    if not cards:
        return [f"no GPU in the {place}"]
    if _is_drawn(screen, is_wide):
        from kerf.cli.cardpictures import pictures

        return list(pictures([(pool_of(node), card) for node, card in cards], screen))
    rows = [_card_row(node, card, is_wide) for node, card in cards]
    wide = ("NODEPOOL", "ID", "HEALTHY") if is_wide else ()
    return table(("NODE", "INDEX", "MODEL", "MEMORY", "USED", "CORES", "SLOTS", *wide, "HOLDERS"), rows)


def _card_row(node: ClusterNode, card: Card, is_wide: bool) -> tuple[str, ...]:
    device = card.device
    memory = f"{device.memory_mib} MiB" if device.memory_mib else "-"
    used = f"{device.used_memory_mib} MiB" if device.memory_mib else "-"
    shares = (f"{device.used_cores}/{device.cores}", f"{device.used_slots}/{device.slots}" if device.slots else "-")
    wide = (pool_of(node) or "-", device.id, "yes" if device.healthy else "no") if is_wide else ()
    holders = ", ".join(holder_text(holder) for holder in card.holders) or "-"
    return (card.node, str(device.index), device.model or "-", memory, used, *shares, *wide, holders)


def holder_text(holder: Holder) -> str:
    """`default/web-0 (1000 MiB, 50 cores)`; of a pod that is on no node yet `(1000 MiB, booked, not bound)`."""
    parts = [f"{holder.memory_mib} MiB" if holder.memory_mib else "", f"{holder.cores} cores" if holder.cores else ""]
    parts = [part for part in parts if part] or [counted(holder.slots, "slot")]
    return f"{holder.pod} ({', '.join(parts if holder.is_bound else [*parts, 'booked, not bound'])})"


def _node_object(node: ClusterNode, read: ReadInput) -> Json:
    labels = node.labels
    return {
        "node": node.node.name if node.node is not None else None,
        "nodeClaim": node.claim.name if node.claim is not None else None,
        "nodePool": pool_of(node),
        "instanceType": labels.get(INSTANCE_TYPE, ""),
        "capacityType": capacity_type_of(node),
        "zone": labels.get(ZONE, ""),
        "stage": stage_of(node),
        "ageSeconds": int(max(0, read.snapshot.taken_at_s - created_s(node))),
        "gpus": len(node.devices),
        "gpusAllocated": cards_number(sum(device.allocated_percent_points for device in node.devices)),
        "pods": [pod.key for pod in node.pods],
        "perHour": price_of(node, read),
    }


def created_s(node: ClusterNode) -> float:
    """When its claim was made; the node itself where it has none."""
    if node.claim is not None:
        return node.claim.created_s
    return node.node.created_s if node.node is not None else 0


def _node_lines(read: ReadInput, is_wide: bool) -> Sequence[str]:
    nodes, screen, money = read.snapshot.nodes, current(), f"{read.market.currency}/H"
    if not nodes:
        return [f"no node in the {read.place}"]
    if _is_drawn(screen, is_wide):
        from kerf.cli.fill import fill_lines

        others = ("PODS", "AGE", "TYPE", "NODEPOOL", "CAPACITY", "ZONE")
        table_lines: Sequence[str] = fill_lines([_filled(node, read) for node in nodes], money, others, screen)
    else:
        wide = ("NODECLAIM",) if is_wide else ()
        headers = ("NODE", *wide, "NODEPOOL", "TYPE", "CAPACITY", "ZONE", "STAGE", "AGE", "GPUS", "PODS", money)
        table_lines = table(headers, (_node_row(node, read, is_wide) for node in nodes))
    if not screen.has_headers:
        return table_lines
    total = sum(present_price(node, read.world.supply) for node in nodes)
    unknown = unpriced_text(nodes, read)
    sum_text = f"{counted(len(nodes), 'node')}, {price_text(total)} {read.market.currency}/h"
    return [*table_lines, "", f"{sum_text}; {unknown}" if unknown else sum_text]


def _filled(node: ClusterNode, read: ReadInput) -> "NodeLine":
    """The node as a terminal shows it: the cells of its row, and how full it is."""
    from kerf.cli.fill import NodeLine, fill_of

    name, pool, kind, capacity, zone, stage, age, _, pods, price = _node_row(node, read, is_wide=False)
    return NodeLine(name, stage, fill_of(node), price, (pods, age, kind, pool, capacity, zone))


def _node_row(node: ClusterNode, read: ReadInput, is_wide: bool) -> tuple[str, ...]:
    name = node.node.name if node.node is not None else f"({node.name})"
    wide = (node.claim.name if node.claim is not None else "-",) if is_wide else ()
    labels = [node.labels.get(INSTANCE_TYPE) or "-", capacity_type_of(node) or "-", node.labels.get(ZONE) or "-"]
    age = age_text(read.snapshot.taken_at_s - created_s(node))
    price = price_cell(node, read)
    counts = (_gpus_text(node), str(len(node.pods)), price)
    return (name, *wide, pool_of(node) or "-", *labels, stage_of(node), age, *counts)


def _gpus_text(node: ClusterNode) -> str:
    if not node.devices:
        return "-"
    used = sum(device.allocated_percent_points for device in node.devices)
    return f"{cards_number(used):g}/{len(node.devices)}"
