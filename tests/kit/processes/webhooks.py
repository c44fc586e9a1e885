"""Admission servers as real processes, for tests, and clients that put them under load.

    with WebhookProcess({"seccompProfile": {"enabled": True}}, kubeconfig=cluster.kubeconfig) as server:
        server.wait_until_ready()
        async with client() as session, Load(session, server) as load:
            ...
        assert load.failures == []

It is stopped at the end of the block like an agent.
"""

import asyncio
import contextlib
import io
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp

from kit.eventually import PATIENCE, soon
from kit.processes.agent import HEAD, AgentProcess
from localprocesses.pki import serving_pair
from localprocesses.ports import free_port

HOST = "127.0.0.1"
SECCOMP = "/webhooks/seccomp-profile"
SECCOMP_PROFILE = {"seccompProfile": {"enabled": True}}


def make_certificate(name: str) -> tuple[bytes, bytes]:
    """A certificate for this machine, and its key."""
    pair = serving_pair([name, HOST])
    return pair.certificate, pair.key


class MountedSecret:
    """A directory as Kubernetes mounts a Secret: files are links, which all change at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._versions = 0

    def write(self, certificate: bytes, key: bytes) -> None:
        self._versions += 1
        version = self.directory / f"..{self._versions}"
        version.mkdir(parents=True)
        (version / "tls.crt").write_bytes(certificate)
        (version / "tls.key").write_bytes(key)
        link = self.directory / "..new"
        link.symlink_to(version.name)
        link.rename(self.directory / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.directory / name).is_symlink():
                (self.directory / name).symlink_to(f"..data/{name}")


class WebhookProcess(AgentProcess):
    """One server.

    Args:
        webhooks: the section of the configuration.
        kubeconfig: of the cluster.
        certificate: whether there is one when it starts.
        port: none: a free one.
        tls: further settings of it.
        sections: further ones of the configuration.
    """

    program = "webhooks"

    def __init__(
        self,
        webhooks: Mapping[str, Any],
        *,
        kubeconfig: Path | None,
        certificate: bool = True,
        port: int | None = None,
        tls: Mapping[str, Any] | None = None,
        **sections: Any,
    ) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="certificates-")
        self.secret = MountedSecret(Path(self._files.name) / "mounted")
        self.secret.directory.mkdir()
        if certificate:
            self.secret.write(*make_certificate("first"))
        self.port = port or free_port()
        tls = {"serverCertDir": str(self.secret.directory), **(tls or {})}
        config = {
            **HEAD,
            "leaderElection": {"leaderElect": True, "resourceNamespace": "default"},
            "server": {"webhooks": {"bindAddress": HOST, "port": self.port, "tls": tls}},
            "webhooks": webhooks,
            **sections,
        }
        super().__init__(config, kubeconfig=kubeconfig)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        super().__exit__(kind, error)
        self._files.cleanup()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def certificate(self) -> bytes:
        """With what has signed it."""
        return (self.secret.directory / "tls.crt").read_bytes()

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    async def until(self, found: Callable[[], Any], *, what: str, seconds: float = PATIENCE) -> Any:
        """As `wait_for`, without holding up the event loop."""
        return await asyncio.to_thread(self.wait_for, found, what=what, seconds=seconds)

    async def until_ready(self) -> None:
        await asyncio.to_thread(self.wait_until_ready)


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def drop(writer: asyncio.StreamWriter) -> None:
    """Closes a connection for good: one that is closed politely may outlive the test."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def client(**settings: Any) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=trusting(), limit=0, **settings)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        try:
            yield session
        finally:
            # One that has still something to send would outlive the test.
            await connector.close(abort_ssl=True)


def pod_review(**spec: Any) -> dict[str, Any]:
    request = {
        "uid": "u1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


POD_REVIEW = json.dumps(pod_review(containers=[{"name": "c", "image": "i"}])).encode()


async def ask(session: aiohttp.ClientSession, url: str, body: Any = POD_REVIEW, **headers: str) -> dict[str, Any]:
    """The `response` of the answer."""
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    # Of large bodies aiohttp wants to be able to send parts.
    data = io.BytesIO(body) if isinstance(body, bytes) and len(body) > 1 << 20 else body
    async with session.post(url, data=data, headers=given) as answer:
        assert answer.status == 200, await answer.text()
        review: dict[str, Any] = await answer.json()
        return dict(review["response"])


class Load:
    """Clients that ask one after another, as long as the block lasts or `may_ask` reports so."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: WebhookProcess,
        *,
        clients: int = 8,
        may_ask: Callable[[], bool] = lambda: True,
    ) -> None:
        self._session = session
        self._url = server.url + SECCOMP
        self._clients = clients
        self._may_ask = may_ask
        self._tasks: list[asyncio.Task[None]] = []
        self.answered = 0
        self.failures: list[str] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._ask_on()) for _ in range(self._clients)]
        return self

    async def _ask_on(self) -> None:
        while self._may_ask():
            try:
                response = await ask(self._session, self._url)
                assert response["patchType"] == "JSONPatch"
                self.answered += 1
            except (aiohttp.ClientError, AssertionError, TimeoutError) as error:
                self.failures.append(repr(error))
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Until no client queries any more."""
        await asyncio.gather(*self._tasks)

    async def more(self, answers: int) -> None:
        """Until there are so many more answers."""
        goal = self.answered + answers
        await soon(lambda: self.answered >= goal or self.failures, f"{goal} answers")

    async def __aexit__(self, *_: object) -> None:
        self._may_ask = lambda: False
        with contextlib.suppress(asyncio.CancelledError):
            await self.finish()
