"""Log entries to standard error, one line each, with the keys of zap, which log shippers of Kubernetes programs parse.

As JSON:  {"level":"info","ts":"2024-09-19T14:56:41.123Z","logger":"webhook.x","msg":"…","field":"value"}
As text:  2024-09-19T14:56:41.123Z<TAB>INFO<TAB>webhook.x<TAB>…<TAB>{"field":"value"}

Both escape control sequences of terminals, and text that would look like another entry or column. As text, only a stack
trace has its own lines, each with a tab before it.

Entries come from structlog loggers (`get_logger`, or `structlog.get_logger(name)` in layers below this one) and from
the standard library's loggers (aiohttp, asyncio); both are processed in the same way: context variables are merged,
sampling drops floods, credentials are cut out, and one renderer writes the line. A disabled level costs one call of an
empty function.

There are three levels, as in the original: debug, info, error. Warnings count as info, critical errors as error.
"""

import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, Literal, TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from kube.visible_text import printable, printable_json
from process.redaction import error_text, loggable_fields, redact_text

Level = Literal["debug", "info", "error"]
Format = Literal["json", "text"]

_LEVEL_NUMBERS: dict[Level, int] = {"debug": logging.DEBUG, "info": logging.INFO, "error": logging.ERROR}
_METHOD_LEVELS: dict[str, Level] = {
    "debug": "debug",
    "info": "info",
    "warning": "info",
    "warn": "info",
    "error": "error",
    "exception": "error",
    "critical": "error",
    "fatal": "error",
}
_RESERVED = ("level", "ts", "msg", "event")


def configure_logging(
    *,
    level: Level = "info",
    log_format: Format = "json",
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Set up logging of the whole process, structlog's and the standard library's, to standard error by default.

    The clock returns Unix time in seconds, for time stamps and sampling.
    """
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        Sampling(clock),
        Renderer(log_format, clock),
    ]
    target = stream or sys.stderr
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVEL_NUMBERS[level]),
        logger_factory=lambda *names: _LineWriter(target, *names),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_StandardHandler(target, processors)]
    root.setLevel(_LEVEL_NUMBERS[level])
    logging.captureWarnings(capture=True)


def get_logger(name: str = "", **fields: Any) -> FilteringBoundLogger:
    """Return a logger with a dotted name, such as `webhook.seccomp-profile`. The fields are part of each entry."""
    names = (name,) if name else ()
    return cast("FilteringBoundLogger", structlog.get_logger(*names, **fields))


class Sampling:
    """Passes the first 100 entries of a level and message in a second, then every 100th.

    Windows begin with the first entry after the end of the last one. The number of messages with separate counters in a
    window is limited; the rest share one counter, so that messages with variable text cannot fill memory.
    """

    FIRST = 100
    THEREAFTER = 100
    MAX_MESSAGES = 4096

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._window_end = float("-inf")
        self._counts: dict[tuple[str, str | None], int] = {}

    def __call__(self, _logger: Any, method: str, entry: EventDict) -> EventDict:
        now = self._clock()
        if not self._window_end - 1 <= now < self._window_end:  # also after the clock was set back
            self._counts.clear()
            self._window_end = now + 1
        level = _METHOD_LEVELS.get(method, "info")
        sample: tuple[str, str | None] = (level, str(entry.get("event")))
        if len(self._counts) >= self.MAX_MESSAGES and sample not in self._counts:
            sample = (level, None)
        count = self._counts[sample] = self._counts.get(sample, 0) + 1
        if count > self.FIRST and (count - self.FIRST) % self.THEREAFTER:
            raise structlog.DropEvent
        return entry


class Renderer:
    def __init__(self, log_format: Format, clock: Callable[[], float]) -> None:
        self._as_text = log_format == "text"
        self._clock = clock
        self._second = (-1, "")

    def __call__(self, logger: Any, method: str, entry: EventDict) -> bytes:
        level = _METHOD_LEVELS.get(method, "info")
        head: dict[str, Any] = {"level": level, "ts": self._timestamp()}
        name = entry.pop("logger", None) or getattr(logger, "name", "")
        if name:
            head["logger"] = str(name)
        head["msg"] = redact_text(str(entry.get("event", "")))
        errors = _error_fields(entry, with_stacktrace=level == "error")
        for reserved in _RESERVED:
            entry.pop(reserved, None)
        fields = {**loggable_fields(entry), **loggable_fields(errors)}
        return _text_line(head, fields) if self._as_text else _dump(head | fields)

    def _timestamp(self) -> str:
        second, milliseconds = divmod(round(self._clock() * 1000), 1000)
        if second != self._second[0]:
            self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        return f"{self._second[1]}.{milliseconds:03d}Z"


def _error_fields(entry: EventDict, *, with_stacktrace: bool) -> dict[str, Any]:
    """Move the exception out of the entry, in any of its forms, and return it as text and stack trace."""
    exception = entry.pop("exc_info", None)
    if exception is True:
        exception = sys.exc_info()[1]
    elif isinstance(exception, tuple):
        exception = exception[1]
    if not isinstance(exception, BaseException):
        exception = entry.get("error")
    if not isinstance(exception, BaseException):
        return {}
    entry.pop("error", None)
    fields = {"error": error_text(exception)}
    if with_stacktrace and exception.__traceback__ is not None:
        fields["stacktrace"] = "".join(traceback.format_exception(exception, limit=-30)).rstrip()
    return fields


def _text_line(head: dict[str, Any], fields: dict[str, Any]) -> bytes:
    stacktrace = fields.pop("stacktrace", None)
    columns = [head["ts"], head["level"].upper(), head.get("logger", ""), head["msg"]]
    line = "\t".join(printable(column) for column in columns if column).encode()
    if fields:
        line += b"\t" + _dump(fields)
    if stacktrace:
        line += b"".join(b"\n\t" + printable(each).encode() for each in stacktrace.split("\n"))
    return line


def _dump(value: dict[str, Any]) -> bytes:
    try:
        return printable_json(orjson.dumps(value))
    except TypeError:  # a lone surrogate or an integer beyond 64 bits
        import json

        return json.dumps(value).encode()


class _LineWriter:
    """End of structlog's chain. Its name is the name passed to `get_logger`."""

    __slots__ = ("_stream", "name")

    def __init__(self, stream: TextIO, name: str = "") -> None:
        self._stream = stream
        self.name = name

    def msg(self, line: bytes) -> None:
        try:
            self._stream.buffer.write(line + b"\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # the log has no reader any more; the work continues

    debug = info = warning = warn = error = exception = critical = fatal = log = msg


class _StandardHandler(logging.Handler):
    """Processes entries of the standard library's loggers in the same way."""

    def __init__(self, stream: TextIO, processors: Iterable[Processor]) -> None:
        super().__init__()
        self._stream = stream
        self._processors = tuple(processors)

    def emit(self, record: logging.LogRecord) -> None:
        method = record.levelname.lower()
        if record.levelno >= logging.ERROR:
            method = "error"
        writer = _LineWriter(self._stream, record.name)
        try:
            entry: Any = {"event": record.getMessage()}
            if record.exc_info:
                entry["exc_info"] = record.exc_info
            for processor in self._processors:
                entry = processor(writer, method, entry)
            writer.msg(entry)
        except structlog.DropEvent:
            pass
        except Exception:  # noqa: BLE001 - a log entry must never end what is being logged
            self.handleError(record)
