"""Reading files: YAML, JSON, lists, directories, standard input, and what is refused."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from kerf.errors import InputError
from kerf.manifests.decode import decode
from kerf.manifests.read import Documents, parse, read_documents
from tests.manifests.texts import refusal


def read(*paths: object, stdin: str = "", recursive: bool = False) -> Documents:
    """Read paths with a text on standard input."""
    return read_documents([str(path) for path in paths], io.StringIO(stdin), recursive=recursive)


def value_of(text: str) -> Any:
    """What `key: TEXT` means."""
    return next(iter(parse(f"key: {text}"))).value()["key"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("010", 8),
        ("0x1F", 31),
        ("1_000", 1000),
        ("-3", -3),
        ("1.5", 1.5),
        ("on", True),
        ("No", False),
        ("~", None),
        ("", None),
        ("2026-01-05", "2026-01-05"),
        ("2026-01-05T07:00:00Z", "2026-01-05T07:00:00Z"),
        ("12:30:00", "12:30:00"),
        ("'1'", "1"),
        ("'on'", "on"),
        ("!!str 12", "12"),
        (".inf", ".inf"),
        ("9" * 500, "9" * 500),
    ],
)
def test_yaml_scalars_mean_what_kubectl_makes_of_them(text: str, expected: object) -> None:
    """YAML 1.1, except that dates and sexagesimal numbers stay text."""
    assert expected == value_of(text)
    assert type(expected) is type(value_of(text))


def test_documents_of_a_stream_keep_their_order_and_place() -> None:
    """Empty documents, comments and directives are no documents."""
    documents = parse("%YAML 1.1\n---\na: 1\n---\n# nothing\n---\n  b: 2\n...\n---\n~\n", "in.yaml")

    assert [{"a": 1}, {"b": 2}] == [document.value() for document in documents]
    assert ["in.yaml:3:1", "in.yaml:7:3"] == [document.place() for document in documents]


def test_anchors_and_merge_keys_are_resolved() -> None:
    """A key of the mapping itself wins over a merged one."""
    (document,) = parse("base: &b {x: 1, y: 2}\nkey: {<<: *b, y: 3}\n")

    assert {"base": {"x": 1, "y": 2}, "key": {"x": 1, "y": 3}} == document.value()


@pytest.mark.parametrize("name", ["in.yaml", "in.json"])
def test_a_list_gives_its_items_each_with_its_place(name: str) -> None:
    """`kubectl get -o json` writes such a List."""
    text = '{"apiVersion": "v1", "kind": "List", "items": [\n  {"kind": "A"},\n  {"kind": "A"}\n]}'
    documents = parse(text, name)

    assert [{"kind": "A"}, {"kind": "A"}] == [document.value() for document in documents]
    assert [f"{name}:2:3", f"{name}:3:3"] == [document.place() for document in documents]


@pytest.mark.parametrize(
    "text",
    ['{"apiVersion": "v1", "kind": "PodList", "items": [{"x": 1}]}', "apiVersion: v1\nkind: PodList\nitems: [x: 1]"],
)
def test_items_of_a_typed_list_inherit_kind_and_version(text: str) -> None:
    """The API leaves both out of the items of a PodList."""
    (document,) = parse(text)

    assert {"apiVersion": "v1", "kind": "Pod", "x": 1} == document.value()


def test_nested_lists_are_flattened() -> None:
    """A List may hold Lists."""
    documents = parse("kind: List\nitems:\n- kind: List\n  items: [{a: 1}, {b: 2}]\n- {c: 3}\n")

    assert [{"a": 1}, {"b": 2}, {"c": 3}] == [document.value() for document in documents]


def test_json_objects_may_follow_each_other() -> None:
    """As `jq` writes them."""
    documents = parse('{"a": 1}\n{"b": 2}\n', "in.json")

    assert [{"a": 1}, {"b": 2}] == [document.value() for document in documents]


def test_a_flow_mapping_that_is_no_json_is_read_as_yaml() -> None:
    """A file without the suffix .json may begin with a brace."""
    assert [{"a": "b"}] == [document.value() for document in parse("{a: b}")]


def test_a_directory_gives_its_manifests_by_name(tmp_path: Path) -> None:
    """Subdirectories only when asked for; other files never."""
    for name in ("b.yml", "a.json", "notes.txt", "sub/c.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'{{"name": "{name}"}}')

    assert ["a.json", "b.yml"] == [document.value()["name"] for document in read(tmp_path)]
    assert ["a.json", "b.yml", "sub/c.yaml"] == [
        document.value()["name"] for document in read(tmp_path, recursive=True)
    ]


def test_a_dash_is_standard_input() -> None:
    """Places in it begin with `stdin`."""
    (document,) = read("-", stdin="a: 1")

    assert ("stdin:1:1", {"a": 1}) == (document.place(), document.value())


def test_every_path_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """A missing file, a directory without manifests, a URL and a file of other bytes, all at once."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes.yaml").write_bytes(b"a: 1\nb: \xff\xfe\n")
    documents = read(tmp_path / "none.yaml", tmp_path / "empty", "https://example.com/a.yaml", tmp_path / "bytes.yaml")
    with pytest.raises(InputError) as error:
        decode(documents)

    assert [
        f"{tmp_path}/none.yaml: expected a file that can be read, got: No such file or directory",
        f"{tmp_path}/empty: expected a file named *.yaml, *.yml or *.json, got none"
        " (hint: -R reads its subdirectories too)",
        "https://example.com/a.yaml: expected a file, a directory or `-`, got a URL (hint: fetch it and give the file)",
        f"{tmp_path}/bytes.yaml:2: expected UTF-8 text, got <other bytes>",
    ] == str(error.value).splitlines()


