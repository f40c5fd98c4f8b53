"""Write what an operator can set of `kerf run` and see of it: the page of the settings and the table of the metrics.

    python tools/document_run.py

Flags, variables, defaults and words come from the program itself, and metrics from its registry, so that the pages name
nothing that is not there and forget nothing that is; a test compares them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from prometheus_client.metrics import MetricWrapperBase

from kerf import telemetry
from kerf.cli.run.command import run
from kerf.config import settings_table

ROOT = Path(__file__).parents[1]
SETTINGS, CLUSTER = Path("docs/reference/settings.md"), Path("docs/reference/cluster.md")
BEGIN, END = "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n"
_KINDS = {"counter": ("counter", "_total"), "gauge": ("gauge", ""), "histogram": ("histogram", "_bucket")}

_INTRODUCTION = """\
# Settings of kerf run

Everything has one name in three places: the flag `--batch-idle` is the variable `KERF_BATCH_IDLE`, and the key
`batch-idle` of the YAML file that `--config` (`KERF_CONFIG`) names. A flag wins over a variable, a variable over the
file. What is unknown or does not fit is refused at the start. Times are durations such as `1m30s` or `500ms`.

`tools/document_run.py` writes this page from the program. The same settings are values of [the chart](chart.md).

"""
_PROCESS = "## The process\n\n"
_CONTROLLERS = """
## The controllers

Defaults are Karpenter's where it has the same setting.

"""


def settings_page() -> str:
    """Two tables: what the process is told, and what the controllers are."""
    controllers = {setting.flag for setting in settings_table()}
    options = [each for each in run.params if isinstance(each, click.Option) and each.name != "config"]
    own = [each for each in options if each.opts[0] not in controllers]
    others = [each for each in options if each.opts[0] in controllers]
    return _INTRODUCTION + _PROCESS + _table(map(_row, own)) + _CONTROLLERS + _table(map(_row, others))


def _row(option: click.Option) -> tuple[str, ...]:
    flags = "/".join((*option.opts, *option.secondary_opts))
    form = (option.metavar or "|".join(getattr(option.type, "choices", ()))).strip("[]")
    flags += "" if option.is_flag else f" {form}"
    default = str(option.default) if isinstance(option.default, str | bool) and option.default else ""
    variable = option.envvar if isinstance(option.envvar, str) else ""
    shown = default if default in form.split("|") else default.lower()
    return (
        f"`{flags}`",
        f"`{variable}`",
        f"`{shown}`" if default else "",
        option.help or "",
    )


def _table(rows: Iterator[tuple[str, ...]]) -> str:
    return _written((("flag", "variable", "default", "meaning"), ("---",) * 4, *rows))


def _written(lines: tuple[tuple[str, ...], ...]) -> str:
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def metrics_table() -> str:
    """Every metric under the name that Prometheus sees first, with its labels, in the order of the code."""
    found = [each for each in vars(telemetry).values() if isinstance(each, MetricWrapperBase)]
    return _written((("metric", "kind", "labels", "meaning"), ("---",) * 4, *map(_metric, found)))


def _metric(collector: Any) -> tuple[str, ...]:
    (family,) = collector.describe()
    kind, ending = _KINDS[family.type]
    labels = ", ".join(f"`{label}`" for label in collector._labelnames)
    return (f"`{family.name}{ending}`", kind, labels, family.documentation)


def generated(cluster: str) -> dict[Path, str]:
    """Both pages by their path; `cluster` is the second one as it is now, of which only the table is ours."""
    before, _, rest = cluster.partition(BEGIN)
    after = rest.partition(END)[2]
    return {SETTINGS: settings_page(), CLUSTER: before + BEGIN + metrics_table() + END + after}


def main() -> None:
    """Write both."""
    for path, text in generated((ROOT / CLUSTER).read_text(encoding="utf-8")).items():
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
