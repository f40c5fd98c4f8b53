"""Each format of a trace as pods, and what is said of a file that has none."""

from pathlib import Path

import pytest

from kerf.errors import InputError
from kerf.sim.traces.formats import read_pods
from kerf.sim.traces.genai import slice_mib
from kerf.sim.traces.timedpods import HAMI, WHOLE, TimedPod

OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
DLRM = (
    "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,scheduled_time,deletion_time,"
    "rdma_request\n"
)
GENAI = "gmt_create,exec_time_seconds,checkpoint_model_version_id\n"


def read(folder: Path, text: str, format_: str | None = None, sharing: str = HAMI) -> list[TimedPod]:
    """The pods of a file with this text."""
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return list(read_pods(str(path), format_, sharing, {}))


def test_openb_gives_shares_of_cards_from_scheduled_to_deleted(tmp_path: Path) -> None:
    """Thousandths of a card are rounded up to HAMi's percents; a pod without a GPU asks for none."""
    shared, plain = read(tmp_path, OPENB + "Pod_1,6000,12288,1,455,,100,700,130\npod-2,2000,1024,0,0,,200,260,200\n")

    assert ("pod-1", 100, 570) == shared[:3]
    assert {
        "cpu": "6000m",
        "memory": "12288Mi",
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem-percentage": "46",
    } == shared.form.limits
    assert ("pod-2", 200, 60) == plain[:3]
    assert {"cpu": "2000m", "memory": "1024Mi"} == plain.form.limits


def test_without_hami_a_share_is_a_whole_card(tmp_path: Path) -> None:
    """So a trace shows what sharing saves."""
    (pod,) = read(tmp_path, OPENB + "pod-1,6000,12288,1,455,,100,700,130\n", sharing=WHOLE)

    assert {"cpu": "6000m", "memory": "12288Mi", "nvidia.com/gpu": "1"} == pod.form.limits


def test_a_pod_that_never_ran_in_the_trace_is_left_out(tmp_path: Path) -> None:
    """It has no time to run for; the count says so."""
    path, notes = tmp_path / "trace.csv", dict[str, int]()
    path.write_text(OPENB + "a,1,1,0,0,,1,9,\nb,1,1,0,0,T4,2,9,3\n", encoding="utf-8")

    assert ["b"] == [pod.name for pod in read_pods(str(path), None, HAMI, notes)]
    assert [1, 1] == list(notes.values())


def test_dlrm_gives_whole_cards_and_labels(tmp_path: Path) -> None:
    """An instance without times was there before, and stays."""
    there, came = read(
        tmp_path, DLRM + "i_0,HN,app_0,12,1,120.5,,,,25\ni_1,CN,app_1,64,0,320.0,475.00000000000006,623.0,1000.0,1\n"
    )

    assert ("i-0", 0, None) == there[:3]
    assert {
        "cpu": "12000m",
        "memory": "123392Mi",
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem-percentage": "100",
    } == there.form.limits
    assert {"app": "app_0", "role": "HN"} == there.form.labels
    assert ("i-1", 475, 377) == came[:3]


def test_genai_gives_as_many_replicas_as_the_requests_keep_busy(tmp_path: Path) -> None:
    """Busy for 60 % of ten minutes: 400 seconds of requests need two, 300 one; the last to come goes first."""
    rows = [
        "2024-11-15 16:50:00,300.0,M1",
        "2024-11-15 16:59:59,100.0,M1",
        "2024-11-15 17:05:00,300.0,M1",
        "2024-11-15 17:35:00,1.0,M1",
        "2024-11-15 17:35:00,1.0,",
    ]
    pods = read(tmp_path, GENAI + "\n".join(rows) + "\n")

    assert {("m1-0", 0, 600), ("m1-1", 0, 1200), ("m1-2", 2400, 600)} == {pod[:3] for pod in pods}
    assert str(slice_mib("M1")) == pods[0].form.limits["nvidia.com/gpumem"]
    assert {24576, 32768, 40960} == {slice_mib(f"M{number}") for number in range(20)}


