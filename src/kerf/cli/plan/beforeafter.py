"""What a plan changes, for a terminal: nodes, cost, cards and waiting pods now and after."""

from collections.abc import Iterator

from kerf.cli.output.bars import bar
from kerf.cli.output.screen import Screen
from kerf.cli.output.tables import Fitted, Shown, unbroken
from kerf.model.instancetypes import price_text
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Plan
from kerf.model.snapshot import ClusterSnapshot

_BAR = 12


def before_after(plan: Plan, snapshot: ClusterSnapshot, screen: Screen) -> Iterator[Shown]:
    """Four rows at most, each with a bar of now and of after; equal bars are equal amounts in a row."""
    nodes = len(snapshot.nodes)
    later = nodes + len(plan.launches) - len(plan.deletions)
    cost = plan.cost
    waiting = sum(1 for pod in snapshot.pending if not is_virtual(pod.key))
    unplaced = sum(1 for each in plan.unplaced if not is_virtual(each.pod))
    rows = [_row("nodes", nodes, later, str(nodes), str(later), screen)]
    money = f" {cost.currency}/h"
    rows.append(
        _row("cost", cost.before_micro, cost.after_micro, price_text(cost.before_micro) + money,
             price_text(cost.after_micro) + money, screen)
    )  # fmt: skip
    devices = [device for node in snapshot.nodes for device in node.devices]
    used = sum(device.allocated_percent_points for device in devices)
    rows += _cards_row(used, 10_000 * len(devices), plan, screen)
    rows.append(_row("pods waiting", waiting, unplaced, str(waiting), str(unplaced), screen))
    for lines in Fitted(("", "NOW", "AFTER"), rows, "", screen, is_styled=True).lines():
        yield from lines


def _row(name: str, now: int, after: int, now_text: str, after_text: str, screen: Screen) -> tuple[str, ...]:
    most = max(now, after)
    return (name, _cell(now, most, now_text, screen), _cell(after, most, after_text, screen))


def _cards_row(used: int, there: int, plan: Plan, screen: Screen) -> list[tuple[str, ...]]:
    """How much of the cards is used; no row where there are none."""
    paid, allocated = plan.gpus.paid, plan.gpus.allocated
    if not there and not paid:
        return []
    cells = (_cell(*pair, _share(*pair), screen) for pair in ((used, there), (allocated, paid)))
    return [("GPUs in use", *cells)]


def _share(part: int, whole: int) -> str:
    numbers = (f"{each / 10_000:.2f}".rstrip("0").rstrip(".") for each in (part, whole))
    return " of ".join(numbers)


def _cell(part: int, whole: int, text: str, screen: Screen) -> str:
    return unbroken(f"{bar(part, whole, _BAR, screen)} {text}")
