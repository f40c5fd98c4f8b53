"""Counts words that a reader stumbles over: `check_words.toml` has them, and for each how often it may still occur.

A count that rises fails, and so does one that has fallen while its line still allows the old one: otherwise the next
change could use up what this one has saved. `--write` lowers the numbers to the counts; it never raises one.
A rule's name prints every place where its words are.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = Path(__file__).with_suffix(".toml")
_READ = (("src", "**/*.py"), ("tools/controlplane", "**/*.py"), ("docs", "**/*.md"), (".", "*.md"))
# What has been released was written as it was; what is copied from the code is read there.
_LEFT_OUT = ("CHANGELOG.md", "docs/design/modules.md")
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
# A comment that is wrapped has a mark at the beginning of each line.
_GAP = r"(?:_|\s+(?:#:?\s+)?)"


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the file: `most` places may have the words; `under` is a folder, "" is everywhere."""

    name: str
    most: int
    pattern: re.Pattern[str]
    under: str
    write: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word is: the path from the root, the line from 1, and the word."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.text.split())}"


def rules_of(text: str) -> tuple[Rule, ...]:
    """The rules of a file, in its order. Raises KeyError and TOMLDecodeError for one that has another form."""
    return tuple(
        Rule(
            name, held["most"], _pattern(held["words"], is_exact="exact" in held), held.get("under", ""), held["write"]
        )
        for name, held in tomllib.loads(text)["rules"].items()
    )


def _pattern(words: Sequence[str], *, is_exact: bool) -> re.Pattern[str]:
    """Any of the words, where none of its letters is part of a longer run of letters; the longest word first."""
    each = [_GAP.join(map(re.escape, word.split(" "))) for word in sorted(words, key=len, reverse=True)]
    apart = (rf"(?<![A-Za-z]){word}" if word[0].isalpha() else word for word in each)
    return re.compile(rf"(?:{'|'.join(apart)})(?![A-Za-z])", 0 if is_exact else re.IGNORECASE)


def texts(root: Path) -> dict[str, str]:
    """What is read, by the path from the root: code and pages whole, of tests the names alone."""
    found = {}
    for folder, pattern in _READ:
        for path in sorted((root / folder).glob(pattern)):
            name = path.relative_to(root).as_posix()
            if name not in _LEFT_OUT:
                found[name] = path.read_text(encoding="utf-8")
    for path in sorted((root / "tests").glob("**/*.py")):
        found[path.relative_to(root).as_posix()] = _names_only(path.read_text(encoding="utf-8"))
    return found


def _names_only(text: str) -> str:
    """The names of the tests, each on the line where it is; the other lines are empty."""
    named = {text.count("\n", 0, found.start(1)): found[1] for found in _TEST.finditer(text)}
    return "\n".join(named.get(number, "") for number in range(text.count("\n") + 1))


def places(rule: Rule, read: Mapping[str, str]) -> Iterator[Place]:
    """Every place with the rule's words, by path and line."""
    for path, text in read.items():
        if not path.startswith(rule.under):
            continue
        for found in rule.pattern.finditer(text):
            yield Place(path, text.count("\n", 0, found.start()) + 1, found[0])


def lowered(text: str, counts: Mapping[str, int]) -> str:
    """The file with each number at its count where that is lower; every other character stays."""

    def at_most(found: re.Match[str]) -> str:
        return f"{found[1]}{min(int(found[3]), counts[found[2]])}"

    return re.sub(r"^(([\w-]+) = \{ most = )(\d+)", at_most, text, flags=re.MULTILINE)


def complaints(rules: Sequence[Rule], counts: Mapping[str, int]) -> Iterator[str]:
    """A line for each rule whose count is not its number."""
    for rule in rules:
        count = counts[rule.name]
        if count > rule.most:
            yield (
                f"{rule.name}: {count} places, at most {rule.most}: write {rule.write} "
                f"(every place: python tools/check_words.py {rule.name})"
            )
        elif count < rule.most:
            yield f"{rule.name}: {count} places, {rule.most} allowed: lower it (python tools/check_words.py --write)"


def main(arguments: Sequence[str], root: Path = ROOT, file: Path = RULES) -> int:
    """Exit 1 with a line for each rule that does not hold, 2 for a rule that is not there."""
    parser = argparse.ArgumentParser(description="Count words that a reader stumbles over.")
    parser.add_argument("rule", nargs="?", help="print every place of this rule")
    parser.add_argument("--write", action="store_true", help="lower the allowed numbers to the counts")
    options = parser.parse_args(arguments)
    text, read = file.read_text(encoding="utf-8"), texts(root)
    rules = {rule.name: rule for rule in rules_of(text)}
    if options.rule:
        if options.rule not in rules:
            parser.error(f"expected a rule of {', '.join(rules)}, got {options.rule}")
        for place in places(rules[options.rule], read):
            print(place)
        return 0
    counts = {rule.name: sum(1 for _ in places(rule, read)) for rule in rules.values()}
    if options.write:
        file.write_text(text := lowered(text, counts), encoding="utf-8")
    wrong = tuple(complaints(rules_of(text), counts))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