def test_pods_that_ask_alike_share_one_form(tmp_path: Path) -> None:
    """A trace has few shapes and many pods."""
    one, other = read(tmp_path, OPENB + "a,6000,12288,1,455,,1,9,1\nb,6000,12288,1,455,,2,9,2\n")

    assert one.form is other.form


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "trace.csv:1: expected the header of a trace that is known (openb: name,"),
        ("a,b\n1,2\n", "got a,b"),
        (
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n",
            "expected the columns of openb, with creation_time, deletion_time, scheduled_time, got name,cpu_milli,",
        ),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "(hint: its multigpu files have no times"),
        (OPENB + "\na,1,1,0,0,,1,9,1\na,x,1,0,0,,1,9,1\n", "trace.csv:4: cpu_milli: expected a number from 0 on, got"),
        (OPENB + "a,1.5,1,0,0,,1,9,1\n", "trace.csv:2: cpu_milli: expected a whole number"),
        (OPENB + "a,1,1,1,1001,,1,9,1\n", "trace.csv:2: gpu_milli: expected a whole number from 0 to 1000"),
        (OPENB + "a,1,1,1,0,,1,9,1\n", "trace.csv:2: gpu_milli: expected from 1 to 1000 thousandths of a card"),
        (OPENB + "a,nan,1,0,0,,1,9,1\n", "trace.csv:2: cpu_milli: expected a number from 0 on"),
        (
            OPENB + "a,1,1,0,0,,1,9,10\n",
            "trace.csv:2: deletion_time: expected a time from scheduled_time (10) on, got 9",
        ),
        (OPENB + "a,1,1\n", "trace.csv:2: expected 9 fields, got 3"),
        (OPENB + "a,1,1,0,0,,1,9,1\nA,1,1,0,0,,1,9,1\n", "and with - for signs, got 'a' a second time"),
        (OPENB + "a,1,1,0,0,,1,9,1\nA,1,1,0,0,,1,9,1\nb,1,1,0,0,,1,9,1\n", "trace.csv:3: expected a name of its own"),
        (
            OPENB + "\u0663,1,1,0,0,,1,9,1\n",
            "trace.csv:2: expected a name with letters or digits of ASCII, got '\u0663'",
        ),
        (OPENB.replace("gpu_spec", "cpu_milli") + "a,1,1,0,0,2,1,9,1\n", "trace.csv:1: expected each column once, got"),
        (
            OPENB + "a,9e99,1,0,0,,1,9,1\n",
            "trace.csv:2: cpu_milli: expected a number of at most 1000000000000, got '9e99'",
        ),
        (
            OPENB + "a,inf,1,0,0,,1,9,1\n",
            "trace.csv:2: cpu_milli: expected a number of at most 1000000000000, got 'inf'",
        ),
        (DLRM + "a,H N,b,1,1,1,,,9,1\n", "trace.csv:2: role: expected text that is a label value (at most 63 letters"),
        (
            GENAI + "2024-11-15 16:50:00,1,-M\n",
            "trace.csv:2: checkpoint_model_version_id: expected text that is a label",
        ),
        (
            GENAI + "2024-11-15 16:50:00,1,M\n2024-11-15 16:50:00,1,m\n",
            "trace.csv: expected a name of its own for each",
        ),
        (DLRM + "a,HN,b,1,1,1,,,x,1\n", "trace.csv:2: deletion_time: expected a number"),
        (GENAI + "yesterday,1,M\n", "trace.csv:2: gmt_create: expected an instant such as 2024-11-15 16:57:50"),
        ("gmt_create,other\n", "expected the columns of genai, with exec_time_seconds, checkpoint_model_version_id"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """Place, what was expected, what came."""
    with pytest.raises(InputError) as raised:
        read(tmp_path, text)

    assert said in str(raised.value)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """Spreadsheets write one before the header."""
    row = "a,1000,1,0,0,,1,9,1\n"

    assert read(tmp_path, OPENB + row) == read(tmp_path, "\ufeff" + OPENB + row)


def test_only_a_file_without_times_has_the_hint_about_times(tmp_path: Path) -> None:
    """Another missing column has no such reason."""
    with pytest.raises(InputError) as raised:
        read(tmp_path, OPENB.replace("name,", "pod,"))

    assert "expected the columns of openb, with name, got pod," in str(raised.value)
    assert "hint" not in str(raised.value)


def test_a_named_format_is_taken(tmp_path: Path) -> None:
    """Then its columns are missed, whatever the header looks like."""
    with pytest.raises(InputError, match="expected the columns of dlrm"):
        read(tmp_path, OPENB, "dlrm")


def test_a_file_that_is_not_there_and_one_that_is_no_text(tmp_path: Path) -> None:
    """Both are the user's input."""
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name, said in (("none.csv", "No such file"), ("binary.csv", "expected text in UTF-8")):
        with pytest.raises(InputError, match=said):
            list(read_pods(str(tmp_path / name), None, HAMI, {}))
