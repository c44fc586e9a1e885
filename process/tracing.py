"""Spans, created and sent by OpenTelemetry; see `kube.runtime.tracing` for their origin.

The SDK takes megabytes and a part of a second, so it is imported when tracing starts, and never if it is off. Nothing
waits for the collector. A thread sends ended spans in batches from a bounded queue: if no collector receives them, the
oldest are lost. Problems are logged once a minute for each kind.

A caller decides whether a trace is recorded, and passes that on; without a caller, chance decides.
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

from kube.runtime import tracing
from kube.validation import forbidden
from process.configuration.blocks import Tracing
from process.configuration.errors import ConfigError
from process.logging import get_logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_QUEUE = 2048
_BATCH = 512
_SEND_EVERY_SECONDS = 2.0
_REQUEST_SECONDS = 10.0
_LONGEST_VALUE = 256
"""Characters of an attribute. A name in a request can be as long as the request."""
_FLUSH_SHARE = 0.2
"""Share of the grace period in which the last spans are sent."""
_LOG_EVERY_SECONDS = 60.0

_MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def check_installed(settings: Tracing) -> None:
    """Check that the libraries are installed if tracing is on.

    Raises:
        ConfigError: they are missing.
    """
    if settings.enabled and not all(map(_is_there, _MODULES)):
        detail = (
            "the SDK of OpenTelemetry is not installed: install the package with the extra `tracing`, use an image "
            "that has it, or switch tracing off"
        )
        raise ConfigError([forbidden("tracing.enabled", detail)])


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def parts(settings: Tracing, *, service: str, version: str, grace_period: float) -> list["SpanExport"]:
    """Return the components for tracing, to be started first and stopped last; empty if it is off."""
    if not settings.enabled:
        return []
    return [SpanExport(settings, service=service, version=version, flush_within=_FLUSH_SHARE * grace_period)]


class SpanExport:
    """Collects spans and sends them while it runs; a component in the sense of `process.runner`.

    Args:
        service, version: of this program, in traces.
        flush_within: seconds that `stop` waits for the last spans to be sent.
    """

    name = "tracing"

    def __init__(self, settings: Tracing, *, service: str, version: str, flush_within: float) -> None:
        self._settings = settings
        self._service, self._version = service, version
        self._flush_within = flush_within
        self._exporter: SpanExporter | None = None
        self._provider: TracerProvider | None = None

    async def start(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        log_seldom(logging.getLogger("opentelemetry"))
        endpoint = traces_url(self._settings.endpoint)
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_REQUEST_SECONDS)
        processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=_QUEUE,
            max_export_batch_size=_BATCH,
            schedule_delay_millis=_SEND_EVERY_SECONDS * 1000,
        )
        self._provider = provider(self._settings, processor, service=self._service, version=self._version)
        tracing.collect(self._provider.get_tracer(self._service))

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        tracing.collect(None)
        if self._provider is None or self._exporter is None:
            return
        loop, sent = asyncio.get_running_loop(), asyncio.Event()
        shut_down = self._provider.shutdown

        def flush() -> None:
            shut_down()
            with contextlib.suppress(RuntimeError):  # the waiter is gone
                loop.call_soon_threadsafe(sent.set)

        # It may take half a minute, and nothing has to wait for such a thread, not even the end of the process.
        threading.Thread(target=flush, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(self._flush_within):
                await sent.wait()
        except TimeoutError:
            get_logger("tracing").warning("The last spans could not be sent in time")
            self._exporter.shutdown()


def traces_url(endpoint: str) -> str:
    """Return the URL for spans: with the usual path, if the endpoint has none."""
    scheme, _, rest = endpoint.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path or 'v1/traces'}"


def provider(settings: Tracing, processor: "SpanProcessor", *, service: str, version: str) -> "TracerProvider":
    """Return the provider that creates spans and passes recorded ones to the processor."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    made = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.sampling_rate_per_million / 1_000_000)),
        resource=Resource.create(
            {
                "service.name": service,
                "service.version": version,
                "service.instance.id": f"{socket.gethostname()}/{os.getpid()}",
            }
        ),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_span_attribute_length=_LONGEST_VALUE),
    )
    made.add_span_processor(processor)
    return made


# --- problems


def log_seldom(logger: logging.Logger) -> None:
    """Pass messages of a library and its parts to our log, but not each time."""
    logger.handlers[:] = [_Seldom()]
    logger.propagate = False


class _Seldom(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logged_at: dict[tuple[str, int], float] = {}
        """Monotonic time of the last message, by line of the library's code."""
        self._log = get_logger("tracing")

    def emit(self, record: logging.LogRecord) -> None:
        sort, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._logged_at.get(sort, float("-inf")) >= _LOG_EVERY_SECONDS:
            self._logged_at[sort] = now
            self._log.warning("Cannot deliver all spans", reason=record.getMessage())
