"""Tools ask an API server over connections that they keep."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.api import Api
from localprocesses.pki import Authority


class Server(http.server.ThreadingHTTPServer):
    """Answers everything; counts how many connections there were."""

    connections = 0
    closes = False
    """Each connection after an answer, without saying so."""

    def get_request(self):  # type: ignore[no-untyped-def]
        self.connections += 1
        return super().get_request()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        self.close_connection = self.server.closes

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def authority() -> Authority:
    return Authority.create("test")


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[Server]:
    files = authority.issue_server(["127.0.0.1"]).write(tmp_path, "serving")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.certificate, files.key)
    with Server(("127.0.0.1", 0), Answers) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def api(server: Server, authority: Authority) -> Api:
    return Api(url=f"https://127.0.0.1:{server.server_port}", ca=authority.bundle.decode(), token="t")


def test_requests_share_a_connection(api: Api, server: Server) -> None:
    for _ in range(3):
        assert api.get("/") == {}
    assert server.connections == 1


def test_a_connection_that_the_server_has_closed_is_not_used(api: Api, server: Server) -> None:
    server.closes = True
    for _ in range(3):
        assert api.get("/") == {}
        (_, connection), *others = api._idle
        assert others == []
        connection.sock.settimeout(60)
        assert connection.sock.recv(1) == b"", "the end has come"
    assert server.connections == 3
