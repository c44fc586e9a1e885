"""Faults between a client and an API server, and the rules that choose when they occur.

A `Rule` names the requests that it fits and the fault for them; the first rule that fits decides. This module is pure:
it decides, and it knows the form of a fault on the wire; `devcluster.testing.proxy` carries it out.

Faults of any request:

    Answer          a failure instead of the answer: `expired()`, `throttled()`, `unavailable()`, ...
    Foreign         an answer of another server, as of a proxy that can't find the API server: `STRANGERS`
    Truncated       the first half of the answer, as if it were all
    Reset           the connection is reset
    Silence         nothing comes any more, and the connection stays open (half-open TCP)
    Delay           the answer is late
    Trickle         the body comes in small pieces
    Overtake        another client annotates the object just before

The first four take `carried_out`: whether the API server carries the request out before the fault strikes, which the
client can't know.

Faults of a watch that was opened (an event is one line of JSON):

    EndWatch        the stream breaks off, in one of the ways of `WatchEnd`
    RepeatEvents    every event comes twice
    LateEvents      events come late, in their order
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, ClassVar

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Fields of a request that rules match."""

    method: str
    path: str
    query: str = ""
    user_agent: str = ""
    watch: bool = False


def status(*, code: int, reason: str, message: str, retry_after: int | None = None) -> dict[str, Any]:
    """Status of failure in the words of an API server; `retry_after` in seconds."""
    failure: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if retry_after is not None:
        failure["details"] = {"retryAfterSeconds": retry_after}
    return failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Failure in place of the API server's answer, as a Status object, or as text if `plain`."""

    name: str
    code: int
    reason: str
    message: str
    retry_after: int | None = None
    plain: bool = False
    carried_out: bool = False

    @property
    def headers(self) -> dict[str, str]:
        kind = "text/plain; charset=utf-8" if self.plain else "application/json"
        retry = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {"Content-Type": kind, **retry}

    @property
    def body(self) -> bytes:
        if self.plain:
            return f"{self.message}\n".encode()
        failure = status(code=self.code, reason=self.reason, message=self.message, retry_after=self.retry_after)
        return json.dumps(failure).encode()


_EXPIRED = "too old resource version: 1 (2)"


def expired() -> Answer:
    """The resourceVersion of a watch, or the continue token of a list, is too old."""
    return Answer(name="expired", code=410, reason="Expired", message=_EXPIRED)


def throttled(*, retry_after: int = 1) -> Answer:
    """Too many requests. An overloaded API server reports them in plain text, not with a Status."""
    return Answer(
        name="throttled",
        code=429,
        reason="TooManyRequests",
        message="Too many requests, please try again later.",
        retry_after=retry_after,
        plain=True,
    )


def unauthorized() -> Answer:
    """The token is not accepted, as just after its rotation or expiry."""
    return Answer(name="unauthorized", code=401, reason="Unauthorized", message="Unauthorized")


def internal_error(*, carried_out: bool = False) -> Answer:
    return Answer(
        name="internal-error",
        code=500,
        reason="InternalError",
        message="Internal error occurred: injected fault",
        carried_out=carried_out,
    )


