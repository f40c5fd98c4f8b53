"""Pods and the pools of the same input: taints and labels that keep every one of them away."""

from kerf.lint.context import Held, LintContext, asks_cards, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject
from kerf.model.constraints import HOSTNAME, NODE_POOL, Requirements, untolerated
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod


def names_pool(held: Held, pool: NodePool) -> bool:
    """Whether a pod is meant for the pool: it asks for GPUs, or for a label that the pool itself sets."""
    own = {*pool.labels, NODE_POOL}
    return asks_cards(held.pod.spec.requests) or any(own & set(asked) for asked in held.pod.spec.alternatives)


@rule("KL041", "untolerated-taint", Severity.ERROR, WORKLOADS)
def untolerated_taint(subject: Subject, context: LintContext) -> Notes:
    """Pods can run on no pool, for want of a toleration alone.

    Labels and sizes agree with a pool of the input, its taint keeps the pods off, and no other pool takes them: they
    wait for ever, and Karpenter's event says `did not tolerate taint`. Looked at are pods that ask for GPUs or for a
    label that the pool sets; where other nodes exist that the input does not show, suppress the finding. Document 004,
    step 1.
    """
    held = held_by(subject)
    if held is None or subject.kind == "DaemonSet":
        return
    fitting = [pool for pool in context.judged_pools if context.agrees(held.pod, pool) and context.fits(held.pod, pool)]
    kept_off = [(pool, untolerated(pool.taints, held.pod.spec.tolerations)) for pool in fitting]
    if not kept_off or any(taint is None for _, taint in kept_off):
        return
    meant = [(pool, taint) for pool, taint in kept_off if taint is not None and names_pool(held, pool)]
    if not meant or context.runs_on_a_node(held.pod):
        return
    pool, taint = meant[0]
    more = f" (nor those of {len(kept_off) - 1} more)" if len(kept_off) > 1 else ""
    value = f"operator: Equal, value: {taint.value}" if taint.value else "operator: Exists"
    hint = f"tolerations: [{{key: {taint.key}, {value}, effect: {taint.effect}}}]"
    if taint.key in held.pod.spec.requests:
        hint += ", unless the admission plug-in ExtendedResourceToleration adds it"
    yield Note(
        (*subject.pod, "tolerations"), f"does not tolerate taint {taint} of NodePool {pool.name}{more}", hint, True
    )


@rule("KL042", "label-of-no-pool", Severity.ERROR, WORKLOADS)
def label_of_no_pool(subject: Subject, context: LintContext) -> Notes:
    """Pods ask for a value of a label that no pool gives it.

    Some pool of the input sets the label, with another value: mostly the pod's selector or the pool's label has been
    changed alone. Both are in the finding. Document 004, FAQ 1.
    """
    held = held_by(subject)
    pools = context.judged_pools
    if held is None or not pools or any(context.agrees(held.pod, pool) for pool in pools):
        return
    if not context.runs_on_a_node(held.pod):
        yield from _unmet(held, held.pod.spec.alternatives[0], context)


def _unmet(held: Held, asked: Requirements, context: LintContext) -> Notes:
    subject = held.subject
    for key, requirement in sorted(asked.items()):
        given = {pool.name: dict(pool.node_labels)[key] for pool in context.judged_pools if key in pool.node_labels}
        if not given or requirement.allows_absence or any(requirement.has(value) for value in given.values()):
            continue
        listed = ", ".join(
            f"{value} (NodePool {name})" if key != NODE_POOL else value for name, value in sorted(given.items())
        )
        wanted = sorted(requirement.values)
        close = nearest(wanted[0], sorted(set(given.values())), 0.5) if wanted else ""
        hint = f"is {close} meant?" if close else ""
        is_selector = key in subject.mapping(*subject.pod, "nodeSelector")
        path = (*subject.pod, "nodeSelector", key) if is_selector else (*subject.pod, "affinity")
        yield Note(path, f"asks {requirement}; the pools have {listed}", hint, at_key=not is_selector)


@rule("KL043", "pinned-to-a-node", Severity.WARNING, WORKLOADS)
def pinned_to_a_node(subject: Subject, context: LintContext) -> Notes:
    """Pods are pinned to a node by its name.

    A node that an autoscaler launches gets a name that is not known before: nothing is ever launched for such
    pods, and when their node goes they wait for ever. With `nodeName` no scheduler sees them either: they fail where
    the node has no room. To keep pods together use pod affinity; to choose a kind of machine a label of the pool.
    Document 001, line 26.
    """
    held = held_by(subject)
    if held is None or held.pod.uid or subject.kind == "DaemonSet":
        return
    del context
    hint = "pod affinity keeps pods together, a label of the pool chooses machines"
    if held.pod.node_name:
        if not isinstance(subject.value, Pod) or held.pod.names_its_node:
            message = f"nodeName {held.pod.node_name}: no scheduler sees the pods, and no node is launched for them"
            yield Note((*subject.pod, "nodeName"), message, hint)
        return
    if all(HOSTNAME in asked and not asked[HOSTNAME].complement for asked in held.pod.spec.alternatives):
        names = sorted(held.pod.spec.alternatives[0][HOSTNAME].values)
        is_selector = HOSTNAME in subject.mapping(*subject.pod, "nodeSelector")
        path = (*subject.pod, "nodeSelector", HOSTNAME) if is_selector else (*subject.pod, "affinity")
        message = f"pinned to node {', '.join(names)}: no new node will ever have that name"
        yield Note(path, message, hint, at_key=True)
