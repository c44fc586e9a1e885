"""Sessions of Gardener's clients with a garden of CustomResourceDefinitions, by the front proxy and by the path prefix.

The API server of the garden is that of the Shoot, too: it trusts the same authority.
"""

import base64
import contextlib
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.garden.box import front_proxy_kubeconfig
from gardener.api.garden import (
    CLOUD_PROFILES,
    CORE_GROUP,
    INTERNAL_SECRETS,
    PROJECTS,
    SHOOTS,
    WORKLOAD_IDENTITIES,
)
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_clients import CORE, Refused, dashboard, gardenlogin, go_client, kubeconfig_of
from kit.garden_shoots import ShootPlace
from kit.http2 import ConnectionEnded, frame
from kit.objects import account, encoded, role_binding
from kube.errors import AlreadyExists
from kube.objects import Object
from kube.resources import CLUSTER_ROLES, CONFIG_MAPS, ROLE_BINDINGS, SECRETS, Resource
from localprocesses.pki import Authority, client_certificate
from webhooks.tokens.paths import LOGIN

pytestmark = pytest.mark.timeout(600)

REVIEW: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
BINDING = Resource(CORE_GROUP, "v1beta1", "Shoot", "shoots/binding", namespaced=True)
AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
NAMED = {
    "x-remote-user": "devcluster-admin",
    "x-remote-group": "system:masters",
    "x-remote-uid": "1",
    "x-remote-extra-scopes": "all",
}
"""Headers by which a front proxy names a user."""


@pytest.fixture
def place(garden: Garden) -> Iterator[ShootPlace]:
    """With another Seed, and the Shoot `s`, of whose control plane the garden's own API server is all."""
    place = ShootPlace(garden)
    place.seed("b")
    place.shoot("s", seedName=place.seed())
    addresses = [
        {"name": "external", "url": garden.cluster.url},
        {"name": "service-account-issuer", "url": "https://x"},
    ]
    place.patch(SHOOTS, "s", {"status": {"advertisedAddresses": addresses}}, status=True)
    pair = garden.cluster.authority.key_pair()
    place.create(INTERNAL_SECRETS, "s.ca-client", data=encoded({"ca.crt": pair.certificate, "ca.key": pair.key}))
    place.create(CONFIG_MAPS, "s.ca-cluster", data={"ca.crt": garden.cluster.ca})
    yield place
    place.remove()


@pytest.fixture
def address(garden: Garden) -> Path:
    """The administrator's kubeconfig for the front proxy."""
    return front_proxy_kubeconfig(garden.cluster)


def member(place: ShootPlace, role: str) -> str:
    """The token of a new ServiceAccount of the Project with this role."""
    path = f"/api/v1/namespaces/{place.namespace}/serviceaccounts"
    api = place.garden.cluster.api
    with contextlib.suppress(AlreadyExists):
        api.create(path, {"metadata": {"name": role}})
    given = role_binding(
        role,
        account(role, place.namespace),
        of=CLUSTER_ROLES,
        to=f"gardener.cloud:system:project-{role}",
        namespace=place.namespace,
    )
    place.create(ROLE_BINDINGS, role, **{name: given[name] for name in ("roleRef", "subjects")})
    token: str = api.create(f"{path}/{role}/token", {"spec": {}})["status"]["token"]
    return token


def user_of(place: ShootPlace, role: str) -> str:
    return f"system:serviceaccount:{place.namespace}:{role}"


def exec_info(place: ShootPlace) -> Object:
    """KUBERNETES_EXEC_INFO, for a kubeconfig by gardenctl: from the Shoot's addresses, and its ConfigMap."""
    ca = place.get(CONFIG_MAPS, "s.ca-cluster")["data"]["ca.crt"].encode()
    cluster = {
        "server": place.get(SHOOTS, "s")["status"]["advertisedAddresses"][0]["url"],
        "certificate-authority-data": base64.b64encode(ca).decode(),
        "config": {"shootRef": {"namespace": place.namespace, "name": "s"}, "gardenClusterIdentity": "garden"},
    }
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": cluster},
    }


