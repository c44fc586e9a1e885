"""A kubelet that has nothing but the logs of containers; the API server queries it for them.

with kubelet(cluster, {"app": "all that it wrote"}) as node:
    ...  # pods with `spec.nodeName: node` have these logs, by container
"""

import ssl
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

from devcluster.cluster import Cluster
from kube.resources import NODES
from kube.x509 import make_ca, make_serving

_HOST = "127.0.0.1"


@contextmanager
def kubelet(cluster: Cluster, logs: Mapping[str, str]) -> Iterator[str]:
    """The name of its node. Args: logs: of each container, whichever of its runs is requested."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query, container = parse_qs(url.query), url.path.rpartition("/")[2]
            is_known = url.path.startswith("/containerLogs/") and container in logs
            lines = logs.get(container, "").splitlines(keepends=True)
            body = "".join(lines[-int(query.get("tailLines", ["1"])[0]) :]).encode() if is_known else b"no such log"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((_HOST, 0), Handler)
    server.socket = _tls().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    name = f"kubelet-{uuid.uuid4().hex[:8]}"
    cluster.api.create(NODES.path(), {**NODES.type_meta, "metadata": {"name": name}})
    try:
        status = {
            "addresses": [{"type": "InternalIP", "address": _HOST}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
        }
        cluster.api.patch(f"{NODES.path(name=name)}/status", {"status": status})
        yield name
    finally:
        cluster.api.delete(NODES.path(name=name))
        server.shutdown()
        thread.join()
        server.server_close()


def _tls() -> ssl.SSLContext:
    now, lifetime = datetime.now(UTC), timedelta(hours=1)
    pair = make_serving(make_ca("kubelet", now=now, lifetime=lifetime), [_HOST], now=now, lifetime=lifetime)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as directory:
        file = Path(directory, "pair.pem")
        file.write_bytes(pair.certificate_pem + pair.key_pem)
        context.load_cert_chain(file)
    return context
