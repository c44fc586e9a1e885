"""A collector of spans for tests: takes OTLP by HTTP, as an OpenTelemetry collector does, and keeps what it gets.

A test sends to its `endpoint`, waits for a span, and looks for the one whose `span_id` is the `parent_id` of that.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class Collected:
    """One span; ids in hexadecimal digits, as in `traceparent`."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]


Condition = Callable[[Collected], bool]


class SpanCollector:
    """Serves at `endpoint` inside its block."""

    def __init__(self) -> None:
        self.spans: list[Collected] = []
        self.raw = b""
        """All that was sent, as it came."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                found = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                if found:
                    collector._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def _take(self, body: bytes) -> None:
        self.raw += body
        for of_service in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _values(of_service.resource.attributes)["service.name"]
            for scope in of_service.scope_spans:
                self.spans += [
                    Collected(
                        service,
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _values(span.attributes),
                    )
                    for span in scope.spans
                ]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def find(self, wanted: Condition) -> Collected | None:
        return next(filter(wanted, list(self.spans)), None)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