def unavailable(*, retry_after: int | None = None, carried_out: bool = False) -> Answer:
    return Answer(
        name="unavailable",
        code=503,
        reason="ServiceUnavailable",
        message="the server is currently unable to handle the request",
        retry_after=retry_after,
        carried_out=carried_out,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Answer that no API server gives; the request is not carried out."""

    name: str
    code: int
    content_type: str
    text: str

    carried_out: ClassVar[bool] = False

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": self.content_type}

    @property
    def body(self) -> bytes:
        return self.text.encode()


_TEXT, _HTML, _JSON = "text/plain; charset=utf-8", "text/html", "application/json"

STRANGERS = (
    Foreign(name="text-404", code=404, content_type=_TEXT, text="404 page not found\n"),
    Foreign(name="json-404", code=404, content_type=_JSON, text='{"message":"no Route matched with those values"}'),
    Foreign(name="html-200", code=200, content_type=_HTML, text="<!doctype html><title>Welcome</title>\n"),
    Foreign(name="html-401", code=401, content_type=_HTML, text="<!doctype html><title>Log in</title>\n"),
    Foreign(name="html-403", code=403, content_type=_HTML, text="<!doctype html><title>Blocked</title>\n"),
    Foreign(name="json-200", code=200, content_type=_JSON, text='{"status":"ok"}'),
    Foreign(name="empty-200", code=200, content_type=_JSON, text=""),
)
"""Answers of proxies, gateways and login pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """The first half of the API server's answer, as a complete answer; empty for a watch."""

    name: ClassVar[str] = "truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The connection is reset in place of an answer."""

    carried_out: bool = False

    @property
    def name(self) -> str:
        return "reset-carried-out" if self.carried_out else "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No answer comes, and the connection stays open until the client gives up."""

    carried_out: bool = False

    @property
    def name(self) -> str:
        return "silence-carried-out" if self.carried_out else "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The answer comes `seconds` late; with `carried_out` the time passes after the API server has acted."""

    seconds: float
    carried_out: bool = False

    @property
    def name(self) -> str:
        return "delay-carried-out" if self.carried_out else "delay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trickle:
    """The body comes in pieces of `size` bytes with `pause` seconds before each.

    On a watch it cuts through lines, so such a watch can't be ended from outside.
    """

    size: int = 64
    pause: float = 0.05

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"Trickle.size: must be at least 1, not {self.size}")

    name: ClassVar[str] = "trickle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtake:
    """An annotation of the object is written just before, with the rights of the client, then the request passes.

    With the resourceVersion as its precondition, the request is refused by the API server itself.
    """

    name: ClassVar[str] = "overtake"


class WatchEnd(StrEnum):
    """Ways in which the stream of a watch ends."""

    CLOSED = "watch-closed"
    """Clean end, as at the API server's own time-out."""
    EXPIRED = "watch-expired"
    """ERROR event of code 410, then a clean end."""
    RESET = "watch-reset"
    """Reset, which may overtake events that the client has not read yet."""
    SILENT = "watch-silent"
    """No more data, not even the end."""
    TRUNCATED = "watch-truncated"
    """Clean end, but half-way through an event."""

    @property
    def last_words(self) -> bytes:
        """Last bytes that the client reads."""
        if self is WatchEnd.EXPIRED:
            error = {"type": "ERROR", "object": status(code=410, reason="Expired", message=_EXPIRED)}
            return json.dumps(error).encode() + b"\n"
        if self is WatchEnd.TRUNCATED:
            return b'{"type":"MODIFIED","object":{"kind":"Conf'
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWatch:
    """The watch ends after so many events (bookmarks count) or seconds, whichever comes first.

    With neither it ends as soon as it was opened.
    """

    how: WatchEnd
    after_events: int | None = None
    after_seconds: float | None = None

    @property
    def name(self) -> str:
        return self.how.value

    @property
    def events_to_pass(self) -> int | None:
        """None if only time decides."""
        if self.after_events is None and self.after_seconds is None:
            return 0
        return self.after_events


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatEvents:
    """Every event comes twice in a row."""

    name: ClassVar[str] = "repeated-events"


@dataclass(frozen=True, slots=True, kw_only=True)
class LateEvents:
    """Events are held back for `seconds` (at most twice that), so that the client's cache is behind."""

    seconds: float

    name: ClassVar[str] = "late-events"


