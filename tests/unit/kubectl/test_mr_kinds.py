"""What kinds are called, and what is known of them without a cluster."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from devcluster.testing.faults import status
from kit.objects import config_map, obj
from kube.errors import NotFound
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, NAMESPACES
from kube.runtime.client import Client, Selection
from kube.runtime.connection import Connection, Fixed
from kube.runtime.transport import Transport
from kubectl.errors import UserError
from kubectl.mr.commands.trace import find_kind, matching_kind
from kubectl.mr.offline import Kinds, OfflineClient, plural_of


def entry(kind: str, plural: str, *short: str) -> dict[str, Any]:
    names = {"resource": plural, "singularResource": kind.lower(), "shortNames": list(short)}
    return {**names, "responseKind": {"kind": kind}, "scope": "Namespaced"}


def group(name: str = "", **versions: Object) -> Object:
    served = [{"version": version, "resources": [resource]} for version, resource in versions.items()]
    return {"metadata": {"name": name} if name else {}, "versions": served}


GROUPS = [
    group(v1=entry("Pod", "pods", "po")),
    group("apps", v1=entry("Deployment", "deployments", "deploy"), v1beta1=entry("Old", "olds")),
    group("metrics.k8s.io", v1beta1=entry("PodMetrics", "pods")),
]


@pytest.mark.parametrize(
    ("name", "api_version", "kind"),
    [
        ("po", "v1", "Pod"),
        ("Pod", "v1", "Pod"),
        ("pods", "v1", "Pod"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1", "PodMetrics"),
        ("deploy", "apps/v1", "Deployment"),
        ("deployments.apps", "apps/v1", "Deployment"),
        ("DEPLOYMENT", "apps/v1", "Deployment"),
    ],
)
def test_a_kind_is_found_by_all_of_its_names(name: str, api_version: str, kind: str) -> None:
    found = matching_kind(name, GROUPS)
    assert found is not None
    assert (found.api_version, found.kind) == (api_version, kind)


@pytest.mark.parametrize("name", ["", "nothing", "pods.apps", "olds"])
def test_other_names_find_nothing(name: str) -> None:
    assert matching_kind(name, GROUPS) is None


OLD = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2beta1", "metadata": {}}
"""As Kubernetes 1.28 answers, down to one kind."""
PODS = {
    "metadata": {"creationTimestamp": None},
    "versions": [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [
                {
                    "resource": "pods",
                    "responseKind": {"group": "", "version": "", "kind": "Pod"},
                    "scope": "Namespaced",
                    "singularResource": "pod",
                    "verbs": ["get", "list"],
                    "shortNames": ["po"],
                    "categories": ["all"],
                    "subresources": [{"subresource": "log", "verbs": ["get"]}],
                }
            ],
        }
    ],
}
OLD_ANSWERS: dict[str, Object] = {"/api": {**OLD, "items": [PODS]}, "/apis": {**OLD, "items": []}}
OLDEST_ANSWERS: dict[str, Object] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
}


@contextlib.asynccontextmanager
async def old_server(accepted: str, answers: Mapping[str, Object]) -> AsyncIterator[Client]:
    """Answers one media type, and any other by what an API server answers then."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        requested = request.headers["Accept"].replace(" ", "").split(",")
        if accepted not in requested:
            refusal = status(code=406, reason="NotAcceptable", message="only the following media types are accepted: …")
            return web.json_response(refusal, status=406)
        return web.json_response(answers[request.path])

    server = RawTestServer(answer)
    await server.start_server()
    try:
        connection = Connection(server=str(server.make_url("")).rstrip("/"), tls=None, credentials=Fixed(), identity=())
        async with Transport(connection) as transport:
            yield Client(transport, user_agent="test")
    finally:
        await server.close()


async def test_kinds_of_an_api_server_that_has_only_the_beta_of_discovery_are_found() -> None:
    async with old_server(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", OLD_ANSWERS
    ) as c:
        assert (await find_kind(c, "po")).kind == "Pod"


async def test_an_api_server_that_has_neither_is_called_too_old() -> None:
    async with old_server("application/json", OLDEST_ANSWERS) as client:
        with pytest.raises(UserError, match="too old.*1\\.27"):
            await find_kind(client, "po")


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        *(("Pod", "pods"), ("NetworkPolicy", "networkpolicies"), ("Ingress", "ingresses")),
        *(("EndpointSlice", "endpointslices"), ("Hvpa", "hvpas")),
    ],
)
def test_plurals_are_those_of_api_servers(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_custom_kinds_are_as_their_definitions_state() -> None:
    spec = {"group": "example.com", "scope": "Cluster", "names": {"kind": "Mouse", "plural": "mice"}}
    kinds = Kinds([{"kind": "CustomResourceDefinition", "spec": spec}])
    assert kinds.resource("example.com/v1", "Mouse").plural == "mice"
    assert not kinds.resource("example.com/v1", "Mouse").namespaced
    assert not kinds.resource("rbac.authorization.k8s.io/v1", "ClusterRole").namespaced
    assert kinds.resource("example.com/v1", "Other").namespaced


async def test_a_cluster_of_files_answers_like_one() -> None:
    namespace = obj("v1 Namespace", "shop")
    one, two = (config_map(f"shop/{name}", labels={"n": name}) for name in ("one", "two"))
    client = OfflineClient([namespace, one, two])
    assert await client.get(NAMESPACES, "shop") == namespace
    assert await client.get(CONFIG_MAPS, Key("shop", "one")) == one
    with pytest.raises(NotFound, match='configmaps "one" not found'):
        await client.get(CONFIG_MAPS, Key("other", "one"))
    assert (await client.list_page(CONFIG_MAPS, Selection(label_selector="n=two")))["items"] == [two]
    assert (await client.list_page(CONFIG_MAPS, Selection(field_selector="metadata.name=one")))["items"] == [one]
    assert (await client.list_page(CONFIG_MAPS, Selection(namespace="other")))["items"] == []
