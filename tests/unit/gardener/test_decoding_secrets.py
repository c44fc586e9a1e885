"""From the data of Secrets to objects and errors."""

import json
import tracemalloc
from typing import Any

import brotli
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gardener.managed_resource.decode import (
    LARGEST_DOCUMENT,
    LARGEST_OBJECT,
    DecodeError,
    DecodeResult,
    Limits,
    _documents,
    decode_secrets,
    decompress,
    split,
    unfolded_size,
)
from kit.garbage import garbage
from kube.objects import Key, Object
from kube.yaml import Budget, DialectError

SECRET = Key("ctl", "s")


def decode(text: str | bytes, *, key: str = "m.yaml", limits: Limits | None = None) -> DecodeResult:
    data = text.encode() if isinstance(text, str) else text
    return decode_secrets([(SECRET, {key: data})], limits=limits)


def outcomes(result: DecodeResult) -> list[tuple[int, Any]]:
    """Objects and 'error', each with its index."""
    found = [(item.index, item.object) for item in result.objects]
    return sorted([*found, *((error.index, "error") for error in result.errors)], key=lambda pair: pair[0])


A, B, C = {"a": 1}, {"b": 2}, {"c": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# c", []),
        ("---\n---\n", []),
        ("---\na: 1\n---\nb: 2\n", [(0, A), (1, B)]),
        ("a: 1\n---", [(0, A)]),
        ("a: 1\n--- \nb: 2", [(0, A), (1, B)]),
        ("a: 1\n---\t# x\nb: 2", [(0, A), (1, B)]),
        ("a: 1\n---#x\nb: 2", [(0, A), (1, B)]),
        ("a: 1\r\n---\r\nb: 2\r\n", [(0, A), (1, B)]),
        ("a: |\n  ---\n  x\n---\nb: 2", [(0, {"a": "---\nx\n"}), (1, B)]),
        ("a: |\n  x", [(0, {"a": "x\n"})]),
        ("a: |\n  x\n---\nb: 2", [(0, {"a": "x\n"}), (1, B)]),
        ("a: 1\n ---\nb: 2", [(0, {"a": "1 ---", "b": 2})]),
        ("a: 1\n---\n---\nb: 2", [(0, A), (1, B)]),
        ("---\n\n---\n# c\n---\na: 1", [(2, A)]),
        ("a: 1\n...\nb: [\n---\nc: 3", [(0, A), (1, C)]),
        ("\ufeffa: 1", [(0, A)]),
        # what is broken spoils only itself
        ("kind: [\n---\na: 1", [(0, "error"), (1, A)]),
        ("hello\n---\na: 1\n", [(0, "error"), (1, A)]),
        ("- x\n---\na: 1", [(0, "error"), (1, A)]),
        ("5\n---\na: 1", [(0, "error"), (1, A)]),
        ("null\n---\na: 1", [(1, A)]),
        # an invalid separator takes the text before it with it
        ("a: 1\n---x\nb: 2\n---\nc: 3", [(0, "error"), (1, B), (2, C)]),
        ("a: 1\n---x\n---y\nb: 2", [(0, "error"), (1, "error"), (2, B)]),
        ("a: 1\n----\nb: 2", [(0, "error"), (1, B)]),
        ("---x\na: 1", [(0, "error"), (1, A)]),
        ("a: 1\n---x", [(0, "error")]),
    ],
)  # fmt: skip
def test_yaml_is_split_at_separator_lines(text: str, expected: list[tuple[int, Any]]) -> None:
    assert outcomes(decode(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', [(0, A)]),
        ('  \n {"a":1}{"b":2}\n{"c":3} ', [(0, A), (1, B), (2, C)]),
        ('{"a":1} null {"b":2}', [(0, A), (2, B)]),
        ('{"a":1}{"b":2} [1] {"c":3}', [(0, A), (1, B), (2, "error"), (3, C)]),
        ("{} {}", [(0, {}), (1, {})]),
        # it may go on as YAML, or be YAML from the start
        ('{"a":1}\n---\nb: 2\n', [(0, A), (1, B)]),
        ('{"a":1}\n---\n{"b":2}\n', [(0, A), (1, B)]),
        ('{"a":1}\n---\nb: 2\n---\nc: 3', [(0, A), (1, B), (2, C)]),
        ('{"a":1}\n\n# c\n---\nb: 2', [(0, A), (2, B)]),
        ('{"a":1}\n\n\n---\nb: 2', [(0, A), (2, B)]),
        ('{"a":1}   ---\nb: 2', [(0, A), (1, B)]),
        ('{"a":1}\n---', [(0, A)]),
        ("{a: 1}\n---\nb: 2", [(0, A), (1, B)]),
        ('{"a":1,}', [(0, A)]),
        ("{\"a\": 'x', \"b\": yes}", [(0, {"a": "x", "b": True})]),
        # but not any more after two JSON documents
        ('{"a":1}{"b":2}\n---\nc: 3\n', [(0, A), (1, B), (2, "error")]),
        ('{"a":1}{"b":2} x', [(0, A), (1, B), (2, "error")]),
        # and what is neither is one error
        ('{"kind": } {', [(0, "error")]),
        ('{"a":1} {', [(0, A), (1, "error")]),
        ('{"a":1};', [(0, A), (1, "error")]),
        ('{"a":1}\n---\nkind: [\n---\nc: 3', [(0, A), (1, "error"), (2, C)]),
        (r'{"a":"\ud800"}', [(0, "error")]),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", [(0, "error")]),
        ('{"a":' * 20_000, [(0, "error")]),
    ],
)  # fmt: skip
def test_json_objects_follow_one_another(text: str, expected: list[tuple[int, Any]]) -> None:
    assert outcomes(decode(text)) == expected


