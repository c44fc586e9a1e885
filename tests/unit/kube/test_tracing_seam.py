"""Which spans are requested, what they are called, and what they report."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import INVALID_SPAN, SpanKind, get_current_span

from kube.objects import Key
from kube.runtime import tracing

HOST = "api.example:6443"
TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


class Begun(SpanProcessor):
    """Spans in the order in which they began."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)
        self.spans.sort(key=lambda each: each.start_time or 0)


@pytest.fixture
def spans() -> Iterator[list[ReadableSpan]]:
    begun, provider = Begun(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(begun)
    tracing.collect(provider.get_tracer("test"))
    yield begun.spans
    tracing.collect(None)


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_nothing_is_made_without_a_collector() -> None:
    headers = {"a": "b"}
    for work in (
        tracing.reconcile("c", Key("ns", "n"), pass_id="1"),
        tracing.api_call("GET", "/api/v1/pods", host=HOST),
        tracing.served("POST", "/x", headers),
    ):
        assert work is tracing.NOTHING
        with work as span:
            assert not span.is_recording()
            tracing.fail(span, "Conflict")
            assert tracing.outgoing(span, headers) is headers
            assert get_current_span() is INVALID_SPAN


def test_errors_pass_through_nothing() -> None:
    with pytest.raises(KeyError), tracing.NOTHING:
        raise KeyError


def test_a_pass_is_named_after_its_controller_and_object(spans: list[ReadableSpan]) -> None:
    with tracing.reconcile("health", Key("garden", "thing"), pass_id="42"):
        pass
    assert (spans[0].name, spans[0].kind) == ("reconcile health", SpanKind.INTERNAL)
    assert attributes_of(spans[0]) == {
        "controller": "health",
        "k8s.namespace.name": "garden",
        "k8s.object.name": "thing",
        "reconcile.id": "42",
    }


def test_requests_outside_of_a_span_have_none(spans: list[ReadableSpan]) -> None:
    assert tracing.api_call("GET", "/api/v1/pods", host=HOST) is tracing.NOTHING
    assert spans == []


def test_what_is_served_belongs_to_who_sent_it(spans: list[ReadableSpan]) -> None:
    headers = {"traceparent": f"00-{TRACE:032x}-{PARENT:016x}-01", "Authorization": "Bearer secret"}
    with tracing.served("POST", "/webhooks/a", headers):
        pass
    assert (spans[0].name, spans[0].kind) == ("POST /webhooks/a", SpanKind.SERVER)
    assert spans[0].parent is not None
    assert (spans[0].parent.trace_id, spans[0].parent.span_id) == (TRACE, PARENT)
    assert attributes_of(spans[0]) == {"http.request.method": "POST", "http.route": "/webhooks/a"}


def about(resource: str, **others: str) -> dict[str, str]:
    return {"resource": resource, **others}


API = "/api/v1/namespaces"
APPS = "/apis/apps/v1/namespaces/a/deployments"
ROLES = "rbac.authorization.k8s.io"
STATUS = about("things", group="x.example", namespace="a", name="t", subresource="status")
FINALIZE = about("namespaces", name="a", subresource="finalize")
ROLE = about("clusterroles", group=ROLES, name="system:node")
TOKEN = about("serviceaccounts", namespace="a", name="s", subresource="token")


@pytest.mark.parametrize(
    ("method", "path", "name", "attributes"),
    [
        ("GET", "/api/v1/pods", "list pods", about("pods")),
        ("GET", API, "list namespaces", about("namespaces")),
        ("GET", f"{API}/a", "get namespaces", about("namespaces", name="a")),
        ("PUT", f"{API}/a/finalize", "update namespaces/finalize", FINALIZE),
        ("POST", f"{API}/a/secrets", "create secrets", about("secrets", namespace="a")),
        ("DELETE", f"{APPS}/d", "delete deployments", about("deployments", group="apps", namespace="a", name="d")),
        ("DELETE", APPS, "deletecollection deployments", about("deployments", group="apps", namespace="a")),
        ("PATCH", "/apis/x.example/v1/namespaces/a/things/t/status", "patch things/status", STATUS),
        ("POST", f"{API}/a/serviceaccounts/s/token", "create serviceaccounts/token", TOKEN),
        ("GET", f"/apis/{ROLES}/v1/clusterroles/system%3Anode", "get clusterroles", ROLE),
        ("HEAD", "/api/v1/pods", "head pods", about("pods")),
    ],
)
def test_a_request_is_named_as_the_api_server_would(
    spans: list[ReadableSpan], method: str, path: str, name: str, attributes: dict[str, str]
) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"), tracing.api_call(method, path, host=HOST):
        pass
    assert (spans[1].name, spans[1].kind) == (name, SpanKind.CLIENT)
    found = attributes_of(spans[1])
    names = {
        "k8s.api_group": "group",
        "k8s.resource": "resource",
        "k8s.namespace.name": "namespace",
        "k8s.object.name": "name",
        "k8s.subresource": "subresource",
    }
    assert {short: found[long] for long, short in names.items() if found.get(long)} == attributes
    assert found["k8s.verb"] == name.partition(" ")[0]
    assert (found["http.request.method"], found["server.address"]) == (method, HOST)


@pytest.mark.parametrize("path", ["/healthz", "/apis", "/apis/apps/v1", "/api/v1", "/"])
def test_other_requests_are_named_by_their_path(spans: list[ReadableSpan], path: str) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"), tracing.api_call("GET", path, host=HOST):
        pass
    assert spans[1].name == f"GET {path}"
    assert attributes_of(spans[1])["url.path"] == path


def test_query_strings_are_left_out(spans: list[ReadableSpan]) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"):
        for path in ("/api/v1/pods?continue=secret", "/healthz?token=secret"):
            with tracing.api_call("GET", path, host=HOST):
                pass
    assert "secret" not in "".join(f"{span.name}{span.attributes}" for span in spans)
