"""What schedulers said of nodes that were bought for a pod, in words."""

from collections.abc import Callable

from kerf.model.causes import Cause
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


def _in_vain(node: str, lacks: str, scheduler: str, said: str) -> str:
    return f'node {node} was bought for it and cannot hold it: {lacks}; {scheduler} says "{said}"'
