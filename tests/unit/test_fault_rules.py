"""Which requests meet which fault, and how faults look on the wire."""

import json
from typing import Any

import pytest

from devcluster.testing.faults import (
    Answer,
    EndWatch,
    Fault,
    LateEvents,
    LineJoiner,
    RepeatEvents,
    Request,
    Reset,
    Rule,
    Rules,
    Silence,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)

GET = Request(method="GET", path="/api/v1/namespaces/garden/secrets/a", user_agent="agent/1.0")
LIST = Request(method="GET", path="/api/v1/secrets", query="limit=500&continue=abc")
WATCH = Request(method="GET", path="/api/v1/secrets", query="watch=1&resourceVersion=7", watch=True)
POST = Request(method="POST", path="/api/v1/namespaces/garden/secrets")
EVERYTHING = (GET, LIST, WATCH, POST)


@pytest.mark.parametrize(
    ("rule", "fitting"),
    [
        (Rule(fault=Reset()), EVERYTHING),
        (Rule(fault=Reset(), methods=("POST", "PUT")), (POST,)),
        (Rule(fault=Reset(), path="secrets$"), (LIST, WATCH, POST)),
        (Rule(fault=Reset(), path="^/api/v1/secrets"), (LIST, WATCH)),
        (Rule(fault=Reset(), query="continue="), (LIST,)),
        (Rule(fault=Reset(), user_agent="^agent/"), (GET,)),
        (Rule(fault=Reset(), watch=True), (WATCH,)),
        (Rule(fault=Reset(), watch=False), (GET, LIST, POST)),
        (Rule(fault=EndWatch(how=WatchEnd.CLOSED)), (WATCH,)),
        (Rule(fault=RepeatEvents()), (WATCH,)),
        (Rule(fault=LateEvents(seconds=1)), (WATCH,)),
        (Rule(fault=Reset(), methods=("GET",), path="secrets$", watch=False), (LIST,)),
        (Rule(fault=Reset(), path="configmaps"), ()),
    ],
)
def test_a_rule_fits_only_requests_that_fit_all_it_states(rule: Rule, fitting: tuple[Request, ...]) -> None:
    assert tuple(request for request in EVERYTHING if rule.fits(request)) == fitting


def test_the_first_rule_that_fits_decides() -> None:
    rules = Rules()
    rules.add(Rule(fault=throttled(), methods=("POST",)), Rule(fault=Reset()), Rule(fault=Silence()))
    assert rules.choose(POST) == throttled()
    assert rules.choose(GET) == Reset()


def test_a_rule_that_is_used_up_leaves_the_request_to_the_next() -> None:
    rules = Rules()
    rules.add(Rule(fault=unauthorized(), times=2), Rule(fault=Reset(), times=1))
    assert [rules.choose(GET) for _ in range(4)] == [unauthorized(), unauthorized(), Reset(), None]


def test_after_counts_only_requests_that_fit() -> None:
    rules = Rules()
    rules.add(Rule(fault=Reset(), methods=("POST",), after=2, times=1))
    found = [rules.choose(request) for request in (GET, POST, GET, POST, GET, POST, POST)]
    assert found == [*[None] * 5, Reset(), None]


def draws(rules: Rules, request: Request, count: int) -> list[Fault | None]:
    return [rules.choose(request) for _ in range(count)]


def test_probability_hits_its_share_and_repeats_with_the_seed() -> None:
    def fresh(seed: int) -> Rules:
        rules = Rules(seed)
        rules.add(Rule(fault=Reset(), probability=0.25))
        return rules

    first = draws(fresh(1), GET, 1000)
    assert 200 < first.count(Reset()) < 300
    assert draws(fresh(1), GET, 1000) == first
    assert draws(fresh(2), GET, 1000) != first


@pytest.mark.parametrize(
    ("reported", "message"),
    [
        ({"methods": "GET"}, "Rule.methods: must be a tuple of DELETE, GET, .*, not 'GET'"),
        ({"methods": ("LIST",)}, "Rule.methods: .* not .'LIST'"),
        ({"path": "("}, "Rule.path: '.' is no regular expression: missing"),
        ({"query": "["}, "Rule.query: '.' is no regular expression"),
        ({"user_agent": "*"}, "Rule.user_agent: '.' is no regular expression: nothing to repeat"),
        ({"probability": 1.5}, "Rule.probability: must be from 0 to 1, not 1.5"),
        ({"fault": RepeatEvents(), "watch": False}, "Rule.watch: .* repeated-events strikes watches only"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(reported: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rule(**{"fault": Reset(), **reported})


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        (expired(), 410, "Expired"),
        (unauthorized(), 401, "Unauthorized"),
        (internal_error(), 500, "InternalError"),
        (unavailable(), 503, "ServiceUnavailable"),
    ],
)
def test_a_failure_is_a_status_object(answer: Answer, code: int, reason: str) -> None:
    assert answer.code == code
    assert answer.headers == {"Content-Type": "application/json"}
    body = json.loads(answer.body)
    assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
    assert (body["code"], body["reason"]) == (code, reason)


def test_retry_after_stands_in_header_and_status() -> None:
    answer = unavailable(retry_after=3)
    assert answer.headers["Retry-After"] == "3"
    assert json.loads(answer.body)["details"] == {"retryAfterSeconds": 3}


def test_throttling_is_plain_text_as_an_overloaded_api_server_sends_it() -> None:
    answer = throttled(retry_after=2)
    assert answer.headers == {"Content-Type": "text/plain; charset=utf-8", "Retry-After": "2"}
    assert answer.body == b"Too many requests, please try again later.\n"


def test_last_words_of_a_watch() -> None:
    words = WatchEnd.EXPIRED.last_words
    assert words.endswith(b"\n")
    event = json.loads(words)
    assert event["type"] == "ERROR"
    assert (event["object"]["kind"], event["object"]["code"], event["object"]["reason"]) == ("Status", 410, "Expired")
    assert not WatchEnd.TRUNCATED.last_words.endswith(b"\n")
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(WatchEnd.TRUNCATED.last_words)
    assert {how.last_words for how in (WatchEnd.CLOSED, WatchEnd.RESET, WatchEnd.SILENT)} == {b""}


@pytest.mark.parametrize(
    ("end", "events"),
    [
        (EndWatch(how=WatchEnd.CLOSED), 0),
        (EndWatch(how=WatchEnd.CLOSED, after_events=3), 3),
        (EndWatch(how=WatchEnd.CLOSED, after_seconds=1.0), None),
        (EndWatch(how=WatchEnd.CLOSED, after_events=3, after_seconds=1.0), 3),
    ],
)
def test_a_watch_ends_at_once_unless_events_or_time_are_given(end: EndWatch, events: int | None) -> None:
    assert end.events_to_pass == events


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_joined_however_the_stream_is_cut(size: int) -> None:
    stream = b'{"a":1}\n{"b":2}\n{"c":3}\n{"d"'
    joiner = LineJoiner(limit=100)
    blocks = [joiner.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert b"".join(blocks) == b'{"a":1}\n{"b":2}\n{"c":3}\n'
    assert all(block == b"" or block.endswith(b"\n") for block in blocks)


def test_a_line_without_end_is_an_error() -> None:
    joiner = LineJoiner(limit=10)
    assert joiner.feed(b"12345678") == b""
    with pytest.raises(ValueError, match="a watch event is longer than 10 bytes"):
        joiner.feed(b"90abc")