def whoami(place: ShootPlace, credential: Object) -> Object:
    """The user that the Shoot's API server knows by an ExecCredential."""
    status = credential["status"]
    data = {
        f"client-{name}-data": base64.b64encode(status[f"client{name.title()}Data"].encode()).decode()
        for name in ("certificate", "key")
    }
    config = kubeconfig_of(place.garden.cluster.kubeconfig)
    config["users"][0]["user"] = data
    with go_client(config, "kubectl/v1.36.0") as client:
        found: Object = client.request("POST", REVIEWS, REVIEW).json["status"]["userInfo"]
        return found


@pytest.mark.parametrize("way", ["front proxy", "path prefix"])
@pytest.mark.parametrize(
    ("role", "group"), [("member", "system:masters"), ("viewer", "gardener.cloud:system:viewers")], ids=str
)
def test_gardenlogin_gets_the_credentials_that_its_user_may_have(
    place: ShootPlace, address: Path, way: str, role: str, group: str
) -> None:
    """Access level `auto`: a viewer of the Project is denied administration by 403, and gets a viewer's certificate."""
    token = member(place, role)
    garden = (
        kubeconfig_of(address, token=token)
        if way == "front proxy"
        else kubeconfig_of(place.garden.cluster.kubeconfig, token=token, prefix=LOGIN)
    )
    credential = eventually(lambda: gardenlogin(garden, exec_info(place)), "the role", passing=(Refused,))
    assert credential["apiVersion"] == "client.authentication.k8s.io/v1"
    who = whoami(place, credential)
    assert who["username"].startswith(user_of(place, role)[:40])
    assert group in who["groups"]
    if role == "viewer":
        with pytest.raises(Refused, match="403"):
            gardenlogin(garden, exec_info(place), access_level="admin")
    exec_info_of_other = exec_info(place)
    exec_info_of_other["spec"]["cluster"]["config"]["shootRef"]["name"] = "other"
    with pytest.raises(Refused, match="404: .*shoots.core.gardener.cloud .*other.* not found"):
        gardenlogin(garden, exec_info_of_other, access_level=role.replace("member", "admin"))


def test_the_path_prefix_serves_credentials_only(place: ShootPlace) -> None:
    garden = kubeconfig_of(place.garden.cluster.kubeconfig, prefix=LOGIN)
    with go_client(garden) as client, pytest.raises(Refused, match="404: .*use the garden's own address") as refused:
        client.request("GET", f"{CORE}/namespaces/{place.namespace}/shoots/s")
    assert refused.value.status == 404


def test_a_session_of_the_dashboard(place: ShootPlace, address: Path) -> None:
    """One connection for everything: reviews, lists and watches, terminals, and moving a Shoot."""
    token, there, namespace = member(place, "member"), f"{place.name}b", place.namespace
    shoots = f"{CORE}/namespaces/{namespace}/shoots"
    with dashboard(kubeconfig_of(address), token) as client:
        eventually(lambda: client.may("create", "shoots", namespace=namespace, subresource="adminkubeconfig"), "role")
        assert not client.may("update", "shoots", namespace=namespace, subresource="binding")
        listed = client.request("GET", shoots)
        assert [each["metadata"]["name"] for each in listed["items"]] == ["s"]
        watch = client.watch(f"{shoots}?watch=true&resourceVersion={listed['metadata']['resourceVersion']}")
        assert client.request("GET", "/api/v1/namespaces/" + namespace + "/configmaps/s.ca-cluster")["data"]["ca.crt"]
        patch = {"metadata": {"annotations": {"dashboard": "seen"}}}
        client.request("PATCH", f"{shoots}/s", patch, content_type="application/merge-patch+json")
        assert b'"dashboard":"seen"' in client.connection.until(watch, b"\n").body

        kubeconfig = client.admin_kubeconfig(namespace, "s")
        assert kubeconfig["clusters"][0]["cluster"]["server"] == place.garden.cluster.url

        with pytest.raises(Refused, match="not allowed to set .spec.seedName") as refused:
            client.move(namespace, "s", there)
        assert refused.value.status == 403
        place.garden.allow(user_of(place, "member"), "update", BINDING)
        moved = eventually(lambda: client.move(namespace, "s", there), "the right", passing=(Refused,))
        assert moved["kind"] == "Shoot"
        assert moved["spec"]["seedName"] == there
        client.connection.until(watch, f'"seedName":"{there}"'.encode())

        with pytest.raises(Refused) as refused:
            client.request("GET", "/api/v1/namespaces/kube-system/secrets")
        assert refused.value.status == 403