def test_whole_numbers_of_json_have_no_point_so_that_integer_fields_take_them() -> None:
    text = '{"a": 1.0, "b": 1e3, "c": 0.5, "d": 12345678901, "e": -0.0, "f": 1e30}'
    (item,) = decode(text).objects
    assert json.dumps(item.object) == '{"a": 1, "b": 1000, "c": 0.5, "d": 12345678901, "e": 0, "f": 1e+30}'


def test_secrets_come_in_their_order_and_keys_sorted() -> None:
    other = Key("ctl", "a")
    result = decode_secrets([(SECRET, {"b": b"i: 2", "a": b"i: 1", "B": b"i: 0"}), (other, {"x": b"i: 3\n---\ni: 4"})])
    assert [(d.object["i"], d.secret, d.data_key, d.index) for d in result.objects] == [
        (0, SECRET, "B", 0),
        (1, SECRET, "a", 0),
        (2, SECRET, "b", 0),
        (3, other, "x", 0),
        (4, other, "x", 1),
    ]


def test_an_error_reads_as_the_original_writes_it() -> None:
    (error,) = decode("a: 1\n---x\n").errors
    assert str(error) == (
        "Could not decode resource at index 0 in 'm.yaml' in secret 'ctl/s': invalid Yaml document separator: x."
    )


def test_a_parse_error_names_the_line_in_the_data_key() -> None:
    (error,) = decode("a: 1\n---\nb: 1\n---\n\nc:\n\td: 1").errors
    assert (error.index, error.message) == (2, "line 7: found character that cannot start any token")


# --- compression


def test_the_suffix_alone_decides_what_is_compressed() -> None:
    packed = brotli.compress(b"a: 1")
    assert outcomes(decode(packed, key="x.br")) == [(0, A)]
    assert outcomes(decode(packed, key="x")) == [(0, "error")]


@pytest.mark.parametrize(
    "data", [b"", b"not brotli", brotli.compress(b"a: 1" * 100)[:-3], brotli.compress(b"a") + b"x"]
)
def test_a_broken_brotli_stream_is_one_error_and_other_keys_are_read(data: bytes) -> None:
    result = decode_secrets([(SECRET, {"a.br": data, "b": b"b: 2"})])
    assert [(error.data_key, error.index) for error in result.errors] == [("a.br", 0)]
    assert [item.object for item in result.objects] == [B]


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000])
def test_a_brotli_stream_is_read_to_its_end(size: int) -> None:
    content = bytes(i % 251 for i in range(size))
    assert decompress(brotli.compress(content, quality=1), limit=size) == content


def test_a_decompression_bomb_is_an_error() -> None:
    bomb = brotli.compress(b"\0" * 10_000_000, quality=5)
    with pytest.raises(DialectError, match="larger than 1000000 bytes"):
        decompress(bomb, limit=1_000_000)


# --- limits


def test_all_keys_together_may_not_be_too_long() -> None:
    result = decode_secrets([(SECRET, {"a": b"a: 1", "b": b"b: 2", "c": b"c: 3"})], limits=Limits(total_bytes=9))
    assert [item.object for item in result.objects] == [A, B]
    assert [error.data_key for error in result.errors] == ["c"]


