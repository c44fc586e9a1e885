"""Spans of passes and requests, by the API of OpenTelemetry; `process.tracing` sets up the collector.

    reconcile <controller>              one pass
    └── patch deployments               one request to an API server, and its answer

While no collector is set up, which is the rule, OpenTelemetry is not imported, which would take a megabyte, and the
same no-op span is entered each time. That costs 0.2 us; starting one of OpenTelemetry's own no-op spans takes 5 us, and
an admission 60. Getting the current span from OpenTelemetry takes 1 us, so that is avoided, too.

Attributes are names, counts and classes of errors. Messages of errors, bodies and query strings may hold secrets, and
are never among them.

Requests outside of a span have none of their own: watches, leases and Events would bury the rest.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import unquote

from multidict import CIMultiDict

from kube.objects import Key

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

Value = str | bool | int
Attributes = Mapping[str, Value]
Headers = Mapping[str, str]

Work: TypeAlias = "AbstractContextManager[Span]"
"""A piece of work, from entering it to leaving it; an error that leaves it marks it as failed."""


class _NoSpan:
    """No-op replacement for a span that is not collected."""

    def is_recording(self) -> bool:
        return False

    def set_attribute(self, _key: str, _value: Value) -> None:
        pass


_NO_SPAN = cast("Span", _NoSpan())
NOTHING: Work = nullcontext(_NO_SPAN)

_tracer: "Tracer | None" = None


def collect(tracer: "Tracer | None") -> None:
    """Set the tracer for all further spans; None: there are none."""
    global _tracer  # noqa: PLW0603 - of the process, as the destination of the log is
    _tracer = tracer


def reconcile(controller: str, key: Key, *, pass_id: str) -> Work:
    """A pass of a controller; `pass_id` is also in its log entries."""
    if _tracer is None:
        return NOTHING
    attributes = {
        "controller": controller,
        "k8s.namespace.name": key.namespace,
        "k8s.object.name": key.name,
        "reconcile.id": pass_id,
    }
    return _Work(_tracer.start_span(f"reconcile {controller}", attributes=attributes))


def api_call(method: str, path: str, *, host: str) -> Work:
    """A request to an API server, sent once."""
    if _tracer is None:
        return NOTHING
    from opentelemetry.trace import SpanKind, get_current_span

    if not get_current_span().get_span_context().is_valid:
        return NOTHING
    name, named = _call(method, path.partition("?")[0])
    attributes = {**named, "http.request.method": method, "server.address": host}
    return _Work(_tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes))


def served(method: str, path: str, headers: Headers) -> Work:
    """A request to this process, at a path that is served."""
    if _tracer is None:
        return NOTHING
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    caller = TraceContextTextMapPropagator().extract(headers, context=Context())
    attributes = {"http.request.method": method, "http.route": path}
    return _Work(_tracer.start_span(f"{method} {path}", context=caller, kind=SpanKind.SERVER, attributes=attributes))


def recording() -> "Span | None":
    """Current span, if it is collected."""
    if _tracer is None:
        return None
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    return span if span.is_recording() else None


def fail(span: "Span", error_type: str) -> None:
    if span is _NO_SPAN:
        return
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", error_type)
    span.set_status(StatusCode.ERROR)


def outgoing(span: "Span", headers: Headers) -> Headers:
    """Headers of a request, with those by which the server joins this span."""
    if span is _NO_SPAN:
        return headers
    context = span.get_span_context()
    if not context.is_valid:
        return headers
    # Only the flag of sampling: servers that do not know a later one reject the whole header.
    flags = int(context.trace_flags.sampled)
    added = CIMultiDict(headers, traceparent=f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}")
    if context.trace_state:
        added["tracestate"] = context.trace_state.to_header()
    return added


class _Work:
    """Makes a span the current one inside its block. OpenTelemetry's own way would record the messages of errors."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: "Span") -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> "Span":
        from opentelemetry.context import attach
        from opentelemetry.trace import set_span_in_context

        self._token = attach(set_span_in_context(self._span))
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry.context import detach

        if self._token is not None:
            detach(self._token)
        if kind is not None:
            fail(self._span, kind.__name__)
        self._span.end()


# --- attributes of a request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_VERBS_OF_ONE = {**_VERBS, "GET": "get", "DELETE": "delete"}
_VERBS_OF_MANY = {**_VERBS, "GET": "list", "DELETE": "deletecollection"}
_OF_NAMESPACES = frozenset({"status", "finalize"})


def _call(method: str, path: str) -> tuple[str, dict[str, Value]]:
    """Name of the span, and attributes from the path, in the API server's own terms."""
    match path.split("/"):
        case ["", "api", _, first, *rest]:
            group, steps = "", [first, *rest]
        case ["", "apis", group, _, first, *rest]:
            steps = [first, *rest]
        case _:
            return f"{method} {path}", {"url.path": path}
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in _OF_NAMESPACES:
        namespace, steps = steps[1], steps[2:]
    resource, name, subresource = (*steps, "", "")[:3]
    verb = (_VERBS_OF_ONE if name else _VERBS_OF_MANY).get(method, method.lower())
    found: dict[str, Value] = {"k8s.verb": verb, "k8s.api_group": group, "k8s.resource": resource}
    if namespace:
        found["k8s.namespace.name"] = unquote(namespace)
    if name:
        found["k8s.object.name"] = unquote(name)
    if subresource:
        found["k8s.subresource"] = subresource
    return f"{verb} {resource}/{subresource}" if subresource else f"{verb} {resource}", found
