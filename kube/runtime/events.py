"""Events, as shown to operators by `kubectl describe`, written in the background.

Recording an event costs the caller next to nothing: it is counted and queued, and a background task writes it. Many
events need no request of their own:

    a repeated event (object, type, reason, message) within ten minutes raises the count of the first one;
    repeats that come faster than they are written are written together;
    an object that has had many events gets one in five minutes from then on;
    while the API server does not answer, the queue fills up, and further events are dropped and counted.

The caller ensures that there are no secrets in the message.
"""

import asyncio
import contextlib
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

import structlog

from kube.clock import format_time, utc_now
from kube.errors import (
    AlreadyExists,
    Forbidden,
    KubeError,
    NotFound,
    NotReady,
    ServerFailure,
    TooManyRequests,
    Unreachable,
)
from kube.objects import Key, Object, metadata
from kube.resources import EVENTS
from kube.runtime.client import Client
from kube.runtime.limiter import Allowance
from kube.runtime.metrics import event_recorder_dropped_total

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

EventType = Literal["Normal", "Warning"]

_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 253
_SAME_EVENT_SECONDS = 600.0
_BURST, _PER_SECOND = 25, 1 / 300
"""Rate of events per object."""
_REMEMBERED = 4096
_QUEUED = 1000
_WRITE_ATTEMPTS = 3
_REQUEST_SECONDS = 10.0
_NO_PATCH_SECONDS = 600.0
_WORTH_ANOTHER_TRY = (Unreachable, TooManyRequests, ServerFailure, NotReady)

_K = TypeVar("_K")
_V = TypeVar("_V")


# --- rules


