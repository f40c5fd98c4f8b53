"""Thirty habits of kubectl, typed at Kerf: each works, or says what to type instead."""

import pytest

from kerf.cli.habits import COMMANDS as THEIRS
from kerf.cli.habits import rewritten
from kerf.cli.main import COMMANDS as OURS
from tests.cli.program import CLUSTER, POOL_000, ROOT, WORKLOAD_000, kerf

WORKS = {
    "get nodes": "nodes",
    "get no": "nodes",
    "get node ip-10-0-0-1 ip-10-0-0-2 -o wide": "nodes ip-10-0-0-1 ip-10-0-0-2 -o wide",
    "get node/ip-10-0-0-1 -o json": "nodes ip-10-0-0-1 -o json",
    "get -o yaml nodes": "nodes -o yaml",
    "get gpus --no-headers": "gpus --no-headers",
    "get nodes --selector karpenter.sh/nodepool=g5": "nodes -l karpenter.sh/nodepool=g5",
    "get nodes -o name": "nodes -o name",
    "get nodes --output=name": "nodes -o name",
    "get nodes -oname": "nodes -o name",
    "get nodes -o=json": "nodes -o json",
    "get nodes -A": "nodes",
    "explain pod chat-0 -n=default": "explain pod/chat-0 -n default",
    "get nodes -o jsonpath={.items[*].node}": "nodes -o jsonpath={.items[*].node}",
    "get nodes -o custom-columns=NAME:.node": "nodes -o custom-columns=NAME:.node",
    "get nodes --sort-by={.ageSeconds}": "nodes --sort-by .ageSeconds",
    "describe node ip-10-0-0-1": "explain node/ip-10-0-0-1",
    "describe no/ip-10-0-0-1": "explain node/ip-10-0-0-1",
    "describe nodepool g5": "explain np/g5",
    "describe nodeclaims g5-starting": "explain nc g5-starting",
    "describe pods chat-0 search-0 -n default": "explain pod/default/chat-0 pod/default/search-0",
    "describe po -l app=chat": "explain -l app=chat",
    "-n default describe pod chat-0": "explain -n default pod/chat-0",
    "--namespace=default explain pod chat-0": "explain pod/chat-0 -n default",
    "-A explain pod chat-0": "explain pod/chat-0 -A",
    "top nodes": "top",
    "top node": "top nodes",
    "--context there get nodes": "nodes --context there",
}
"""What is typed, and the command of Kerf that gives the same; both at the same files."""
TOLD = {
    "get pods": "kubectl get pods lists them; kerf explain says what waits, and why",
    "get nodepools": "kubectl get nodepools lists them; kerf explain nodepool/NAME says what Kerf makes of one",
    "get configmaps": "kubectl get configmaps lists them",
    "get nodes,gpus": "get lists one kind: kerf nodes or kerf gpus",
    "run nginx --image=nginx": "kubectl run starts a pod",
    "top node ip-10-0-0-1": "kerf nodes NODE shows one node",
    "nodes --output-watch-events": "-w prints again when something changes",
    "get": "kerf nodes and kerf gpus list what Kerf knows",
    "top pods": "kubectl top pods says what pods use",
    "apply -f pool.yaml": "kerf plan -f FILE says what would be bought for it",
    "delete node ip-10-0-0-1": "kerf plan --consolidate says which nodes may go",
    "logs -n kerf deploy/kerf": "kubectl logs -n kerf deployment/kerf",
    "drain ip-10-0-0-1": "kubectl drain NODE drains",
    "config get-contexts": "--context NAME",
    "cluster-info": "kerf doctor",
    "auth can-i list nodes": "kerf doctor says which roles you lack",
    "nodes --show-labels": "-l KEY=VALUE chooses by labels",
    "nodes --field-selector metadata.name=a": "-o jsonpath by fields",
    "plan --dry-run=client": "nothing is changed by any command but kerf run",
    "nodes -o go-template={{.items}}": "-o jsonpath='{.items[*].node}' says the same",
    "explain nodepool.spec": "expected one of pod, deployment",
    "explain nodepool": "kubectl explain nodepool describes its fields",
    "plan -v=6": "kerf run has --log-level",
}
"""What is typed, and what is said instead; exit code 2."""
ALONE = {
    "version": "kerf ",
    "version --client": "kerf ",
    "version --client -o json": '"gitVersion": "v',
    "help": "Commands:",
    "help plan": "Usage: kerf plan [OPTIONS]",
    "help advise pool": "Usage: kerf advise pool [OPTIONS]",
    "plan -h": "Usage: kerf plan [OPTIONS]",
    "completion bash": "_KERF_COMPLETE=bash_complete",
}
"""What is typed without any cluster, and what is printed; exit code 0."""


def split(line: str) -> list[str]:
    """Words at single spaces; quotes have none here."""
    return line.split(" ")


