"""Makes the version of a release that of its tag: `tools/tagged_version.py v1.2.3` writes 1.2.3 where it stands.

It stands in the package, from where the wheel has it, in the chart and in the manual page. Prints the version. Exit
code 2 for a tag that is no version.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
_PLACES = (
    ("src/kerf/__init__.py", re.compile(r'(?m)^(__version__ = ")[^"]*(")$')),
    ("charts/kerf/Chart.yaml", re.compile(r"(?m)^(version: ).*()$")),
    ("charts/kerf/Chart.yaml", re.compile(r"(?m)^(appVersion: ).*()$")),
    ("docs/reference/kerf.1", re.compile(r'(?m)^(\.TH KERF 1 "" "kerf )[^"]*(" .*)$')),
)


def versions(root: Path = ROOT) -> set[str]:
    """The versions that stand there; one where all is well."""
    found = set()
    for name, place in _PLACES:
        (line,) = place.finditer((root / name).read_text(encoding="utf-8"))
        found.add(line[0][len(line[1]) : len(line[0]) - len(line[2])])
    return found


def write(version: str, root: Path = ROOT) -> None:
    """Write it in all places."""
    for name, place in _PLACES:
        path = root / name
        path.write_text(place.sub(rf"\g<1>{version}\g<2>", path.read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write the version of the tag that is the only argument."""
    tag = _TAG.fullmatch(arguments[0]) if len(arguments) == 1 else None
    if tag is None:
        print(f"expected a tag such as v1.2.3, got {' '.join(arguments) or 'none'}", file=sys.stderr)
        return 2
    write(tag[1])
    print(tag[1])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
