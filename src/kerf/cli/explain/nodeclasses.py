"""A NodeClass: whether it can be used, what its selectors found, and who uses it."""

from collections.abc import Iterator

from kerf.cli.explain.explanation import Explanation
from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import Json
from kerf.cli.render import counted, some, table
from kerf.model.nodeclaim import TRUE
from kerf.model.snapshot import NodeClass

_MOST_FOUND = 6


def explain_node_classes(name: str, read: ReadInput) -> Explanation:
    """All NodeClasses of that name; classes of several kinds may share one."""
    found = [each for each in read.snapshot.node_classes if each.name == name]
    items = [_object(each, read) for each in found]
    data = items[0] if len(items) == 1 else {"kind": "NodeClassList", "name": name, "items": items}
    return Explanation(data, tuple(line for each in found for line in _lines(each, read)))


def _users(node_class: NodeClass, read: ReadInput) -> tuple[list[str], list[str]]:
    """Names of the NodePools and the NodeClaims that name it."""
    claims = [node.claim for node in read.snapshot.nodes if node.claim is not None]
    return (
        [pool.name for pool in read.snapshot.node_pools if pool.node_class == node_class.reference],
        [claim.name for claim in claims if claim.node_class == node_class.reference],
    )


def _object(node_class: NodeClass, read: ReadInput) -> Json:
    pools, claims = _users(node_class, read)
    return {
        "kind": node_class.kind,
        "name": node_class.name,
        "ready": node_class.is_ready,
        "reason": node_class.reason,
        "nodePools": pools,
        "nodeClaims": claims,
        "conditions": [
            {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for each in node_class.conditions
        ],
        "selected": {key: list(values) for key, values in node_class.selected},
    }


def _lines(node_class: NodeClass, read: ReadInput) -> Iterator[str]:
    pools, claims = _users(node_class, read)
    state = "ready" if node_class.is_ready else f"not ready: {node_class.reason}"
    yield f"{node_class.kind} {node_class.name}: {state}"
    used = f"NodePool {some(pools, _MOST_FOUND)}" if pools else "no NodePool"
    yield f"  used by {used}, {counted(len(claims), 'NodeClaim')}"
    for key, values in node_class.selected:
        yield f"  {key}: {some(values, _MOST_FOUND)}"
    if not node_class.conditions:
        yield "  it has no conditions: no controller has looked at it yet"
        return
    # What is wrong comes first.
    ordered = sorted(node_class.conditions, key=lambda each: (each.status == TRUE, each.type))
    rows = [(each.type, each.status, each.reason or "-", each.message or "-") for each in ordered]
    yield ""
    yield from table(("CONDITION", "STATUS", "REASON", "MESSAGE"), rows, indent="  ")
