"""Programs of Gardener's ecosystem as clients of a garden, by their requests alone.

GoClient     a connection as those of client-go: HTTP/2, a kubeconfig with a token or a certificate
gardenlogin  credentials for a Shoot, in the protocol of kubectl's credential plugins
Dashboard    the dashboard's backend: one connection of HTTP/2 for all requests of a user, watches included
"""

import base64
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kit.http2 import Answer, Http2
from kube.objects import Object

CORE = "/apis/core.gardener.cloud/v1beta1"
_AUTHENTICATION = "authentication.gardener.cloud/v1alpha1"
_JSON = "application/json"


class Refused(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status}: {answer.body.decode(errors='replace')}")
        self.status = answer.status


def kubeconfig_of(path: Path, *, token: str = "", prefix: str = "") -> Object:
    """The content of a kubeconfig, with another token, and a prefix to the path of its server."""
    config: Object = yaml.safe_load(path.read_text())
    if token:
        config["users"][0]["user"] = {"token": token}
    config["clusters"][0]["cluster"]["server"] += prefix
    return config


@dataclass
class GoClient:
    """The path of `server` is kept before that of each request."""

    connection: Http2
    base: str
    token: str
    agent: str

    def request(
        self, method: str, path: str, body: Any = None, *, accept: str = f"{_JSON}, */*", headers: Object | None = None
    ) -> Answer:
        """The answer. Raises Refused."""
        sent = {"accept": accept, "accept-encoding": "gzip", "user-agent": self.agent, **(headers or {})}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            sent = {"content-type": _JSON, "content-length": str(len(content)), **sent}
        answer = self.connection.request(method, self.base + path, headers=sent, body=content)
        if answer.status >= 400:
            raise Refused(answer)
        return answer


@contextmanager
def go_client(kubeconfig: Object, agent: str = "gardenctl-v2/v2.16.0 (linux/amd64)") -> Iterator[GoClient]:
    """With the first cluster and user of a kubeconfig."""
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    ca = _decoded(cluster, "certificate-authority-data")
    host, _, path = cluster["server"].removeprefix("https://").partition("/")
    with tempfile.TemporaryDirectory() as directory:
        pair = None
        if "client-certificate-data" in user:
            files = [Path(directory, name) for name in ("client-certificate-data", "client-key-data")]
            for file in files:
                file.write_text(_decoded(user, file.name))
            pair = str(files[0]), str(files[1])
        with Http2(f"https://{host}", ca, pair=pair) as connection:
            yield GoClient(connection, f"/{path}" if path else "", user.get("token", ""), agent)


def gardenlogin(garden: Object, exec_info: Object, *, access_level: str = "auto") -> Object:
    """`kubectl gardenlogin get-client-certificate`: the ExecCredential.

    Args:
        garden: kubeconfig of the garden, from gardenlogin's own configuration.
        exec_info: ExecCredential that kubectl passes on, with the cluster of the Shoot's kubeconfig.
        access_level: `auto`, `admin` or `viewer`.

    Raises:
        Refused: the garden refuses both kinds of access.
        LookupError: the answer is not one that gardenlogin can use.
    """
    cluster = exec_info["spec"]["cluster"]
    shoot = cluster["config"]["shootRef"]
    with go_client(garden, "gardenlogin/v0.10.0 (linux/amd64)") as client:
        try:
            answer = _kubeconfig_request(client, shoot, "viewer" if access_level == "viewer" else "admin")
        except Refused as error:
            if error.status != 403 or access_level != "auto":
                raise
            answer = _kubeconfig_request(client, shoot, "viewer")
    config = yaml.safe_load(base64.b64decode(answer["status"]["kubeconfig"]))
    named = [
        each["name"]
        for each in config["clusters"]
        if each["cluster"]["server"] == cluster["server"]
        and each["cluster"].get("certificate-authority-data") == cluster.get("certificate-authority-data")
    ]
    contexts = [each["context"] for each in config["contexts"] if each["context"]["cluster"] in named]
    users = [each["user"] for each in config["users"] if contexts and each["name"] == contexts[0]["user"]]
    if not users:
        raise LookupError(f"no user for {cluster['server']}")
    pair = {
        "clientCertificateData": _decoded(users[0], "client-certificate-data"),
        "clientKeyData": _decoded(users[0], "client-key-data"),
    }
    if any(text.count("-----BEGIN ") != 1 for text in pair.values()):
        raise LookupError("gardenlogin demands one PEM block each")
    head = {name: exec_info[name] for name in ("apiVersion", "kind")}
    return {**head, "status": {"expirationTimestamp": answer["status"]["expirationTimestamp"], **pair}}


def _kubeconfig_request(client: GoClient, shoot: Mapping[str, str], role: str) -> Object:
    """As client-go encodes it: fields without a value are written, too."""
    body = {
        "kind": f"{role.title()}KubeconfigRequest",
        "apiVersion": _AUTHENTICATION,
        "metadata": {"creationTimestamp": None},
        "spec": {"expirationSeconds": 900},
        "status": {"kubeconfig": None, "expirationTimestamp": None},
    }
    path = f"{CORE}/namespaces/{shoot['namespace']}/shoots/{shoot['name']}/{role}kubeconfig"
    answer: Object = client.request("POST", path, body).json
    return answer


@dataclass
class Dashboard:
    connection: Http2
    token: str

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = _JSON) -> Any:
        """The answer's object. Raises Refused."""
        headers = {"accept-encoding": "gzip, deflate, br", "authorization": f"Bearer {self.token}"}
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            headers["content-type"] = content_type
        answer = self.connection.request(method, path, headers=headers, body=content)
        if answer.status >= 400:
            raise Refused(answer)
        return answer.json

    def watch(self, path: str) -> int:
        return self.connection.open("GET", path, headers={"authorization": f"Bearer {self.token}"})

    def may(self, verb: str, resource: str, *, namespace: str, subresource: str = "") -> bool:
        requested = {"group": "core.gardener.cloud", "resource": resource, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, **requested}},
        }
        return bool(
            self.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)["status"]["allowed"]
        )

    def admin_kubeconfig(self, namespace: str, name: str) -> Object:
        body = {"kind": "AdminKubeconfigRequest", "apiVersion": _AUTHENTICATION, "spec": {"expirationSeconds": 600}}
        path = f"{CORE}/namespaces/{namespace}/shoots/{name}/adminkubeconfig"
        kubeconfig: Object = yaml.safe_load(base64.b64decode(self.request("POST", path, body)["status"]["kubeconfig"]))
        return kubeconfig

    def move(self, namespace: str, name: str, seed: str) -> Object:
        path = f"{CORE}/namespaces/{namespace}/shoots/{name}/binding"
        patch = [{"op": "replace", "path": "/spec/seedName", "value": seed}]
        moved: Object = self.request("PATCH", path, patch, content_type="application/json-patch+json")
        return moved


@contextmanager
def dashboard(kubeconfig: Object, token: str) -> Iterator[Dashboard]:
    cluster = kubeconfig["clusters"][0]["cluster"]
    with Http2(cluster["server"], _decoded(cluster, "certificate-authority-data")) as connection:
        yield Dashboard(connection, token)


def _decoded(fields: Mapping[str, str], name: str) -> str:
    return base64.b64decode(fields[name]).decode()