def test_one_bad_document_does_not_hide_the_next() -> None:
    """Parse errors, duplicate keys and wrong forms of one stream come together, in the order of the input."""
    text = "a: [\n---\nx: 1\nx: 2\n---\nkind: Pod\n---\nb: }\n"

    assert [
        "in.yaml:2:1: expected YAML, got <while parsing a flow node did not find expected node content>",
        "in.yaml:4:1: expected every key once and plain nesting, got <duplicate key 'x'>",
        "in.yaml:6:1: apiVersion: expected text such as v1 or Pod, got <nothing>",
        "in.yaml:8:4: expected YAML, got <while parsing a block node did not find expected node content>",
    ] == refusal(text).splitlines()


@pytest.mark.parametrize("name", ["in.yaml", "in.json"])
def test_duplicate_keys_are_refused_where_the_second_stands(name: str) -> None:
    """PyYAML and json both keep the last one silently."""
    text = '{"kind": "List", "items": [{"a": 1},\n  {"a": {"b": 1, "b": 2}}]}'

    assert f"{name}:2:18: " in refusal(text, name=name)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "a: &x\n  b: *x\n"])
def test_endless_nesting_is_refused(text: str) -> None:
    """PyYAML's composer would overflow the stack and end the process."""
    assert "nested too deeply" in refusal(text)


def test_aliases_that_multiply_are_refused() -> None:
    """A few hundred bytes that stand for ten thousand million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert "grows without end" in refusal("\n".join(lines))


def test_json_that_does_not_parse_names_line_and_column() -> None:
    """A file named .json is never tried as YAML."""
    assert "in.json:2:1: expected JSON, got <Expecting value>" == refusal('{"a":\n}', name="in.json")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_json_has_no_word_that_is_no_number(word: str) -> None:
    """Python reads them, no other program does; as text they are texts. In lists, too, field and place are said."""
    cpu = f'{{"name": "{word}", "resources": {{"limits": {{"cpu": {word}}}}}}}'
    pod = f'{{"apiVersion": "v1", "kind": "Pod", "spec": {{"containers": [\n{cpu}]}}}}'
    column = cpu.rindex(word) + 1
    expected = f"expected a number that JSON has, got <{word}> (hint: JSON has no {word}; leave the field out)"

    path = "spec.containers[0].resources.limits.cpu"
    assert f"in.json:2:{column}: {path}: {expected}" == refusal(pod, name="in.json")
    listed = f'{{"kind": "List", "items": [{pod}]}}'
    assert f"in.json:2:{column}: items[0].{path}: {expected}" == refusal(listed, name="in.json")


def test_the_errors_on_the_reference_page_are_the_real_ones() -> None:
    """docs/reference/manifests.md shows a faulty pool and what is said about it."""
    page = (Path(__file__).parents[2] / "docs/reference/manifests.md").read_text()
    manifest, errors = (page.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("yaml", "text"))

    assert errors.strip() == refusal(manifest, name="pool.yaml")


@pytest.mark.parametrize("name", ["in.json", "in.yaml"])
def test_json_is_nested_no_deeper_than_yaml(name: str) -> None:
    """Checks go down a value by recursion, and Python's stack ends before its JSON reader does."""
    text = '{"a":' * 900 + "1" + "}" * 900

    assert "nested too deeply" in refusal(text, name=name)


@pytest.mark.parametrize(
    "text",
    [
        "&a {kind: List, apiVersion: v1, items: [*a]}",
        "kind: List\nx: [&a {kind: List, items: [{}, {}]}, &b {kind: List, items: [*a, *a, *a, *a]}]\n"
        + "items: [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b]",
    ],
)
def test_a_list_that_stands_in_itself_or_multiplies_is_refused(text: str) -> None:
    """Items are counted over all Lists of a document."""
    errors = parse(text).errors

    assert "its lists grow without end" in str(errors[0])


@pytest.mark.parametrize("is_list", [False, True])
def test_documents_of_yaml_keep_a_few_times_the_size_of_their_text(is_list: bool) -> None:
    """Its nodes take forty times as much; each value, and each place, is the same all the same."""
    objects = [
        {"kind": "Pod", "metadata": {"name": f"p{n}", "labels": {"app": "web", "n": str(n)}}} for n in range(500)
    ]
    texts = [json.dumps(each) for each in objects]
    text = "kind: List\nitems:\n" + "".join(f"- {each}\n" for each in texts) if is_list else "\n---\n".join(texts)
    tracemalloc.start()
    found = parse(text, "some.yaml")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    documents = list(found)
    lines = range(3, 503) if is_list else range(1, 1000, 2)
    first = 3 if is_list else 1
    assert held < 12 * len(text)
    assert objects == [each.value() for each in documents]
    assert [f"some.yaml:{line}:{first + 37}" for line in lines] == [
        each.place(("metadata", "name")) for each in documents
    ]
