"""What `kerf doctor` does: it asks, reads, and prints a line for each thing that it looked at."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from kerf.cli import exits
from kerf.cli.doctor.finding import FAILED, LEFT_OUT, LOOK, OK, Diagnosis
from kerf.cli.doctor.objects import checks_of
from kerf.cli.doctor.server import Visit, visit
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.live import connected
from kerf.cli.plan.json import API_VERSION
from kerf.cli.render import counted, emit, table
from kerf.config import settings_of, settings_table
from kerf.errors import ConfigError, InputError
from kerf.kube.client import ClusterTarget


def show(flags: dict[str, Any]) -> int:
    """Print all checks; the exit code. Raises InputError for files that cannot be read."""
    config, output = flags.pop("config"), flags.pop("output")
    source = Source.of(flags)
    checks: list[Diagnosis] = []
    code = exits.DONE
    if source.is_live:
        try:
            seen = connected(ClusterTarget(source.kubeconfig, source.context), visit)
            checks += _of_cluster(seen, source)
        except exits.ClusterUnreachable as error:
            text = " ".join(str(error).split())
            hint = "" if "(hint: " in text else "--kubeconfig FILE and --context NAME say which; -f FILE checks a dump"
            checks.append(Diagnosis("cluster", FAILED, text, hint))
            code = exits.UNREACHABLE
    else:
        checks.append(Diagnosis("cluster", LEFT_OUT, "not asked: what follows is of the files"))
        checks += checks_of(read_input(source), None)
    checks += _settings(config)
    data = {
        "apiVersion": API_VERSION,
        "kind": "Diagnosis",
        "items": [{"check": c.name, "status": c.status, "found": c.found, "hint": c.hint or None} for c in checks],
    }
    emit(output, lambda: data, lambda: _lines(checks))
    return code or (exits.LOOK if any(check.status in (LOOK, FAILED) for check in checks) else exits.DONE)


def _of_cluster(seen: Visit, source: Source) -> Iterator[Diagnosis]:
    yield from seen.checks
    if not seen.is_readable:
        yield Diagnosis("objects", LEFT_OUT, "not read: see above")
        return
    read = read_input(source, with_usage=True)
    yield from checks_of(read, seen.images)
    yield _metrics(read)


def _metrics(read: ReadInput) -> Diagnosis:
    if read.usage.nodes or read.usage.pods:
        return Diagnosis("metrics", OK, f"use of {counted(len(read.usage.pods), 'pod')} is known")
    return Diagnosis("metrics", LOOK, "nothing is known of what pods use", "install metrics-server: advice rests on it")


def _settings(path: str | None) -> list[Diagnosis]:
    """The environment and the file of `--config`, as `kerf run` reads them; the first mistake of each."""
    by_key = {setting.key: setting.field for setting in settings_table()}
    given = {s.field: os.environ[s.variable] for s in settings_table() if os.environ.get(s.variable)}
    found = [_checked("settings", f"{counted(len(given), 'variable')} of the environment", given)]
    if path is not None:
        from kerf.cli.run.configfile import settings_in

        try:
            entries = list(settings_in(path))
        except InputError as error:
            return [*found, Diagnosis("settings", FAILED, str(error), "correct the file")]
        texts = {by_key[key]: value for _, key, value in entries if key in by_key}
        found.append(_checked("settings", f"{counted(len(entries), 'key')} of {path}", texts))
    return found


def _checked(name: str, what: str, texts: dict[str, str]) -> Diagnosis:
    try:
        settings_of(texts)
    except ConfigError as error:
        return Diagnosis(name, FAILED, str(error), "docs/reference/settings.md has all settings")
    return Diagnosis(name, OK, what)


def _lines(checks: Sequence[Diagnosis]) -> Iterator[str]:
    rows = [(each.name, each.status, f"{each.found}: {each.hint}" if each.hint else each.found) for each in checks]
    yield from table(("CHECK", "STATUS", "WHAT"), rows)
    wrong = [each for each in checks if each.status in (LOOK, FAILED)]
    yield ""
    yield f"{counted(len(wrong), 'thing')} to look at" if wrong else "all is ok"
