"""What a rule says of an object, and what becomes of it: a finding with place, code and severity."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from kerf.manifests.schema import Path


class Severity(Enum):
    """How bad it is.

    `error`: what the manifest wants cannot happen. `warning`: it can, and not as it is probably meant. `info`: worth
    knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return (Severity.ERROR, Severity.WARNING, Severity.INFO).index(self)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the text of a document that keeps all the rest of it.

    The scalar at `path` (its key, where `at_key`) becomes `new`; with `old` only that part of it does; where
    `is_insertion`, `new` is put before the key at `path`. In an insertion `\\n` stands for a line break with the
    indentation of that key, which is a comma in a mapping of braces.
    """

    path: Path
    new: str
    old: str = ""
    at_key: bool = False
    is_insertion: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What a rule has seen at a field of an object; `path` may lead further than the object goes.

    `fix` are the edits that fix it without changing what was meant; empty where there are none.
    """

    path: Path
    message: str
    hint: str = ""
    at_key: bool = False
    fix: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A note of the rule `code` on one object.

    `file` is empty for an object of a live cluster, which has no line. `line` and `column` count from one. `subject`
    names the object as `Deployment default/web`; empty for a file as a whole. `path` is the field as people write it.
    `index` is the object's number in the input, for fixes; -1 for none.
    """

    code: str
    severity: Severity
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    subject: str = ""
    path: str = ""
    fix: tuple[Edit, ...] = ()
    index: int = -1

    @property
    def place(self) -> str:
        """`file:line:col`; empty for an object of a cluster."""
        return f"{self.file}:{self.line}:{self.column}" if self.file else ""


Notes = Iterator[Note]
Check = Callable[..., Notes]
