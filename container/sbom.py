"""The software bill of materials of an image: what this Python and the Debian around it have installed.

Printed as CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json/), sorted and without a time or a serial number, so
that equal images have equal bytes. Needs nothing but the standard library: it runs inside of the image.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

_STATUS = Path("/var/lib/dpkg/status")
_PRODUCT = "kerf-autoscaler"
Component = dict[str, Any]


def bill() -> dict[str, Any]:
    """The document, with Kerf itself as what it is about."""
    found = sorted((*_python(), *(_debian(_STATUS) if _STATUS.exists() else ())), key=lambda each: each["purl"])
    about = next(each for each in found if each["name"] == _PRODUCT)
    others = [each for each in found if each is not about]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**about, "type": "application"}},
        "components": others,
    }


def _python() -> Iterator[Component]:
    for each in distributions():
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()
        yield {
            "type": "library",
            "name": name,
            "version": each.version,
            "purl": f"pkg:pypi/{name}@{each.version}",
            **_licence(each),
        }


def _licence(found: Distribution) -> Component:
    expression = found.metadata.get("License-Expression")
    return {"licenses": [{"expression": expression}]} if expression else {}


def _debian(status: Path) -> Iterator[Component]:
    """The packages that dpkg says are installed, from its status file: paragraphs of `Key: value`."""
    for paragraph in status.read_text(encoding="utf-8").split("\n\n"):
        said = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if not said.get("Status", "").endswith(" installed"):
            continue
        name, version = said["Package"], said["Version"]
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={said['Architecture']}",
        }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