WatchFault = EndWatch | RepeatEvents | LateEvents
Fault = Answer | Foreign | Truncated | Reset | Silence | Delay | Trickle | Overtake | WatchFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Requests that match all of these fields meet the fault.

    `path`, `query` and `user_agent` are regular expressions, found anywhere unless anchored. `query` is as sent,
    percent-encoded. `watch` set to True or False takes only watches, or none; faults of watches take only watches
    anyway. The first `after` requests that fit are let through, of the others each is hit with `probability`, and at
    most `times` of them in all.
    """

    fault: Fault
    methods: tuple[str, ...] = ()
    path: str = ""
    query: str = ""
    user_agent: str = ""
    watch: bool | None = None
    probability: float = 1.0
    after: int = 0
    times: int | None = None

    def __post_init__(self) -> None:
        if not METHODS.issuperset(self.methods):
            known = ", ".join(sorted(METHODS))
            raise ValueError(f"Rule.methods: must be a tuple of {known}, not {self.methods!r}")
        for name in ("path", "query", "user_agent"):
            pattern = getattr(self, name)
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"Rule.{name}: {pattern!r} is no regular expression: {error}") from error
        if not 0 <= self.probability <= 1:
            raise ValueError(f"Rule.probability: must be from 0 to 1, not {self.probability}")
        if self.watch is False and isinstance(self.fault, WatchFault):
            raise ValueError(f"Rule.watch: must not be False, since {self.fault.name} strikes watches only")

    def fits(self, request: Request) -> bool:
        only_watches = isinstance(self.fault, WatchFault) or self.watch
        return (
            (not self.methods or request.method in self.methods)
            and (request.watch if only_watches else self.watch is None or not request.watch)
            and re.search(self.path, request.path) is not None
            and re.search(self.query, request.query) is not None
            and re.search(self.user_agent, request.user_agent) is not None
        )


@dataclass(slots=True, kw_only=True)
class _Standing:
    """A rule in force, with its counters. Each has its own random numbers, so rules don't disturb each other."""

    rule: Rule
    dice: Random
    seen: int = 0
    hits: int = 0

    def strikes(self, request: Request) -> bool:
        rule = self.rule
        if (rule.times is not None and self.hits >= rule.times) or not rule.fits(request):
            return False
        self.seen += 1
        if self.seen <= rule.after or (rule.probability < 1 and self.dice.random() >= rule.probability):
            return False
        self.hits += 1
        return True


@dataclass(slots=True)
class Rules:
    """Rules in force, in order; equal seeds and equal requests meet equal faults."""

    seed: int = 0
    _standing: list[_Standing] = field(default_factory=list)
    _added: int = 0

    def add(self, *rules: Rule) -> None:
        for rule in rules:
            dice = Random(f"{self.seed}/{self._added}")  # noqa: S311 - repeatable on purpose, guards nothing
            self._standing.append(_Standing(rule=rule, dice=dice))
            self._added += 1

    def remove(self, rule: Rule) -> None:
        """Remove the first rule equal to this one.

        Raises:
            ValueError: there is none.
        """
        del self._standing[list(self).index(rule)]

    def clear(self) -> None:
        self._standing.clear()

    @property
    def hits(self) -> int:
        """Number of requests that have met a fault of the rules in force."""
        return sum(standing.hits for standing in self._standing)

    def __iter__(self) -> Iterator[Rule]:
        return (standing.rule for standing in self._standing)

    def __len__(self) -> int:
        return len(self._standing)

    def choose(self, request: Request) -> Fault | None:
        """Return the fault for this request. It counts as a hit of its rule."""
        return next((s.rule.fault for s in self._standing if s.strikes(request)), None)


def object_path(path: str) -> str:
    """Return the path of an object from that of one of its subresources, or its own; empty if there is no object."""
    found = re.match(
        r"(/api/[^/]+|/apis/[^/]+/[^/]+)/(namespaces/[^/]+/(?!status$|finalize$)[^/]+/[^/]+|[^/]+/[^/]+)", path
    )
    return found[0] if found else ""


def first_lines(block: bytes, count: int) -> tuple[bytes, int]:
    """Return the first `count` lines of whole lines, and the number of lines."""
    end = taken = 0
    while taken < count and (newline := block.find(b"\n", end)) >= 0:
        end = newline + 1
        taken += 1
    return block[:end], taken


def each_twice(block: bytes) -> bytes:
    """Repeat each of the whole lines."""
    return b"".join(line + b"\n" + line + b"\n" for line in block.split(b"\n")[:-1])


class LineJoiner:
    """Cuts a stream at ends of lines: keeps the first part of a line until the rest has come."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines completed by this chunk.

        Raises:
            ValueError: a line grows beyond the limit.
        """
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            self._rest += chunk
            if len(self._rest) > self._limit:
                raise ValueError(f"a watch event is longer than {self._limit} bytes")
            return b""
        lines = self._rest + chunk[:end]
        self._rest = chunk[end:]
        return lines
