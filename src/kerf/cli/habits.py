"""What people who know kubectl type: it works, or is answered with what to type instead."""

from collections.abc import Sequence

import click

_NODES, _GPUS = ("node", "nodes", "no"), ("gpu", "gpus")
_VALUED = ("-n", "--namespace", "--context", "--kubeconfig")
"""Flags that kubectl takes before the command as well; each has a value."""
_PLAIN = ("-A", "--all-namespaces")
COMMANDS = {
    "apply": "kerf changes nothing: kerf plan -f FILE says what would be bought for it, kubectl apply applies it",
    "create": "kerf changes nothing: kerf plan -f FILE says what would be bought for it, kubectl create creates it",
    "delete": "kubectl delete deletes; kerf plan --consolidate says which nodes may go",
    "edit": "kubectl edit changes an object; kerf lint checks it",
    "patch": "kubectl patch changes an object; kerf explain prints the smallest change that helps",
    "scale": "kerf plan --replicas KIND/NS/NAME=N says what more replicas need; kubectl scale scales",
    "autoscale": "kerf plan --replicas KIND/NS/NAME=N says what more replicas need; kubectl autoscale scales pods",
    "diff": "kerf plan says what Kerf would change; kubectl diff compares manifests",
    "logs": "kubectl logs -n kerf deployment/kerf has those of the controllers",
    "events": "kubectl events has them; kerf explain says why a pod waits",
    "drain": "kubectl drain NODE drains; kerf plan --consolidate says which nodes may go",
    "cordon": "kubectl cordon NODE cordons; kerf explain node/NODE says what becomes of it",
    "uncordon": "kubectl uncordon NODE does it; kerf explain node/NODE says what becomes of it",
    "taint": "kubectl taint nodes NODE taints it; kerf explain node/NODE says what becomes of it",
    "label": "kubectl label labels an object; kerf nodes -l KEY=VALUE chooses by labels",
    "config": "kubectl config changes the kubeconfig; kerf takes --kubeconfig FILE and --context NAME",
    "cluster-info": "kerf doctor says whether the cluster is ready",
    "auth": "kerf doctor says which roles you lack",
    "api-resources": "kerf explain takes pod, node, nodepool and more: kerf explain --help",
    "wait": "kerf explain -w looks until something changes; kubectl wait waits for a condition",
    "rollout": "kubectl rollout has it; kerf explain deployment/NAME says where its pods go",
    "exec": "kubectl exec runs a program in a pod; kerf has none of that",
    "port-forward": "kubectl port-forward has it; kerf reads the leader with --leader-url",
    "debug": "kubectl debug has it; kerf explain pod/NAME says why a pod waits",
    "cp": "kubectl cp copies; kerf snapshot writes what Kerf reads as one file",
    "run": "",
}
"""Commands of kubectl that Kerf does not have, and what to type; an empty text: Kerf has one of its own."""
OPTIONS = {
    "--show-labels": "-o json has all fields, -l KEY=VALUE chooses by labels",
    "--field-selector": "-l KEY=VALUE chooses by labels, --sort-by and -o jsonpath by fields",
    "--dry-run": "nothing is changed by any command but kerf run, which has --dry-run",
    "--request-timeout": "a call ends after 30 seconds",
    "--as": "impersonate in the kubeconfig: kubectl config set-credentials",
    "--cluster": "--context NAME says which cluster",
    "--user": "--context NAME says which user",
    "--token": "--kubeconfig FILE says which user",
    "--server": "--kubeconfig FILE and --context NAME say which server",
    "--template": "-o jsonpath='{.items[*].node}' says the same",
    "--show-kind": "-o name has kinds",
    "--output-watch-events": "-w prints again when something changes",
    "--image": "kerf run runs Kerf's controllers; kubectl run starts a pod",
    "--watch-only": "-w prints what is there first",
    "--chunk-size": "lists are read in pages of 500",
    "--ignore-not-found": "an object that is not there exits with 1",
    "--grace-period": "kerf deletes nothing but in kerf run, where NodePools say terminationGracePeriod",
    "--force": "kerf changes nothing",
    "-v": "kerf run has --log-level",
    "--v": "kerf run has --log-level",
}
"""Flags of kubectl that Kerf does not have, and what to type."""


_SHORT = ("-o=", "-n=", "-l=", "-f=")
_OF_NODES, _ALL = ("nodes", "gpus", "top"), ("-A", "--all-namespaces")
"""Nodes are in no namespace; kubectl ignores these flags there."""


def rewritten(arguments: Sequence[str]) -> list[str]:
    """The arguments as Kerf has them: `get nodes` is `nodes`, `describe` `explain`, `help plan` `plan --help`.

    Flags that kubectl takes before the command go behind it. Raises UsageError for what kubectl has to be asked.
    """
    first, rest = _parted(arguments)
    if not rest:
        return list(arguments)
    command, *others = map(_without_equals, rest) if "--" not in rest else rest
    if command in _OF_NODES:
        others = [text for text in others if text not in _ALL]
    if command == "top" and len(others) > 1 and others[0].lower() in _NODES and not others[1].startswith("-"):
        raise click.UsageError("kerf top shows all nodes, or those of -l; kerf nodes NODE shows one node")
    if command == "get":
        return _gotten([*others, *first])
    if command == "describe":
        return ["explain", *others, *first]
    if command == "help":
        return [*others, "--help"]
    return [command, *first, *others]


def _without_equals(text: str) -> str:
    """`-o=json`, which kubectl takes, as `-ojson`."""
    return text[:2] + text[3:] if text[:3] in _SHORT else text


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags before the command, of those that may stand there, and the rest."""
    at = 0
    while at < len(arguments):
        text = arguments[at]
        if text in _PLAIN or (text.partition("=")[0] in _VALUED and "=" in text):
            at += 1
        elif text in _VALUED and at + 1 < len(arguments):
            at += 2
        else:
            break
    return list(arguments[:at]), list(arguments[at:])


def _gotten(others: Sequence[str]) -> list[str]:
    """`kerf get KIND ...` as the command that lists the kind. Raises UsageError for one that kubectl lists."""
    from kerf.cli.inputs.naming import kind_of

    words = [text for text in others if not text.startswith("-")]
    known_words = (text for text in words if text.lower() in (*_NODES, *_GPUS) or kind_of(text.partition("/")[0]))
    # The value of a flag may stand before the kind.
    named = next(known_words, words[0] if words else None)
    if named is None:
        raise click.UsageError("kerf nodes and kerf gpus list what Kerf knows; kubectl get lists other kinds")
    if "," in named:
        raise click.UsageError("get lists one kind: kerf nodes or kerf gpus; kubectl get lists other kinds")
    kind, _, name = named.partition("/")
    at = list(others).index(named)
    left = [*others[:at], *([name] if name else []), *others[at + 1 :]]
    left = [text for text in left if text not in _ALL]
    if kind.lower() in _NODES:
        return ["nodes", *left]
    if kind.lower() in _GPUS:
        return ["gpus", *left]
    known = kind_of(kind)
    more = f"; kerf explain {known}/NAME says what Kerf makes of one" if known is not None else ""
    if known == "pod":
        more = "; kerf explain says what waits, and why"
    raise click.UsageError(f"kubectl get {kind} lists them{more}")


def instead(name: str) -> str:
    """What to type for a command of kubectl that Kerf does not have; empty for any other."""
    return COMMANDS.get(name, "")