def test_a_key_with_too_many_documents_ends_with_one_error() -> None:
    result = decode_secrets([(SECRET, {"a": b"{}" * 10, "b": b"b: 2"})], limits=Limits(documents=3))
    assert len(result.objects) == 3
    assert [(error.data_key, error.index) for error in result.errors] == [("a", 3), ("b", 0)]


def in_list(*items: Any, kind: str = "v1 List") -> Object:
    api_version, _, name = kind.rpartition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"resourceVersion": ""}, "items": list(items)}


MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
ROLE: Object = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
ALLOW_LIST: Object = {"apiVersion": "example.com/v1", "kind": "AllowList", "spec": {"items": []}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (in_list(MAP, ROLE), [MAP, ROLE]),
        (in_list(MAP, kind="v1 ConfigMapList"), [MAP]),
        # items of a typed list may lack what the list states
        (in_list({"metadata": {"name": "r"}}, kind="rbac.authorization.k8s.io/v1 RoleList"), [ROLE]),
        (in_list(in_list(MAP), None, ROLE), [MAP, ROLE]),
        (in_list(), []),
        ({"apiVersion": "v1", "kind": "List"}, []),
        ({"apiVersion": "v1", "kind": "List", "items": None}, []),
        # one broken item spoils only itself
        (in_list("text", MAP), ["the document is a string, but must be an object (a mapping)", MAP]),
        ({"apiVersion": "v1", "kind": "List", "items": "text"}, [{"apiVersion": "v1", "kind": "List", "items": "text"}]),
        # a kind of a user that only sounds like it
        (ALLOW_LIST, [ALLOW_LIST]),
        (in_list(in_list(in_list(in_list(in_list(in_list(in_list(in_list(in_list(MAP))))))))),
         ["more than 8 lists are nested within each other; split them"]),
    ],
)  # fmt: skip
def test_a_list_stands_for_its_items(document: Object, expected: list[Any]) -> None:
    result = decode_secrets([(SECRET, {"a": json.dumps(document).encode()})])
    assert [item.object for item in result.objects] == [each for each in expected if isinstance(each, dict)]
    assert [error.message for error in result.errors] == [each for each in expected if isinstance(each, str)]
    assert {item.index for item in result.objects} | {error.index for error in result.errors} <= {0}


def test_each_item_of_a_list_counts_as_a_document() -> None:
    result = decode_secrets([(SECRET, {"a": json.dumps(in_list(*[MAP] * 9)).encode()})], limits=Limits(documents=3))
    assert len(result.objects) == 3
    assert [error.message for error in result.errors] == [
        "there are more than 3 documents; use several ManagedResources"
    ]


@pytest.mark.parametrize("text", ["\n---\n".join(["a: [1, 2, 3, 4]"] * 9), '{"a": [1, 2, 3, 4]}' * 9])
def test_values_are_counted_over_all_keys_and_each_key_beyond_is_one_error(text: str) -> None:
    result = decode_secrets([(SECRET, {"a": text.encode(), "b": b"b: 2\n---\nc: 3"})], limits=Limits(values=30))
    assert [error.data_key for error in result.errors] == ["a", "b"]


def test_a_long_string_that_anchors_repeat_counts_each_time() -> None:
    # In memory it is there once; as JSON it would be 100 MB.
    text = f"a: &x {'x' * 10_000}\nb: [{', '.join(['*x'] * 10_000)}]\n---\nc: 3"
    [error] = decode(text).errors
    assert error.message.startswith("too much text, counting what anchors expand to")


FIELDS = ", ".join(f"k{number}: 1" for number in range(1000))


@pytest.mark.parametrize(
    "bomb",
    [
        f"x: &x {{{FIELDS}}}\ny:\n" + "- <<: *x\n" * 100,
        f"x: &x {{{FIELDS}}}\ny:\n" + "- *x\n" * 100,
        f"x: &x {{{FIELDS}}}\ny: &y\n" + "- <<: *x\n" * 10 + "z: [" + "*y, " * 10 + "]\n",
        "a: &a [1, 1]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)),
    ],
    ids=["merged", "repeated", "merged in what is repeated", "doubled"],
)
def test_values_that_merge_keys_add_are_counted(bomb: str) -> None:
    """Before they take memory, and not as if they stood there; a document after that is read."""
    result = decode(f"{bomb}\n---\nc: 3")
    [error] = result.errors
    assert error.message.startswith("too many values, counting what anchors expand to")
    assert [decoded.object for decoded in result.objects] == [{"c": 3}]


def test_anchors_as_people_use_them_do_not_count_as_much() -> None:
    text = f"x: &x {{{FIELDS}}}\nlist:\n" + "- <<: *x\n" * 40
    [decoded] = decode(text).objects
    assert len(decoded.object["list"]) == 40


