"""An API server that a tenant of the target runs, and that its own API server passes requests on to."""

import contextlib
import email.utils
import http.server
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.world import Place, find_at
from kube.errors import KubeError
from kube.objects import Object
from localprocesses.pki import serving_pair

_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_VERBS = ["get", "list", "create", "watch", "delete", "update", "patch"]

Answer = tuple[bytes, dict[str, str]]
"""A body, and headers beside its length."""
List = Callable[[str], Answer]
"""The answer to a list or a watch, from the query of the request."""


def as_answer(body: Object) -> Answer:
    return json.dumps(body).encode(), {}


def empty_list(group: str) -> Answer:
    return as_answer(
        {"kind": "ThingList", "apiVersion": f"{group}/v1", "metadata": {"resourceVersion": "1"}, "items": []}
    )


@contextmanager
def things(cluster: Cluster, place: Place, group: str, answer: List, *, ahead: float = 0.0) -> Iterator[None]:
    """The kind Thing of a group, in version v1.

    Args: place: of the Service, by which the API server finds it. ahead: seconds by which `Date` is.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def date_time_string(self, timestamp: float | None = None) -> str:
            return email.utils.formatdate((timestamp or time.time()) + ahead, usegmt=True)

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            found = _documents(group).get(path)
            code = 200
            if found is not None:
                body, headers = as_answer(found)
            elif path.endswith("/things") and self.command == "GET":
                body, headers = answer(query)
            else:
                code = 404
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
                body, headers = as_answer(status)
            self.send_response(code)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has read enough
                self.wfile.write(body)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as it calls them

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        files = serving_pair(["127.0.0.1"]).write(Path(directory), "things")
        tls.load_cert_chain(files.certificate, files.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    name = f"v1.{group}"
    _register(cluster, place, group, server.server_address[1])
    try:
        eventually(
            lambda: find_at(cluster, f"/apis/{group}/v1"),
            "the API server to pass requests on",
            seconds=30,
            passing=(KubeError,),
        )
        yield
    finally:
        cluster.api.delete(f"{_SERVICES}/{name}")
        server.shutdown()
        server.server_close()


def _documents(group: str) -> dict[str, Object]:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    thing = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": _VERBS}
    resources = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": [thing]}
    served = {"name": group, "versions": [version], "preferredVersion": version}
    return {f"/apis/{group}/v1": resources, "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [served]}}


def _register(cluster: Cluster, place: Place, group: str, port: int) -> None:
    name = group.partition(".")[0]
    outside = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    place.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": outside})
    served = {"namespace": place.namespace, "name": name, "port": port}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    spec: Object = {"group": group, "version": "v1", **priorities, "insecureSkipTLSVerify": True, "service": served}
    head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    cluster.api.create(_SERVICES, {**head, "metadata": {"name": f"v1.{group}"}, "spec": spec})
