"""What the linter itself finds: faults of its rules, and suppressions that do nothing."""

from kerf.lint.findings import Severity
from kerf.lint.registry import Rule, add
from kerf.lint.suppressions import ANNOTATION

INTERNAL, UNUSED, UNKNOWN = "KL000", "KL004", "KL005"

add(
    Rule(
        INTERNAL,
        "internal-error",
        Severity.WARNING,
        "A rule has failed on this object.\n\n"
        "The fault is Kerf's, not the manifest's. All other rules have been applied, to this object too. Please report "
        "the text of the finding together with the object.",
    )
)
add(
    Rule(
        UNUSED,
        "unused-suppression",
        Severity.WARNING,
        "A suppression suppresses nothing.\n\n"
        "What it speaks of has been fixed, or it stands at the wrong line: a comment speaks of its own line, on "
        "a line of its own of the next line, and at the top of a file of the whole file; the annotation "
        f"`{ANNOTATION}` of its object. Take it away, or put it where the finding is.",
    )
)
add(
    Rule(
        UNKNOWN,
        "unknown-suppression",
        Severity.WARNING,
        "A suppression names no rule.\n\n"
        "The form is `# kerf-lint: ignore KL012 reason`, with one or more codes separated by commas, and the codes are "
        "those of this page.",
    )
)
