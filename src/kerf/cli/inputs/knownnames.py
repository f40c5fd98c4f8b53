"""Names that a shell proposes: of the objects in the files of -f, else in the cluster.

A Tab must answer in half a second, and a client of Kerf's own takes longer to start. So kubectl is asked, where it is
on the PATH, for no longer than that; its answer is kept for ten seconds. What cannot be had in time is not proposed.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from click.shell_completion import CompletionItem

from kerf.cli.inputs.naming import CLUSTER_WIDE, KINDS, kind_of

_MOST_S = 0.45
_KEPT_S = 10.0
_MOST_BYTES = 2_000_000
"""Of all files together: a larger dump takes too long for a Tab."""
_MOST_NAMES = 2000
_PLURALS = {
    "nodeclaim": "nodeclaims.karpenter.sh",
    "nodepool": "nodepools.karpenter.sh",
    "nodeclass": "ec2nodeclasses.karpenter.k8s.aws",
    "cwin": "capacitywindows.kerf.dev",
    "provisioningrequest": "provisioningrequests.autoscaling.x-k8s.io",
    "capacitybuffer": "capacitybuffers.autoscaling.x-k8s.io",
}
_CONTEXTS, NAMESPACE = "context", "namespace"


def names_of(kind: str, flags: Mapping[str, Any]) -> list[str]:
    """The names of objects of a kind of `KINDS`, or of namespaces, in order; none where they cannot be had in time."""
    files = flags.get("files") or ()
    if files:
        return sorted(set(_names_in_files(kind, files)))
    command = ["kubectl", "get", _PLURALS.get(kind, f"{kind}s"), "-o", "name", f"--request-timeout={_MOST_S}s"]
    if flags.get("namespace") and kind not in (*CLUSTER_WIDE, NAMESPACE):
        command += ["-n", flags["namespace"]]
    command += [f"--{name}={flags[name]}" for name in ("kubeconfig", "context") if flags.get(name)]
    return sorted(line.rpartition("/")[2] for line in _asked(command))


def contexts(flags: Mapping[str, Any]) -> list[str]:
    """The contexts of the kubeconfig."""
    command = ["kubectl", "config", "get-contexts", "-o", "name"]
    return _asked([*command, *([f"--kubeconfig={flags['kubeconfig']}"] if flags.get("kubeconfig") else [])])


def _asked(command: Sequence[str]) -> list[str]:
    """The lines that kubectl prints, or printed less than ten seconds ago; none where it fails or takes too long."""
    # Help of every command imports this module.
    import json
    import shutil
    import subprocess

    path = _kept_at(command)
    with contextlib.suppress(OSError, ValueError):
        if 0 <= time.time() - path.stat().st_mtime < _KEPT_S:
            return [str(each) for each in json.loads(path.read_text(encoding="utf-8"))]
    program = shutil.which(command[0])
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, stdin=subprocess.DEVNULL, timeout=_MOST_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode(errors="replace").split()[:_MOST_NAMES]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two Tabs at once each write a whole file.
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(json.dumps(lines), encoding="utf-8")
        written.replace(path)
    return lines


def _kept_at(command: Sequence[str]) -> Path:
    """Where the answer is kept: a file for each question and kubeconfig."""
    import hashlib
    import json

    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    asked = json.dumps([command, os.environ.get("KUBECONFIG", "")])
    return Path(home) / "kerf" / "names" / hashlib.sha256(asked.encode()).hexdigest()[:32]


def _names_in_files(kind: str, paths: Sequence[str]) -> Iterator[str]:
    wanted = {
        "Namespace" if kind == NAMESPACE else KINDS[kind][0],
        *(["EC2NodeClass", "ECSNodeClass", "KWOKNodeClass"] if kind == "nodeclass" else []),
    }
    for raw in _objects(paths):
        metadata = raw.get("metadata")
        if raw.get("kind") in wanted and isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
            yield metadata["name"]


def _objects(paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of small files, those of lists too; what cannot be read has none."""
    import json

    import yaml

    left = _MOST_BYTES
    for path in paths:
        with contextlib.suppress(OSError, ValueError, yaml.YAMLError, RecursionError):
            left -= os.path.getsize(path)
            if left < 0 or not os.path.isfile(path):
                continue
            text = Path(path).read_text(encoding="utf-8")
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            found = [json.loads(text)] if text.lstrip()[:1] == "{" else list(yaml.load_all(text, loader))
            for document in found:
                items = document.get("items") if isinstance(document, dict) else None
                yield from (each for each in (items or [document]) if isinstance(each, dict))


def objects_like(typed: str, before: Sequence[str], kinds: Sequence[str], flags: Mapping[str, Any]) -> list[str]:
    """What could be meant by a word that begins like this: kinds, `KIND/NAME`, or names after a kind."""
    if "/" in typed:
        written, _, name = typed.partition("/")
        kind = kind_of(written)
        names = names_of(kind, flags) if kind in kinds and kind is not None else []
        return [f"{written}/{each}" for each in names if each.startswith(name)]
    first = kind_of(before[0]) if before else None
    if first in kinds and first is not None:
        return [each for each in names_of(first, flags) if each.startswith(typed)]
    return [kind for kind in kinds if kind.startswith(typed)]


def propose_objects(kinds: Sequence[str], argument: str) -> Any:
    """The `shell_complete` of an argument that takes KIND/NAME, or a kind and names."""

    def propose(context: Any, _: Any, typed: str) -> list[CompletionItem]:
        before = context.params.get(argument) or ()
        return [CompletionItem(each) for each in objects_like(typed, before, kinds, context.params)]

    return propose


def propose_names(kind: str) -> Any:
    """The `shell_complete` of a flag or argument that takes names of one kind, of namespaces, or of contexts."""

    def propose(context: Any, _: Any, typed: str) -> list[CompletionItem]:
        found = contexts(context.params) if kind == _CONTEXTS else names_of(kind, context.params)
        return [CompletionItem(each) for each in found if each.startswith(typed)]

    return propose