@pytest.mark.parametrize("line", WORKS)
def test_a_habit_works(line: str) -> None:
    """The same bytes and exit code as Kerf's own words give, at the same file."""
    typed, ours = (kerf(*split(text), "-f", CLUSTER) for text in (line, WORKS[line]))

    assert (ours.returncode, ours.stdout, ours.stderr) == (typed.returncode, typed.stdout, typed.stderr)
    assert (typed.returncode in (0, 3), True) == (True, bool(typed.stdout))


@pytest.mark.parametrize("line", TOLD)
def test_what_kerf_does_not_have_is_answered(line: str) -> None:
    """With what to type, and nothing on standard output."""
    done = kerf(*split(line))

    assert (2, "") == (done.returncode, done.stdout)
    assert TOLD[line] in done.stderr


@pytest.mark.parametrize("line", ALONE)
def test_a_habit_needs_no_cluster(line: str) -> None:
    """Version, help, completion."""
    done = kerf(*split(line))

    assert (0, True) == (done.returncode, ALONE[line] in done.stdout)


def test_there_are_thirty_of_them() -> None:
    """And more."""
    assert len(WORKS) + len(TOLD) + len(ALONE) >= 30


def test_standard_input_and_several_files() -> None:
    """`-f -`, and -f twice."""
    text = (ROOT / WORKLOAD_000).read_text(encoding="utf-8")
    piped = kerf("plan", "-f", POOL_000, "-f", "-", stdin=text)

    assert kerf("plan", "-f", POOL_000, "-f", WORKLOAD_000).stdout == piped.stdout


def test_no_command_of_kerf_is_refused() -> None:
    """`kerf run` is one of its own; nothing else of kubectl's is in the way."""
    assert {"run"} == {name for name, text in THEIRS.items() if not text}
    assert {"run"} == set(OURS) & set(THEIRS)


def test_what_is_no_habit_stays_as_it_is() -> None:
    """Flags of Kerf's own before the command are no flags of kubectl."""
    assert ["--version"] == rewritten(["--version"])
    assert [] == rewritten([])
    assert ["-n"] == rewritten(["-n"])
    assert ["plan", "-n", "a", "-f", "x"] == rewritten(["-n", "a", "plan", "-f", "x"])


@pytest.mark.parametrize("command", ["plan", "explain", "gpus", "nodes", "shadow"])
def test_a_file_without_its_flag_is_answered_with_the_flag(command: str) -> None:
    """The line to type, by the name of the command, and no look for a cluster."""
    path = str(ROOT / POOL_000)
    done = kerf(*command.split(), path)

    assert 2 == done.returncode
    assert done.stderr.startswith(f"error: {path}: a file is read with -f: kerf {command} -f {path}\n")


@pytest.mark.parametrize("command", ["plan", "explain", "shadow"])
def test_a_second_file_without_its_flag_is_answered_with_both(command: str) -> None:
    """The one that has its flag is not the mistake."""
    path = str(ROOT / POOL_000)
    done = kerf(command, "-f", path, "more.yaml")

    assert (2, f"error: more.yaml: a file is read with -f: kerf {command} -f {path} -f more.yaml") == (
        done.returncode,
        done.stderr.splitlines()[0],
    )


@pytest.mark.parametrize("files", [(), ("-f", str(ROOT / POOL_000))])
def test_a_word_that_is_no_file_is_an_argument_too_many(files: tuple[str, ...]) -> None:
    """Only what can be read is taken for a file, and no value of -f."""
    done = kerf("plan", *files, "now")

    assert (2, "error: Got unexpected extra argument (now)") == (done.returncode, done.stderr.splitlines()[0])


@pytest.mark.parametrize(
    "typed, line",
    [
        (("simulate", "-f", "day.yaml"), "kerf simulate day.yaml"),
        (("simulate", "--filename=day.yaml"), "kerf simulate day.yaml"),
        (("sweep", "-f", "axes.yaml"), "kerf sweep axes.yaml"),
        (("simulate", "-f", "-"), "kerf simulate FILE"),
    ],
)
def test_a_flag_for_files_where_the_file_is_an_argument_is_answered_with_the_line(
    typed: tuple[str, ...], line: str
) -> None:
    """Other commands take it, so people type it."""
    done = kerf(*typed)

    assert (2, True) == (done.returncode, f": the file is an argument: {line}\n" in done.stderr), done.stderr


@pytest.mark.parametrize(
    "typed, meant", [("plna", "plan"), ("expalin", "explain"), ("node", "nodes"), ("snapshto", "snapshot")]
)
def test_a_misspelt_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    """One line, and the hint of the help."""
    done = kerf(typed)

    assert (2, f"error: No such command '{typed}'; is '{meant}' meant?") == (
        done.returncode,
        done.stderr.splitlines()[0],
    )


def test_a_command_like_no_other_has_no_proposal() -> None:
    """A proposal that is far off would mislead."""
    assert "error: No such command 'frobnicate'\n" == kerf("frobnicate").stderr.partition("hint")[0]
