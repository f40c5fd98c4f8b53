"""What schedulers said of nodes that were bought for a pod, and where none is asked, in words."""

from collections.abc import Callable

from kerf.model.causes import Cause, NodeNamed
from kerf.model.rejections import AnotherIsTried, BoughtInVain, RejectedByScheduler

Said = RejectedByScheduler | AnotherIsTried | BoughtInVain


def said_text(cause: Said, words: Callable[[Cause], str]) -> str:
    """The cause as a sentence; `words` has those of any other."""
    if isinstance(cause, AnotherIsTried):
        first = f"pod {cause.pod} of its workload is tried first"
        return f'{cause.scheduler} refused it before, and {first}: "{cause.said}"'
    if isinstance(cause, BoughtInVain):
        return _in_vain(cause.node, words(cause.lacks), cause.scheduler, cause.said)
    if cause.lacks:
        return _in_vain(cause.nodes[0], cause.lacks, cause.scheduler, cause.said)
    where = f"node {cause.nodes[0]}" if len(cause.nodes) == 1 else f"nodes {', '.join(cause.nodes)}"
    return f'{cause.scheduler} refuses it on {where}, where the plan has room for it: "{cause.said}"'


def named_node_text(cause: NodeNamed) -> str:
    """Why nothing is bought for pods whose manifest names a node."""
    more = len(cause.makers) - 1
    who = f"{cause.makers[0]} and {more} more name" if more else f"{cause.makers[0]} names"
    pods = "the pod" if cause.pods == 1 else f"the {cause.pods} pods"
    where = "" if cause.is_there else "; no node of that name is known"
    return f"{who} node {cause.node} (nodeName): no scheduler sees {pods}, and nothing is bought{where}"


def _in_vain(node: str, lacks: str, scheduler: str, said: str) -> str:
    return f'node {node} was bought for it and cannot hold it: {lacks}; {scheduler} says "{said}"'
