"""Spans of passes and requests, for whoever collects them; nothing here knows how that is done.

    reconcile <controller>              one pass
    └── patch deployments               one request to an API server, and its answer

While nobody collects, which is the rule, `NOTHING` stands for every span, and costs a comparison. `process.tracing`
gives `collect` what makes real ones.

Attributes are names, counts and classes of errors. Messages of errors, bodies and query strings may hold secrets, and
are never among them.

Requests outside of a span have none of their own: watches, leases and Events would bury the rest.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import Enum
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import unquote

from kube.objects import Key

Value = str | bool | int
Attributes = Mapping[str, Value]
Headers = Mapping[str, str]


class Role(Enum):
    """Whether a span is about work of this process, or one side of a request."""

    INTERNAL = "internal"
    CLIENT = "client"
    SERVER = "server"


class Span(Protocol):
    """One piece of work, from entering it to leaving it; an error that leaves it makes it a failed one."""

    recording: bool
    """Whether it is worth finding out something for `describe`."""

    def describe(self, attributes: Attributes) -> None: ...

    def fail(self, error_type: str) -> None: ...

    def outgoing(self, headers: Headers) -> Headers:
        """The headers of a request, with those by which the one who answers joins this span."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Start(Protocol):
    """Makes a span: a part of the current one, or of that which the headers of a request name."""

    def __call__(self, name: str, role: Role, attributes: Attributes, *, incoming: Headers | None = None) -> Span: ...


class _Nothing:
    recording = False

    def describe(self, attributes: Attributes) -> None:
        pass

    def fail(self, error_type: str) -> None:
        pass

    def outgoing(self, headers: Headers) -> Headers:
        return headers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


NOTHING: Span = _Nothing()

current: ContextVar[Span] = ContextVar("span", default=NOTHING)
"""What is being done; the spans themselves keep it."""

_start: Start | None = None


def collect(start: Start | None) -> None:
    """From now on spans are made so, or not at all."""
    global _start  # noqa: PLW0603 - of the process, as the destination of the log is
    _start = start


def reconcile(controller: str, key: Key, *, pass_id: str) -> Span:
    """A pass of a controller; `pass_id` is what its log entries carry."""
    if _start is None:
        return NOTHING
    attributes = {
        "controller": controller,
        "k8s.namespace.name": key.namespace,
        "k8s.object.name": key.name,
        "reconcile.id": pass_id,
    }
    return _start(f"reconcile {controller}", Role.INTERNAL, attributes)


def api_call(method: str, path: str, *, host: str) -> Span:
    """A request to an API server, sent once."""
    if _start is None or current.get() is NOTHING:
        return NOTHING
    name, named = _call(method, path.partition("?")[0])
    return _start(name, Role.CLIENT, {**named, "http.request.method": method, "server.address": host})


def served(method: str, path: str, headers: Headers) -> Span:
    """A request that somebody sent to this process, at a path that is served."""
    if _start is None:
        return NOTHING
    attributes = {"http.request.method": method, "http.route": path}
    return _start(f"{method} {path}", Role.SERVER, attributes, incoming=headers)


# --- what a request is about

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_VERBS_OF_ONE = {**_VERBS, "GET": "get", "DELETE": "delete"}
_VERBS_OF_MANY = {**_VERBS, "GET": "list", "DELETE": "deletecollection"}
_OF_NAMESPACES = frozenset({"status", "finalize"})


def _call(method: str, path: str) -> tuple[str, dict[str, Value]]:
    """The name of the span, and what a path says, in the API server's own terms."""
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
