"""What counts as an answer of an API server, however it arrives."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest
from multidict import MultiDict

from kube import answers
from kube.errors import AnswerTooLong, ApiError, NoStatus, Unreachable
from kube.objects import Object
from kube.resources import SECRETS


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
    return {"type": "MODIFIED", "object": {"kind": "PartialObjectMetadata", "metadata": {"name": name}}}


async def events(*chunks: bytes) -> list[Object]:
    return [event async for event in answers.events_of(SECRETS, Response(*chunks))]


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
async def test_an_error_says_when_to_ask_again(
    body: bytes, code: int, retry_after: str, expected: type[Exception], seconds: float | None
) -> None:
    response = Response(body, status=code, headers={"Retry-After": retry_after})
    error = await answers.error_of(response)
    assert isinstance(error, expected)
    assert getattr(error, "retry_after", None) == seconds


@pytest.mark.parametrize(
    ("body", "is_object", "ends_deletion"),
    [
        ({"kind": "Secret"}, True, True),
        ({"kind": "PartialObjectMetadata"}, True, False),
        ({"kind": "Status"}, False, True),
        ({"kind": "SecretList"}, False, True),
        ({"kind": "ConfigMap"}, False, False),
        ({}, False, False),
    ],
)
def test_an_answer_is_of_the_kind_that_was_asked_for(body: Object, is_object: bool, ends_deletion: bool) -> None:
    def passes(read: Any) -> bool:
        try:
            read(SECRETS, orjson.dumps(body))
        except Unreachable:
            return False
        return True

    assert (passes(answers.object_of), passes(answers.check_deletion)) == (is_object, ends_deletion)


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"kind": "SecretList"},
        {"kind": "Secret", "items": []},
        {"kind": "SecretList", "items": {}},
        {"kind": "SecretList", "items": [1]},
        {"kind": "SecretList", "items": ["text"]},
    ],
)
@pytest.mark.parametrize("large", [False, True])
async def test_half_a_list_is_none(page: Object, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LARGE_LIST", 0 if large else 1 << 20)
    with pytest.raises(Unreachable):
        await answers.list_of(SECRETS, orjson.dumps({"metadata": {}, **page}))


@pytest.mark.parametrize("items", [None, []])
@pytest.mark.parametrize("large", [False, True])
async def test_a_list_may_have_no_items(items: object, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LARGE_LIST", 0 if large else 1 << 20)
    page = await answers.list_of(SECRETS, orjson.dumps({"kind": "SecretList", "metadata": {}, "items": items}))
    assert page["items"] == []


@pytest.mark.parametrize("large", [False, True])
async def test_items_of_a_list_are_named_after_their_resource(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LARGE_LIST", 0 if large else 1 << 20)
    body = {"kind": "SecretList", "apiVersion": "v1", "metadata": {"continue": "c"}, "items": [{"metadata": {}}, {}]}
    page = await answers.list_of(SECRETS, orjson.dumps(body))
    assert page["metadata"] == {"continue": "c"}
    assert [(item["apiVersion"], item["kind"]) for item in page["items"]] == [("v1", "Secret")] * 2