@dataclass(frozen=True, slots=True)
class Involved:
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> "Involved":
        """Identify the object of an Event. Raises ValueError: it is neither an object nor a reference."""
        named = metadata(obj) if "metadata" in obj else obj
        if not obj.get("kind") or not named.get("name"):
            raise ValueError("an event needs an object with kind and name")
        return cls(
            api_version=obj.get("apiVersion") or "",
            kind=obj["kind"],
            namespace=named.get("namespace") or "",
            name=named["name"],
            uid=named.get("uid") or "",
        )

    def reference(self) -> Object:
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {field: value for field, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Content:
    """Identity of an event: equal for repeats."""

    involved: Involved
    type: EventType
    reason: str
    message: str
    reporter: str
    """Reporting component."""


@dataclass(slots=True)
class Series:
    """An event and its repeats."""

    content: Content
    first: datetime
    last: datetime
    seen: float
    count: int = 1
    name: str = ""
    """Name of the event object; empty until just before its creation."""
    is_created: bool = False
    is_queued: bool = False

    @property
    def namespace(self) -> str:
        """Namespace; the default one for events of cluster-scoped objects."""
        return self.content.involved.namespace or "default"


def event_name(object_name: str, nanoseconds: int) -> str:
    """Name of an event, `<object>.<hex time>`; valid for any name of the object."""
    suffix = f".{nanoseconds:x}"
    parts = re.findall(r"[a-z0-9-]+", object_name.lower().replace(":", "-").replace("_", "-"))
    stem = ".".join(part.strip("-") for part in parts if part.strip("-")) or "event"
    return stem[: _LONGEST_NAME - len(suffix)].rstrip(".-") + suffix


def clip(message: str) -> str:
    """Cut the message to the 1024 bytes that an event may have."""
    data = message.encode(errors="replace")
    if len(data) <= _LONGEST_MESSAGE:
        return data.decode()
    return data[: _LONGEST_MESSAGE - len("…".encode())].decode(errors="ignore") + "…"


def event_object(series: Series, *, host: str) -> Object:
    content = series.content
    return {
        **EVENTS.type_meta,
        "metadata": {"name": series.name, "namespace": series.namespace},
        "involvedObject": content.involved.reference(),
        "type": content.type,
        "reason": content.reason,
        "message": content.message,
        "source": {"component": content.reporter, "host": host},
        "reportingComponent": content.reporter,
        "reportingInstance": host,
        **_progress(series),
        "firstTimestamp": format_time(series.first),
    }


def _progress(series: Series) -> Object:
    return {"count": series.count, "lastTimestamp": format_time(series.last)}


# --- the recorder


class EventRecorder:
    """Writes events to a cluster while `run` runs.

    Args:
        client: without a write guard: the end of leadership is reported when the process does not lead any more.
        component: source of the events.
        now: monotonic seconds.
        utcnow: clock for the times in events.
    """

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        host: str = "",
        now: Callable[[], float] = time.monotonic,
        utcnow: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._component = component
        self._host = host or socket.gethostname()
        self._now = now
        self._utcnow = utcnow
        self._queue: asyncio.Queue[Series] = asyncio.Queue(_QUEUED)
        self._series: OrderedDict[Content, Series] = OrderedDict()
        self._allowances: OrderedDict[Involved, Allowance] = OrderedDict()
        self._last_name_time = 0
        self._no_patch_until = float("-inf")
        self._queue_full = event_recorder_dropped_total.labels("queue_full")
        self._rate_limited = event_recorder_dropped_total.labels("rate_limited")
        self._failed = event_recorder_dropped_total.labels("failed")

    def event(self, obj: Mapping[str, Any], type_: EventType, reason: str, message: str, *, reporter: str = "") -> None:
        """Queue an event. Neither waits nor raises.

        Args:
            obj: object of the event: an object with apiVersion and kind, or an ObjectReference.
            type_: Normal or Warning.
            reason: one word in CamelCase.
            message: for people; cut to 1024 bytes.
            reporter: reporting component; the recorder's if empty.
        """
        try:
            self._record(Content(Involved.of(obj), type_, reason, clip(message), reporter or self._component))
        except Exception:
            log.exception("An event could not be recorded", reason=reason)

    def _record(self, content: Content) -> None:
        now = self._now()
        series = self._count(content, now)
        if series.is_queued:
            return
        allowance = self._allowances.get(content.involved)
        if allowance is None:
            allowance = Allowance(burst=_BURST, per_second=_PER_SECOND, clock=self._now)
        _remember(self._allowances, content.involved, allowance)
        if not allowance.take():
            self._rate_limited.inc()
            return
        try:
            self._queue.put_nowait(series)
        except asyncio.QueueFull:
            self._queue_full.inc()
        else:
            series.is_queued = True

    def _count(self, content: Content, now: float) -> Series:
        """Series of an event, this occurrence included."""
        moment = self._utcnow()
        series = self._series.get(content)
        if series is None or now - series.seen > _SAME_EVENT_SECONDS:
            series = Series(content, first=moment, last=moment, seen=now)
        else:
            series.count += 1
            series.last, series.seen = moment, now
        _remember(self._series, content, series)
        self._forget_old(now)
        return series

    def _forget_old(self, now: float) -> None:
        """Forget series that are not counted up any more, and full allowances; the oldest come first."""
        while now - next(iter(self._series.values())).seen > _SAME_EVENT_SECONDS:
            self._series.popitem(last=False)
        while self._allowances and next(iter(self._allowances.values())).is_whole:
            self._allowances.popitem(last=False)

    async def drain(self, timeout: float) -> None:
        """Wait until queued events are written, at most `timeout` seconds; `run` has to be running."""
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            log.info("Some events were not written in time", count=self._queue.qsize())

    # --- writing

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            series = await self._queue.get()
            try:
                await self._write(series)
            except Exception:
                self._failed.inc()
                log.exception("An event could not be written", reason=series.content.reason)
            finally:
                self._queue.task_done()

    async def _write(self, series: Series) -> None:
        attempt = 1
        while True:
            series.is_queued = False  # what comes from here on may be too late for this request
            try:
                await self._send(series)
            except KubeError as error:
                if attempt == _WRITE_ATTEMPTS or not isinstance(error, _WORTH_ANOTHER_TRY):
                    self._failed.inc()
                    log.info("An event was not written", reason=series.content.reason, error=str(error))
                    return
            else:
                return
            await asyncio.sleep(2.0**attempt)
            attempt += 1

    async def _send(self, series: Series) -> None:
        if series.is_created and self._now() >= self._no_patch_until:
            try:
                await self._client.patch(
                    EVENTS, Key(series.namespace, series.name), _progress(series), timeout=_REQUEST_SECONDS
                )
            except NotFound:
                pass  # the API server keeps events for an hour or so
            except Forbidden:
                self._no_patch_until = self._now() + _NO_PATCH_SECONDS
            else:
                return
        if series.is_created or not series.name:
            series.name, series.is_created = self._new_name(series), False
        event = event_object(series, host=self._host)
        # Names are not used twice: if there is one already, it is that of an attempt whose answer was lost.
        with contextlib.suppress(AlreadyExists):
            await self._client.create(EVENTS, event, timeout=_REQUEST_SECONDS)
        series.is_created = True

    def _new_name(self, series: Series) -> str:
        self._last_name_time = max(time.time_ns(), self._last_name_time + 1)
        return event_name(series.content.involved.name, self._last_name_time)


def _remember(store: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    """Keep the most recently used entries, up to a limit."""
    store[key] = value
    store.move_to_end(key)
    if len(store) > _REMEMBERED:
        store.popitem(last=False)
