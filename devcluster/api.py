"""Requests to an API server in the simplest way that works: JSON in, JSON out, one after the other on a connection.

For setup and checks by tools and tests; long-running programs use `kube.runtime.client`.
"""

import base64
import http.client
import json
import select
import ssl
import tempfile
import time
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from kube.errors import NotFound, Unreachable, from_status
from kube.objects import Object
from kube.runtime.kubeconfig import read_kubeconfig

_TIMEOUT_SECONDS = 120.0
_IDLE_SECONDS = 60.0
"""An API server closes a connection that was idle for 90."""


class Api:
    def __init__(
        self, *, url: str, ca: str, token: str = "", certificate: bytes = b"", user_agent: str = "devcluster"
    ) -> None:
        """Connect to the API server.

        `ca` is the PEM of the authority of the server's certificate; `certificate` the PEM of a client's certificate
        and its key, for one without a token.
        """
        self._address = urlsplit(url).netloc
        self._tls = ssl.create_default_context(cadata=ca)
        if certificate:
            with tempfile.NamedTemporaryFile() as file:  # only its owner can read it
                file.write(certificate)
                file.flush()
                self._tls.load_cert_chain(file.name)
        self._headers = {"User-Agent": user_agent} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._idle: list[tuple[float, http.client.HTTPSConnection]] = []
        """Idle connections, each with the time since when."""
        weakref.finalize(self, _close, self._idle)

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Self:
        """Use the first cluster of a kubeconfig, with the client certificate of its first user."""
        config = read_kubeconfig(path)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        parts = [base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(url=cluster["server"], ca=ca, certificate=b"\n".join(parts))

    def get(self, path: str) -> Object:
        return self.request("GET", path)

    def create(self, path: str, obj: Object) -> Object:
        """POST to the path of a collection."""
        return self.request("POST", path, obj)

    def update(self, path: str, obj: Object) -> Object:
        return self.request("PUT", path, obj)

    def patch(self, path: str, patch: Object) -> Object:
        """Send a merge patch."""
        return self.request("PATCH", path, patch, content_type="application/merge-patch+json")

    def apply(self, path: str, obj: Object) -> Object:
        """Apply the whole object on the server side, taking over fields of other managers."""
        path += "?fieldManager=devcluster&force=true"
        return self.request("PATCH", path, obj, content_type="application/apply-patch+yaml")

    def delete(self, path: str) -> Object:
        return self.request("DELETE", path)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Object:
        """Send a request, and return the parsed answer.

        No proxy is in between: the API server's text for a path that it does not serve means 'not found', too.

        Raises:
            kube.errors.ApiError: with the server's message.
            Unreachable: the connection failed.
        """
        status, answer = self.raw(method, path, body, content_type=content_type, headers=headers)
        try:
            parsed = json.loads(answer)
        except ValueError:
            parsed = {}
        if status == 404 and not parsed:
            raise NotFound(404, message=answer.decode(errors="replace").strip())
        if status >= 400:
            raise from_status(status, parsed, fallback=answer.decode(errors="replace"))
        return parsed if isinstance(parsed, dict) else {"value": parsed}

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Return status and body of any answer. A body is sent as JSON, or bytes unchanged."""
        sent = {**self._headers, "Content-Type": content_type, **(headers or {})}
        connection = self._connection()
        with ExitStack() as broken:
            broken.callback(connection.close)
            try:
                data = body if body is None or isinstance(body, bytes) else json.dumps(body)
                connection.request(method, path, data, sent)
                response = connection.getresponse()
                answer = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(f"{method} {path}: {error}") from error
            broken.pop_all()
        self._idle.append((time.monotonic(), connection))
        return answer

    def _connection(self) -> http.client.HTTPSConnection:
        """Return an open connection that no other thread uses."""
        while True:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return http.client.HTTPSConnection(self._address, context=self._tls, timeout=_TIMEOUT_SECONDS)
            if time.monotonic() - since < _IDLE_SECONDS and _is_open(connection):
                return connection
            connection.close()


def _is_open(connection: http.client.HTTPSConnection) -> bool:
    """Whether the connection is open: the only data on an idle one is its end."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _close(idle: list[tuple[float, http.client.HTTPSConnection]]) -> None:
    for _, connection in idle:
        connection.close()