def test_values_of_json_are_counted_only_up_to_what_there_may_be() -> None:
    """To count ten million takes 0.3 s in one go, while the event loop waits."""
    budget = Budget(1000)
    [error] = _documents(b'{"k":[' + b"[]," * (3 << 20) + b"[]]}", budget)
    assert str(error).startswith("too many values")
    assert -budget.values < 1 << 20


LONG = "x" * LARGEST_DOCUMENT
TOO_LARGE = (
    "the document is larger than 4194304 bytes, but API servers accept objects of up to 3145728; divide the object"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a: 1\n---\nb: {LONG}\n---\nc: 3", [A, C]),
        (f"a: 1\n---\nb: '{LONG}'\n---\nc: 3", [A, C]),
        (f'{{"a": 1}}{{"b": "{LONG}"}}\n---\nc: 3', [A, C]),
        (f'{{"b": "{LONG}"}}', []),
        (f'{{"a": 1}}{{"b": 2}}{{"b": [{LONG.replace("x", "1,")}]}}', [A, B]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_document_that_is_too_large_is_not_even_parsed(text: str, expected: list[Any]) -> None:
    limits = Limits(values=10 * LARGEST_DOCUMENT)
    result = decode(text, limits=limits)
    assert [item.object for item in result.objects] == expected
    assert [error.message for error in result.errors] == [TOO_LARGE]


def test_a_long_stream_of_json_is_read_piece_by_piece() -> None:
    objects = [{"number": number, "text": "é" * 100_000} for number in range(100)]
    result = decode("\n".join(json.dumps(obj, ensure_ascii=False) for obj in objects))
    assert [item.object for item in result.objects] == objects
    broken = decode("\n".join(json.dumps(obj, ensure_ascii=False) for obj in objects) + '\n{"a": ]')
    assert [error.message for error in broken.errors] == ["line 101, column 7: invalid JSON: Expecting value"]


def test_a_document_with_very_many_values_ends_with_an_error() -> None:
    result = decode(f"a: [{'1,' * 200_000}]\n---\nc: 3")
    assert [item.object for item in result.objects] == [C]
    assert [error.message for error in result.errors] == ["more than 150000 values in one document; divide the object"]


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"a": b"123", "b": b"45"}, 5),
        ({"a.br": brotli.compress(b"x" * 500)}, 500 + len(brotli.compress(b"x" * 500))),
        ({"a.br": b"no Brotli"}, 9),
        ({"a.br": brotli.compress(bytes(10_000_000), quality=1)}, 1000),
        ({"a": bytes(5000), "b": b"1"}, 1000),
    ],
)
def test_what_secrets_unfold_to_is_measured_up_to_a_limit(data: dict[str, bytes], size: int) -> None:
    assert unfolded_size([data], limit=1000) == size


# --- what every object must hold to


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", "the document is a string, but must be an object (a mapping)"),
        ("[]", "the document is a list, but must be an object (a mapping)"),
        ("metadata: x", "metadata is a string, but must be a mapping"),
        ("metadata: {labels: {version: 1.0}}", "metadata.labels.version is a number, but must be a string; put it into quotes"),
        ("metadata: {annotations: {a/b: yes}}", "metadata.annotations.a/b is a boolean, but must be a string; put it into quotes"),
        ("metadata: {labels: {x: [1]}}", "metadata.labels.x is a list, but must be a string; put it into quotes"),
        ("metadata: {labels: [x]}", "metadata.labels is a list, but must be a mapping"),
        ("metadata: {name: 5}", "metadata.name is a number, but must be a string; put it into quotes"),
        ("kind: {x: 1}", "kind is a mapping, but must be a string; put it into quotes"),
        ("apiVersion: 1", "apiVersion is a number, but must be a string; put it into quotes"),
    ],
)  # fmt: skip
def test_wrong_types_are_errors_that_name_the_path_and_no_value(text: str, problem: str) -> None:
    (error,) = decode(text).errors
    assert error == DecodeError(SECRET, "m.yaml", 0, problem)


def test_null_labels_and_annotations_are_empty() -> None:
    (item,) = decode("metadata: {labels: {a: null, b: x}, annotations: {c: }}").objects
    assert item.object == {"metadata": {"labels": {"a": "", "b": "x"}, "annotations": {"c": ""}}}
    (item,) = decode("metadata: {labels: }").objects
    assert item.object == {"metadata": {"labels": None}}


# --- properties


