"""What counts as an answer of an API server, however it arrives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest
from multidict import MultiDict

from kube.errors import AnswerTooLong, ApiError, NoStatus, NotUnderstood, NotWritable, Unreachable
from kube.objects import Object
from kube.resources import SECRETS, Resource
from kube.runtime import answers
from kube.runtime.codec import InPart, dumps

SECRET, STATUS = {"kind": "Secret", "apiVersion": "v1"}, {"kind": "Status", "apiVersion": "v1"}
LIST = {"kind": "SecretList", "apiVersion": "v1"}
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
INDENTED = orjson.OPT_INDENT_2
PARTIAL_LIST = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}


class Response:
    """From memory."""

    def __init__(self, *chunks: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.content = self
        self.status = status
        self.headers = MultiDict(headers or {})
        self.chunks = list(chunks)

    async def iter_any(self) -> AsyncIterator[bytes]:
        while self.chunks:
            yield self.chunks.pop(0)


def changed(name: str) -> Object:
    return {"type": "MODIFIED", "object": {**PARTIAL, "metadata": {"name": name}}}


async def events(*chunks: bytes) -> list[Object]:
    return [event async for event in answers.events_of(SECRETS, Response(*chunks), metadata_only=True)]


@pytest.mark.parametrize("length", [1, 7, 64, 10_000])
async def test_events_are_the_same_however_they_are_cut(length: int) -> None:
    status = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    stream = b"\n".join([orjson.dumps(changed("a")), b"", orjson.dumps(changed("b")), orjson.dumps(status), b""])
    found = await events(*(stream[at : at + length] for at in range(0, len(stream), length)))
    assert [event["object"].get("metadata", {}).get("name") for event in found] == ["a", "b", None]
    assert [(event["object"].get("apiVersion"), event["object"]["kind"]) for event in found] == [
        ("v1", "Secret"),
        ("v1", "Secret"),
        (None, "Status"),
    ]


@pytest.mark.parametrize("line", [b"{}", b'{"type": "ADDED", "object": "text"}', b"[]", b"<html>", b'{"type":'])
async def test_what_is_no_event_breaks_the_watch(line: bytes) -> None:
    with pytest.raises(Unreachable):
        await events(line + b"\n")


async def test_an_event_without_end_breaks_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LONGEST_WATCH_LINE", 100)
    assert await events(orjson.dumps(changed("a" * 200)) + b"\n") != []
    with pytest.raises(Unreachable, match="longer than 100 bytes"):
        await events(*[b"x" * 60] * 3)


async def test_bodies_are_read_no_further_than_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LONGEST_ANSWER", 100)
    monkeypatch.setattr(answers, "_LONGEST_ERROR", 100)
    assert await answers.whole("GET", "/", Response(b"a" * 50, b"b" * 50)) == b"a" * 50 + b"b" * 50
    good, bad = Response(*[b"x" * 60] * 9), Response(*[b"x" * 60] * 9, status=500)
    with pytest.raises(AnswerTooLong):
        await answers.whole("GET", "/", good)
    assert str(await answers.error_of(bad)) == "x" * 120
    assert (len(good.chunks), len(bad.chunks)) == (7, 7)


@pytest.mark.parametrize(
    ("body", "code", "retry_after", "expected", "seconds"),
    [
        (b'{"kind": "Status", "message": "m"}', 429, "7", ApiError, 7.0),
        (b'{"kind": "Status", "message": "m"}', 429, "Wed, 21 Oct 2026 07:28:00 GMT", ApiError, None),
        (b"m", 503, "", ApiError, None),
        (b'["m"]', 404, "", NoStatus, None),
    ],
)
async def test_an_error_reports_when_to_ask_again(
    body: bytes, code: int, retry_after: str, expected: type[Exception], seconds: float | None
) -> None:
    response = Response(body, status=code, headers={"Retry-After": retry_after})
    error = await answers.error_of(response)
    assert isinstance(error, expected)
    assert getattr(error, "retry_after", None) == seconds


FAILURE = {**STATUS, "status": "Failure", "reason": "NotFound", "code": 404}


@pytest.mark.parametrize(
    ("body", "whole", "partial", "deletion", "of_many"),
    [
        (SECRET, True, True, True, False),
        ({"kind": "Secret", "apiVersion": "v2"}, False, False, False, False),
        ({"kind": "Secret"}, False, False, False, False),
        (PARTIAL, False, True, False, False),
        ({"kind": "PartialObjectMetadata"}, False, False, False, False),
        ({**STATUS, "status": "Success"}, False, False, True, True),
        (STATUS, False, False, False, False),
        (FAILURE, False, False, False, False),
        ({"kind": "StatusList", "status": "Success"}, False, False, False, False),
        (LIST, False, False, False, True),
        ({"kind": "ConfigMap", "apiVersion": "v1"}, False, False, False, False),
        ({}, False, False, False, False),
    ],
)
async def test_an_answer_is_of_the_kind_that_was_requested(
    body: Object, whole: bool, partial: bool, deletion: bool, of_many: bool
) -> None:
    async def passes(read: Any, **options: bool) -> bool:
        try:
            await read(SECRETS, orjson.dumps(body), **options)
        except NotUnderstood:
            return False
        return True

    assert await passes(answers.object_of) is whole
    assert await passes(answers.object_of, metadata_only=True) is partial
    assert await passes(answers.check_deletion) is deletion
    assert await passes(answers.check_deletion, of_many=True) is of_many


async def test_a_failure_is_one_whatever_its_code() -> None:
    with pytest.raises(NotUnderstood, match="not now"):
        await answers.whole("PUT", "/", Response(orjson.dumps({**FAILURE, "message": "not now"}, option=INDENTED)))
    for body in orjson.dumps({"kind": "Job", "status": "Failure", "of": "Status"}), b'["Status", "Failure"', b"":
        assert await answers.whole("PUT", "/", Response(body)) == body


@pytest.fixture(params=[False, True], ids=["small", "large"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large lists are decoded item by item."""
    monkeypatch.setattr(answers, "_LARGE_LIST", 0 if request.param else 1 << 20)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "page",
    [
        {},
        LIST,
        {**SECRET, "items": []},
        {"kind": "SecretList", "items": []},
        {"kind": "PodList", "apiVersion": "v1", "items": []},
        {"kind": "SecretList", "apiVersion": "apps/v1", "items": []},
        {"kind": "TodoList", "apiVersion": "v1", "items": []},
        {**PARTIAL_LIST, "items": []},
        {**FAILURE, "items": []},
        {**LIST, "items": [], "metadata": {"remainingItemCount": 5}},
        {**LIST, "items": {}},
        {**LIST, "items": [1]},
        {**LIST, "items": ["text"]},
    ],
)
async def test_half_a_list_or_another_is_none(page: Object) -> None:
    with pytest.raises(NotUnderstood):
        await answers.list_of(SECRETS, orjson.dumps({"metadata": {}, **page}))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"[1]", "the response is not a JSON object"),
        (b"{", "the response is not valid JSON: "),
        (b'{"kind": "SecretList", "items": [', "the response is not a list of objects in JSON: it has no items"),
        (b'{"a": [[1]]', "the response is not a list of objects in JSON: it has no items"),
    ],
)
async def test_what_is_no_json_is_reported_in_one_way(body: bytes, text: str) -> None:
    is_list = b"[" in body and body != b"[1]"
    with pytest.raises(NotUnderstood) as refused:
        await (answers.list_of if is_list else answers.object_of)(SECRETS, body)
    assert str(refused.value).startswith(text)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("items", [None, []])
