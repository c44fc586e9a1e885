"""What spans are asked for, without anybody who makes real ones."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pytest

from kube import tracing
from kube.objects import Key
from kube.tracing import Attributes, Headers, Role

HOST = "api.example:6443"


class Noted:
    """A span that remembers what it was told."""

    recording = True

    def __init__(self, name: str, role: Role, attributes: Attributes, incoming: Headers | None) -> None:
        self.name, self.role, self.incoming = name, role, incoming
        self.attributes = dict(attributes)

    def describe(self, attributes: Attributes) -> None:
        self.attributes |= attributes

    def fail(self, error_type: str) -> None:
        self.attributes["error.type"] = error_type

    def outgoing(self, headers: Headers) -> Headers:
        return {**headers, "traceparent": "t"}

    def __enter__(self) -> Self:
        self._token = tracing.current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tracing.current.reset(self._token)


@pytest.fixture
def spans() -> Iterator[list[Noted]]:
    made: list[Noted] = []

    def start(name: str, role: Role, attributes: Attributes, *, incoming: Headers | None = None) -> Noted:
        made.append(Noted(name, role, attributes, incoming))
        return made[-1]

    tracing.collect(start)
    yield made
    tracing.collect(None)


def test_nothing_is_made_while_nobody_collects() -> None:
    headers = {"a": "b"}
    for span in (
        tracing.reconcile("c", Key("ns", "n"), pass_id="1"),
        tracing.api_call("GET", "/api/v1/pods", host=HOST),
        tracing.served("POST", "/x", headers),
    ):
        assert span is tracing.NOTHING
        with span as entered:
            entered.describe({"a": 1})
            entered.fail("Conflict")
            assert entered.outgoing(headers) is headers
            assert tracing.current.get() is tracing.NOTHING


def test_errors_pass_through_nothing() -> None:
    with pytest.raises(KeyError), tracing.NOTHING:
        raise KeyError


def test_a_pass_is_named_after_its_controller_and_object(spans: list[Noted]) -> None:
    with tracing.reconcile("health", Key("garden", "thing"), pass_id="42"):
        pass
    assert (spans[0].name, spans[0].role) == ("reconcile health", Role.INTERNAL)
    assert spans[0].attributes == {
        "controller": "health",
        "k8s.namespace.name": "garden",
        "k8s.object.name": "thing",
        "reconcile.id": "42",
    }


def test_requests_outside_of_a_span_have_none(spans: list[Noted]) -> None:
    assert tracing.api_call("GET", "/api/v1/pods", host=HOST) is tracing.NOTHING
    assert spans == []


def test_what_is_served_belongs_to_who_sent_it(spans: list[Noted]) -> None:
    headers = {"traceparent": "x", "Authorization": "Bearer secret"}
    with tracing.served("POST", "/webhooks/a", headers):
        pass
    assert (spans[0].name, spans[0].role, spans[0].incoming) == ("POST /webhooks/a", Role.SERVER, headers)
    assert spans[0].attributes == {"http.request.method": "POST", "http.route": "/webhooks/a"}


@pytest.mark.parametrize(
    ("method", "path", "name", "attributes"),
    [
        ("GET", "/api/v1/pods", "list pods", {"resource": "pods"}),
        ("GET", "/api/v1/namespaces", "list namespaces", {"resource": "namespaces"}),
        ("GET", "/api/v1/namespaces/a", "get namespaces", {"resource": "namespaces", "name": "a"}),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update namespaces/finalize",
            {"resource": "namespaces", "name": "a", "subresource": "finalize"},
        ),
        ("POST", "/api/v1/namespaces/a/secrets", "create secrets", {"resource": "secrets", "namespace": "a"}),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments/d",
            "delete deployments",
            {"group": "apps", "resource": "deployments", "namespace": "a", "name": "d"},
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection deployments",
            {"group": "apps", "resource": "deployments", "namespace": "a"},
        ),
        (
            "PATCH",
            "/apis/x.example/v1/namespaces/a/things/t/status",
            "patch things/status",
            {"group": "x.example", "resource": "things", "namespace": "a", "name": "t", "subresource": "status"},
        ),
        (
            "POST",
            "/api/v1/namespaces/a/serviceaccounts/s/token",
            "create serviceaccounts/token",
            {"resource": "serviceaccounts", "namespace": "a", "name": "s", "subresource": "token"},
        ),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "get clusterroles",
            {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "name": "system:node"},
        ),
        ("HEAD", "/api/v1/pods", "head pods", {"resource": "pods"}),
    ],
)
def test_a_request_is_named_as_the_api_server_would(
    spans: list[Noted], method: str, path: str, name: str, attributes: dict[str, str]
) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"), tracing.api_call(method, path, host=HOST):
        pass
    assert (spans[1].name, spans[1].role) == (name, Role.CLIENT)
    found = spans[1].attributes
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
def test_other_requests_are_named_by_their_path(spans: list[Noted], path: str) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"), tracing.api_call("GET", path, host=HOST):
        pass
    assert spans[1].name == f"GET {path}"
    assert spans[1].attributes["url.path"] == path


def test_query_strings_are_left_out(spans: list[Noted]) -> None:
    with tracing.reconcile("c", Key("n", "n"), pass_id="1"):
        for path in ("/api/v1/pods?continue=secret", "/healthz?token=secret"):
            with tracing.api_call("GET", path, host=HOST):
                pass
    assert "secret" not in "".join(f"{span.name}{span.attributes}" for span in spans)
