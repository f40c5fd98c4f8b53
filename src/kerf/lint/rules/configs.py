"""ConfigMaps by which cards are shared."""

from kerf.errors import DecodeError, brief
from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.model.snapshot import ConfigMap
from kerf.sharing.registry import configured


@rule("KL006", "unreadable-sharing-configuration", Severity.ERROR, ("ConfigMap",))
def unreadable(subject: Subject, context: LintContext) -> Notes:
    """A ConfigMap that says how cards are shared cannot be read.

    HAMi's `hami-scheduler-device`, or a configuration of NVIDIA's device plugin or of its MIG manager, is no YAML,
    lacks its key, or has a value of another form than the program reads. That program does not start with it, or runs
    with its defaults, so that nodes register other cards than are planned for.
    """
    del context
    if not isinstance(subject.value, ConfigMap):
        return
    try:
        configured((subject.value,))
    except DecodeError as error:
        got = error.got.strip("<>") if isinstance(error.got, str) and error.got.startswith("<") else brief(error.got)
        field = f"{error.path}: " if error.path else ""
        yield Note(("data",), f"{field}expected {error.expected}, got {got}", error.hint, at_key=True)