@pytest.mark.parametrize("head", [LIST, PARTIAL_LIST])
async def test_a_list_may_have_no_items(items: object, head: Object) -> None:
    body = orjson.dumps({**head, "metadata": {}, "items": items})
    assert (await answers.list_of(SECRETS, body, metadata_only=True))["items"] == []


WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)


@pytest.mark.parametrize(("kind", "passes"), [("WidgetBundle", True), ("GadgetList", False), ("WidgetList", True)])
async def test_lists_of_custom_resources_may_have_a_name_of_their_own(kind: str, passes: bool) -> None:
    async def other_kind() -> str:
        return "WidgetBundle"

    body = orjson.dumps({"kind": kind, "apiVersion": "example.com/v1", "metadata": {}, "items": []})
    with contextlib.nullcontext() if passes else pytest.raises(NotUnderstood):
        assert (await answers.list_of(WIDGETS, body, other_kind=other_kind))["items"] == []


@pytest.mark.usefixtures("large")
async def test_items_of_a_list_are_named_after_their_resource() -> None:
    body = {**LIST, "metadata": {"continue": "c"}, "items": [{"metadata": {}}, {}]}
    page = await answers.list_of(SECRETS, orjson.dumps(body))
    assert page["metadata"] == {"continue": "c"}
    assert [(item["apiVersion"], item["kind"]) for item in page["items"]] == [("v1", "Secret")] * 2


# --- one that can't be read


def nested(levels: int, inner: bytes = b"1") -> bytes:
    return b'{"f:a":' * levels + inner + b"}" * levels


def managed_by(fields: bytes) -> bytes:
    return b'[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":' + fields + b"}]"


def widget(name: str, *, managed_fields: bytes = b"", more: bytes = b"") -> bytes:
    managed = b',"managedFields":' + managed_fields if managed_fields else b""
    meta = b'{"name":"' + name.encode() + b'","resourceVersion":"7"' + managed + b"}"
    return b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":' + meta + more + b"}"


