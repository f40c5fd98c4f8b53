"""Why an API server would refuse the ports of containers (kubernetes 1.36, pkg/apis/core/validation)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kerf.manifests.schema import Path, Problem, mistake, no_word

_LAST_PORT, _PROTOCOLS = 65_535, ("TCP", "UDP", "SCTP")
_PORT_NAME = re.compile(r"(?=[a-z0-9-]{1,15}$)(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_Raw = Mapping[str, Any]
_Held = tuple[str, str, int]


def refused_ports(raw: _Raw) -> Iterator[Problem]:
    """Why it would, by container; paths count from the spec.

    No two containers that run side by side have one port of the node; an init container is looked at alone
    (`validateContainerPorts`, `checkHostPortConflicts`).
    """
    on_host, held = bool(raw.get("hostNetwork")), set[_Held]()
    for part in ("initContainers", "containers"):
        for index, container in enumerate(raw.get(part) or ()):
            beside = set() if part == "initContainers" else held
            yield from _refused(container.get("ports") or (), (part, index, "ports"), on_host, beside)


def _refused(ports: Iterable[_Raw], within: Path, on_host: bool, held: set[_Held]) -> Iterator[Problem]:
    names = set[str]()
    for index, each in enumerate(ports):
        at: Path = (*within, index)
        yield from _refused_numbers(each, at, on_host)
        name, protocol = each.get("name") or "", each.get("protocol")
        if name and _PORT_NAME.fullmatch(name) is None:
            yield mistake((*at, "name"), "1 to 15 lower-case letters and digits, with single hyphens between", name)
        if name and name in names:
            yield mistake((*at, "name"), "a name that no other port of the container has", name)
        names.add(name)
        if protocol is not None and protocol not in _PROTOCOLS:
            yield no_word((*at, "protocol"), _PROTOCOLS, protocol)
        number = each.get("hostPort") or (each["containerPort"] if on_host else 0)
        port = (protocol or _PROTOCOLS[0], each.get("hostIP") or "", number)
        if number and port in held:
            yield mistake((*at, "hostPort"), "a port of the node that no other container of the pod has", number)
        held.add(port)


def _refused_numbers(raw: _Raw, at: Path, on_host: bool) -> Iterator[Problem]:
    for name in ("containerPort", "hostPort"):
        number = raw.get(name)
        if number is not None and not (1 <= number <= _LAST_PORT or (name == "hostPort" and number == 0)):
            yield mistake((*at, name), f"a port from 1 to {_LAST_PORT}", number)
    if on_host and (raw.get("hostPort") or raw["containerPort"]) != raw["containerPort"]:
        expected = f"{raw['containerPort']}, the containerPort, since the pod has hostNetwork"
        yield mistake((*at, "hostPort"), expected, raw["hostPort"], "leave it out: the server fills it in")
