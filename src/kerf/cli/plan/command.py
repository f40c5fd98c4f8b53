"""`kerf plan`: what would be bought, on which card each slice lands, what is refused and why.

Only its flags are here. What plans takes most of a second to import, and is imported where it is needed: help,
completion and wrong usage do not wait for it.
"""

import re
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import input_options, output_option, pod_options, policy_options, replay_option
from kerf.config import seconds_of
from kerf.model.policies import AUTO, BUDGETS, COST, FIRST_FIT, FOLLOWING, SHORT, STRATEGIES

_DAYS = re.compile(r"([0-9]{1,3})d", re.ASCII)


_OF_A_PLAN = ("chart", "timings")
_WITHOUT_MEANING = {
    "calendar_s": (*_OF_A_PLAN, "strategy", "budget", "follow", "preference_policy", "min_values_policy"),
    "compare": _OF_A_PLAN,
    "strategies": (*_OF_A_PLAN, "strategy", "budget"),
    "consolidate": (*_OF_A_PLAN, "namespace", "selector"),
}
"""By flag in whose place no plan is made, the flags that would change nothing beside it."""
_ANSWERS = {
    "calendar_s": "windows that open",
    "compare": "a comparison of requests",
    "strategies": "a comparison of all strategies and budgets",
    "consolidate": "the removal of nodes, whose pods are all looked at",
}


def _span_s(_context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Seconds of `7d`, `36h` and the like."""
    if text is None:
        return None
    days = _DAYS.fullmatch(text)
    seconds = int(days[1]) * 86_400 if days else seconds_of(text)
    if not seconds:
        raise click.BadParameter(f"expected a span such as 7d or 36h, got {text!r}", param=parameter)
    return float(seconds)


def _requests_of(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> Sequence[Any]:
    """The requests that each `--compare` names. Raises InputError."""
    if not texts:
        return ()
    from kerf.cli.plan.comparison import requests_of

    return requests_of(f"--{option.name}", texts)


@click.command(
    cls=ExampleCommand,
    examples=(
        ("What Kerf would do now, in the cluster of the kubeconfig", "kerf plan"),
        ("What the pods of files would get", "kerf plan -f pool.yaml -f workload.yaml"),
        ("The same if each pod asked for less", "kerf plan -f pool.yaml -f workload.yaml --compare cpu=900m"),
    ),
)
@input_options
@pod_options
@output_option
@replay_option
@click.option("--strategy", type=click.Choice(STRATEGIES), default=COST, show_default=True, help="How to choose nodes.")
@click.option(
    "--budget",
    type=click.Choice(tuple(BUDGETS)),
    default=SHORT,
    show_default=True,
    help="About how long to look for cheaper nodes; counted in work: the plan is the same on every machine.",
)
@click.option(
    "--follow",
    type=click.Choice(FOLLOWING),
    default=AUTO,
    show_default=True,
    help="How Kerf makes the schedulers follow the plan.",
)
@policy_options
@click.option(
    "--calendar",
    "calendar_s",
    metavar="SPAN",
    callback=_span_s,
    help="Instead of a plan: the CapacityWindows that open within this time (such as 7d), and their cost.",
)
@click.option(
    "--compare",
    multiple=True,
    metavar="REQUESTS",
    callback=_requests_of,
    help='Instead of a plan: its cost if each pod requested this, such as "cpu=900m". Repeatable.',
)
@click.option("--strategies", is_flag=True, help="Instead of a plan: the cost of each strategy.")
@click.option(
    "--consolidate",
    is_flag=True,
    help="Instead of a plan: which nodes Kerf would remove, step by step, and what that saves.",
)
@click.option("--chart", metavar="FILE.svg", help="Draw the nodes to buy by type, and how full each card is.")
@click.option("--timings", is_flag=True, help="One JSON line on stderr: seconds and bytes.")
def plan(**flags: Any) -> int:
    """Say what Kerf would do now, in the cluster or with manifests. Changes nothing.

    Exit code 0 when every pod has a place, 3 when some have none.
    """
    if flags["replay"] and flags["files"]:
        raise click.UsageError("--replay and -f: expected one of them, as a replay has everything in one file")
    if flags["compare"] and flags["calendar_s"] is not None:
        raise click.UsageError("--compare and --calendar: expected one of them, as each stands in place of a plan")
    if flags["strategies"] and (flags["compare"] or flags["calendar_s"] is not None):
        raise click.UsageError(
            "--strategies: expected neither --compare nor --calendar, as it stands in place of a plan"
        )
    if flags["consolidate"] and (flags["compare"] or flags["strategies"] or flags["calendar_s"] is not None):
        raise click.UsageError(
            "--consolidate: expected neither --compare, --strategies nor --calendar, as it stands in place of a plan"
        )
    _refuse_without_meaning(flags)
    from kerf.cli.plan.planning import show

    return show(flags)


def _refuse_without_meaning(flags: dict[str, Any]) -> None:
    """Refuse flags that were given and that nothing would look at. Raises UsageError."""
    context = click.get_current_context()
    names = {each.name: each.opts[-1] for each in context.command.params if each.name is not None}

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) != ParameterSource.DEFAULT

    for instead, others in _WITHOUT_MEANING.items():
        ignored = [names[name] for name in others if is_given(name)] if is_given(instead) else []
        if ignored:
            refused, verb = " and no ".join(ignored), "says" if len(ignored) == 1 else "say"
            text = f"{names[instead]}: expected no {refused}, which {verb} nothing about {_ANSWERS[instead]}"
            raise click.UsageError(text)
    if flags["strategy"] == FIRST_FIT and is_given("budget"):
        raise click.UsageError(f"--budget: expected no --strategy {FIRST_FIT}, which looks for no cheaper nodes")