GOOD = [widget(f"good-{number}", managed_fields=managed_by(nested(3, b"{}"))) for number in range(3)]
BAD = [
    pytest.param(widget("bad", managed_fields=managed_by(nested(levels, b"{}"))), True, id=f"{levels} levels managed")
    for levels in (990, 1_100, 9_000)
] + [
    pytest.param(widget("bad", more=b',"spec":' + nested(9_000)), False, id="9000 levels"),
    pytest.param(widget("bad", more=b',"spec":' + b"[" * 5_000 + b"{}" + b"]" * 5_000), False, id="5000 lists"),
    pytest.param(widget("bad", more=b',"spec":{"n":1e400,"m":-1e999}'), False, id="infinite"),
    pytest.param(widget("bad", more=b',"spec":{"n":NaN}'), False, id="no number"),
    pytest.param(widget("bad", more=b',"spec":{"n":' + b"9" * 10_000 + b"}"), False, id="10000 digits"),
    pytest.param(widget("bad", more=b',"spec":{"text":"\xff\xfe"}'), False, id="no UTF-8"),
    pytest.param(widget("bad", more=b',"spec":{"text":"\\ud800"}'), False, id="half a character"),
    pytest.param(widget("bad", more=b',"spec":{"text":"\x01"}'), False, id="a control character"),
    pytest.param(widget("bad", more=b',"spec":{"t":"}]\\"{[","deep":' + nested(2_000) + b"}"), False, id="brackets"),
]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("keep", [False, True], ids=["without managed fields", "with managed fields"])
@pytest.mark.parametrize(("bad", "is_whole"), BAD)
async def test_one_object_that_cannot_be_read_hides_no_other(bad: bytes, is_whole: bool, keep: bool) -> None:
    items = b",\n".join([*GOOD, bad, *GOOD])
    head = b'{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items": ['
    page = await answers.list_of(WIDGETS, head + items + b"]}", managed_fields=keep)
    stream = b"".join(b'{"type":"ADDED","object":' + item + b"}\n" for item in (*GOOD, bad, *GOOD))
    events = [event async for event in answers.events_of(WIDGETS, Response(stream), managed_fields=keep)]
    for found in page["items"], [event["object"] for event in events]:
        assert [item["metadata"]["name"] for item in found] == [
            *(name := ["good-0", "good-1", "good-2"]),
            "bad",
            *name,
        ]
        assert found[0]["metadata"].get("managedFields") == (
            orjson.loads(managed_by(nested(3, b"{}"))) if keep else None
        )
        if not keep:
            assert [item["metadata"]["name"] for item in found if isinstance(item, InPart)] == [
                "bad" for _ in range(not is_whole)
            ]
        assert found[3]["metadata"]["resourceVersion"] == "7"
    answer = await answers.object_of(WIDGETS, bad)
    assert answer["metadata"]["name"] == "bad"


async def test_what_is_left_out_is_never_written() -> None:
    body = widget("bad", more=b',"spec":{"replicas":2,"deep":' + nested(2_000) + b"}")
    obj = await answers.object_of(WIDGETS, body)
    assert obj["spec"]["replicas"] == 2
    for written in obj, {"spec": obj["spec"]}:
        with pytest.raises(NotWritable, match="was not read completely"):
            dumps(written)
    with pytest.raises(NotWritable, match="Widget bad can't be written"):
        dumps({"kind": "Widget", "metadata": {"name": "bad"}, "spec": orjson.loads(nested(300))})


@pytest.mark.parametrize(
    "more",
    [
        b',"spec":{"managedFields":[{"a":1}]}',
        b',"spec":{"managedFields":[{"a":[{"b":1}]}],"items":[{"c":1}]}',
        b',"spec":{"x\\"managedFields":[{"a":1}]}',
        b',"spec":{"text":"\\"managedFields\\":[{}]"}',
    ],
)
@pytest.mark.parametrize(
    "managed",
    [
        b"",
        managed_by(nested(2, b"{}")),
        managed_by(b'{"v:[{\\"a\\":1}]":{}}'),
        managed_by(b'{"f:a}],\\"uid\\":\\"x\\"":[[{}]]}'),
    ],
)
async def test_only_managed_fields_are_cut_out(more: bytes, managed: bytes) -> None:
    body = widget("w", managed_fields=managed, more=more)
    (event,) = [e async for e in answers.events_of(WIDGETS, Response(b'{"type":"ADDED","object":' + body + b"}\n"))]
    expected = orjson.loads(body)
    expected["metadata"].pop("managedFields", None)
    assert event["object"] == expected


async def test_looking_through_a_large_object_gives_way() -> None:
    body = widget("bad", more=b',"spec":[' + nested(1_100) + b",[[]]" * 300_000 + b"]")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await answers.object_of(WIDGETS, body)
    task.cancel()
    assert turns > 5