@given(st.binary(max_size=200), st.sampled_from(["x", "x.br"]))
def test_decoding_never_raises_and_errors_name_the_key(data: bytes, key: str) -> None:
    result = decode(data, key=key)
    assert all(isinstance(item.object, dict) for item in result.objects)
    places = [(item.secret, item.data_key) for item in result.objects]
    places += [(error.secret, error.data_key) for error in result.errors]
    assert set(places) <= {(SECRET, key)}


@given(st.text(alphabet='{}[]":,ab1 \n-#x', max_size=60))
def test_decoding_ends_for_what_looks_like_json(text: str) -> None:
    found = [index for index, _ in outcomes(decode(text))]
    assert found == sorted(set(found))


LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=10)
OBJECTS = st.lists(
    st.dictionaries(st.text(min_size=1, max_size=5), st.recursive(LEAVES, lambda v: st.lists(v, max_size=3)), min_size=1),
    max_size=5,
)  # fmt: skip


@given(OBJECTS)
def test_what_was_written_as_a_stream_of_documents_is_read_again(objects: list[dict[str, Any]]) -> None:
    objects = [{f"k{name}": value for name, value in obj.items()} for obj in objects]
    text = yaml.safe_dump_all(objects, explicit_start=True, default_style='"')
    assert [item.object for item in decode("".join(json.dumps(obj) for obj in objects)).objects] == objects
    assert len(decode(text).objects) == len(objects)


@given(st.lists(st.text(alphabet="abc: #\n", min_size=1, max_size=10), min_size=1, max_size=5))
def test_splitting_gives_back_the_chunks_that_were_joined(chunks: list[str]) -> None:
    chunks = [f"{chunk}\n" for chunk in chunks]
    found = [chunk for _, chunk in split("---\n".join(chunks).encode())]
    assert found == [chunk.encode() for chunk in chunks]


# --- memory

_WIDE = "\U0001f600"
"""Makes each character of its string take four bytes."""
_LONG = LARGEST_OBJECT * 9 // 10


def _as_json(text: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"k": "{text}"}}}}'


def _as_yaml(data: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{data}\n"


@pytest.mark.parametrize(
    ("document", "count", "separator"),
    [
        (_as_json("a" * _LONG + _WIDE), 10, "\n---\n"),
        (_as_json("a" * _LONG + _WIDE), 10, "\n"),
        (_as_json("a" * _LONG + r"\ud83d\ude00"), 10, "\n"),
        (_as_json(r"\u0000" * (_LONG // 6)), 10, "\n"),
        (_as_yaml(f'  k: "{"a" * _LONG}\\U0001F600"'), 10, "\n---\n"),
        (_as_yaml(f'  ? "{"a" * (_LONG // 2)}\\U0001F600"\n  : x'), 20, "\n---\n"),
        (_as_yaml("  k: |\n" + f"    {'a' * 1000}\n" * (_LONG // 1005) + f"    {_WIDE}"), 10, "\n---\n"),
        (f"# {_WIDE}{'a' * _LONG}\n" + _as_yaml("  k: x"), 10, "\n---\n"),
        (_as_yaml(f'  k: "{chr(92) + "0"}{(chr(92) + "0") * (_LONG // 2)}"'), 10, "\n---\n"),
        (_as_yaml(f'  k: !!binary "{"8J+YgGFh" * (_LONG // 8)}"'), 10, "\n---\n"),
        (_as_yaml(f"  k: {'9' * _LONG}"), 10, "\n---\n"),
    ],
    ids=["json-yaml", "json", "escapes", "nul", "yaml", "keys", "block", "comment", "yaml-nul", "binary", "digits"],
)
def test_memory_is_bounded_whatever_the_characters(document: str, count: int, separator: str) -> None:
    data = brotli.compress(separator.join([document] * count).encode(), quality=1)
    tracemalloc.start()
    try:
        result = decode_secrets([(SECRET, {"a.br": data})])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 * 2**20
    assert len(result.objects) == count
    assert not result.errors


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "[" + "[]," * 600_000 + "[]]}",
        '{"a": 1} {"b": "\udcff"}',
        '{"a": 1} {"b": 2',
        "a: [\n---\nb: 1",
        "- 1\n---\nb: [1\n",
        "kind: 1",
        "[" * 10_000,
        "a: &a [1]\nb: [" + "*a," * 600_000 + "]",
    ],
)
def test_errors_keep_no_text_until_the_garbage_collector_comes(text: str) -> None:
    data = text.encode(errors="surrogateescape")
    with garbage() as found:
        assert decode(data).errors
    assert found.isdisjoint({"frame", "traceback"})