def test_a_session_of_gardenctl_with_a_client_certificate(place: ShootPlace, address: Path) -> None:
    """Discovery, the objects that `target` reads, and a token of a WorkloadIdentity."""
    place.create(WORKLOAD_IDENTITIES, "wi", spec={"audiences": ["cloud"], "targetSystem": {"type": "local"}})
    config = kubeconfig_of(address)
    pair = place.garden.cluster.authority.issue_client("olga", ["system:masters", "operators"])
    config["users"][0]["user"] = client_certificate(pair)
    with go_client(config) as client:
        groups = client.request("GET", "/apis", accept=AGGREGATED).json["items"]
        assert CORE_GROUP in {each["metadata"]["name"] for each in groups}
        assert client.request("GET", "/api", accept=AGGREGATED).json["kind"] == "APIGroupDiscoveryList"
        assert "shoots" in {each["name"] for each in client.request("GET", CORE).json["resources"]}
        assert CORE.removeprefix("/") in client.request("GET", "/openapi/v3").json["paths"]
        who = client.request("POST", REVIEWS, REVIEW).json["status"]["userInfo"]
        assert (who["username"], set(who["groups"])) == (
            "olga",
            {"system:masters", "operators", "system:authenticated"},
        )
        selected = f"{PROJECTS.path()}?fieldSelector=spec.namespace%3D{place.namespace}"
        assert [each["metadata"]["name"] for each in client.request("GET", selected).json["items"]] == [place.name]
        accepted = "application/vnd.kubernetes.protobuf,application/json"
        assert client.request("GET", CLOUD_PROFILES.path(), accept=accepted).json["kind"] == "CloudProfileList"
        token = f"/apis/{WORKLOAD_IDENTITIES.api_version}/namespaces/{place.namespace}/workloadidentities/wi/token"
        body = {"kind": "TokenRequest", "apiVersion": WORKLOAD_IDENTITIES.api_version, "spec": {}}
        assert client.request("POST", token, body).json["status"]["token"]
        impersonated = {"impersonate-user": "alice"}
        with pytest.raises(Refused, match="alice"):
            client.request("GET", SHOOTS.path(namespace=place.namespace), headers=impersonated)
        with pytest.raises(Refused) as refused:
            client.request("POST", PROJECTS.path(), {}, headers={"content-type": "application/vnd.kubernetes.protobuf"})
        assert refused.value.status == 415


def test_large_bodies_pass_in_both_directions(place: ShootPlace, address: Path) -> None:
    """They are larger than all buffers and windows on the way."""
    content = {"data": "x" * 900_000}
    path = f"/api/v1/namespaces/{place.namespace}/configmaps"
    with go_client(kubeconfig_of(address)) as client:
        client.request("POST", path, {"metadata": {"name": "large"}, "data": content})
        assert client.request("GET", f"{path}/large").json["data"] == content
    head = b"GET %s/large HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    token = place.garden.cluster.token
    answer = over_http1(address, head % (path.encode(), token.encode()))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.count(b"x") >= 900_000
    assert answer.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("shown", ["certificate", "token", "nothing"])
def test_no_client_can_name_another_user(place: ShootPlace, address: Path, shown: str) -> None:
    config = kubeconfig_of(address, token=member(place, "viewer"))
    user = user_of(place, "viewer")
    if shown == "certificate":
        user = "alice"
        config["users"][0]["user"] = client_certificate(place.garden.cluster.authority.issue_client(user))
    if shown == "nothing":
        config["users"][0]["user"] = {}
    with go_client(config) as client:
        if shown == "nothing":
            with pytest.raises(Refused, match="system:anonymous"):
                client.request("GET", "/api/v1/namespaces", headers=NAMED)
            return
        who = client.request("POST", REVIEWS, REVIEW, headers=NAMED).json["status"]["userInfo"]
        assert who["username"] == user
        assert "system:masters" not in who["groups"]
        assert "scopes" not in who.get("extra", {})
        with pytest.raises(Refused) as refused:
            client.request("GET", "/api/v1/namespaces", headers=NAMED)
        assert refused.value.status == 403


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /version HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: h\r\nX-Remote-User : devcluster-admin\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: h\r\nA: b\r\n X-Remote-User: devcluster-admin\r\n\r\n",
        b"GET https://other/version HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
    ids=["two lengths", "space before the colon", "folded header", "absolute path"],
)
def test_ambiguous_requests_are_refused(place: ShootPlace, address: Path, begin: bytes) -> None:
    answer = over_http1(address, begin, place.garden.cluster.authority)
    assert answer == b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def test_no_request_hides_behind_a_refused_upgrade(place: ShootPlace, address: Path) -> None:
    named = b"".join(f"{name}: {value}\r\n".encode() for name, value in NAMED.items())
    upgrade = b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    hidden = b"GET /api/v1/namespaces HTTP/1.1\r\nHost: h\r\n" + named + b"\r\n"
    answer = over_http1(address, upgrade + hidden, place.garden.cluster.authority)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_upgraded_connection_streams(place: ShootPlace, address: Path) -> None:
    """A watch by WebSocket, which API servers offer like exec and attach."""
    head = (
        "GET /api/v1/namespaces?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: h\r\nOrigin: https://h\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Authorization: Bearer {place.garden.cluster.token}\r\n\r\n"
    )
    answer = over_http1(address, head.encode())
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert place.namespace.encode() in answer


@pytest.mark.parametrize(
    "content",
    [
        frame(9, 4, 1, b"\x82"),
        frame(1, 0, 1, b"\x82") + frame(0, 0, 1, b""),
        frame(1, 4, 1, b"\xff\xff\xff\xff\xff\x7f"),
        frame(1, 4 | 8, 1, b"\x05\x82"),
        frame(1, 0, 1, b"\x82") + 10_000 * frame(9, 0, 1, b""),
        frame(1, 4, 1, b"\x40\x01a\x7f\x81\x1e" + b"b" * 4_000 + b"\xbe" * 10_000),
    ],
    ids=["continuation first", "interrupted", "unknown entry", "padding", "endless block", "bomb"],
)
def test_invalid_frames_end_the_connection_alone(place: ShootPlace, address: Path, content: bytes) -> None:
    config = kubeconfig_of(address)
    with go_client(config) as other, go_client(config) as client:
        client.request("GET", "/version")
        client.connection.send(content.replace(b"\x00\x00\x00\x01", b"\x00\x00\x00\x03", 1))
        client.connection.until_closed()
        assert other.request("GET", "/version").json["major"]


def test_certificates_of_strangers_are_refused(address: Path) -> None:
    config = kubeconfig_of(address)
    config["users"][0]["user"] = client_certificate(Authority.create("stranger").issue_client("root"))
    with pytest.raises((ssl.SSLError, ConnectionEnded, ConnectionError)), go_client(config) as client:
        client.request("GET", "/version")


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kubectl_works_through_it(place: ShootPlace, address: Path, tmp_path: Path) -> None:
    def kubectl(*arguments: str, given: str = "") -> str:
        command = ["kubectl", "--kubeconfig", str(address), f"--cache-dir={tmp_path}", "-n", place.namespace]
        return subprocess.run(
            [*command, *arguments], input=given, capture_output=True, text=True, check=True, timeout=120
        ).stdout

    assert kubectl("get", "shoots", "-o", "name") == "shoot.core.gardener.cloud/s\n"
    secret = {**SECRETS.type_meta, "metadata": {"name": "applied"}, "stringData": {"key": "value"}}
    assert (
        kubectl("apply", "--server-side", "-f", "-", given=json.dumps(secret)) == "secret/applied serverside-applied\n"
    )
    assert "maintenance" in kubectl("explain", "shoot.spec")
    assert kubectl("delete", "secret", "applied", "--wait").startswith('secret "applied" deleted')
    request = {"spec": {"expirationSeconds": 600}}
    path = f"{CORE}/namespaces/{place.namespace}/shoots/s/viewerkubeconfig"
    assert "expirationTimestamp" in kubectl("create", "--raw", path, "-f", "-", given=json.dumps(request))


def over_http1(address: Path, sent: bytes, authority: Authority | None = None) -> bytes:
    """All that is answered until the connection ends; with a certificate of the user `alice`, if there is an authority."""
    cluster = kubeconfig_of(address)["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if authority is not None:
        files = authority.issue_client("alice").write(address.parent, "alice")
        context.load_cert_chain(files.certificate, files.key)
    host, port = cluster["server"].removeprefix("https://").split(":")
    with context.wrap_socket(
        socket.create_connection((host, int(port)), timeout=60), server_hostname=host
    ) as connection:
        connection.sendall(sent)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return b"".join(parts)
