"""Webhooks installed in a cluster as an operator would do it, for tests.

The commands `certificates` and `configurations` do what they do for everybody; here is the rest of the world: a kubelet,
which mounts the Secret with the certificate, and a Service, which chooses between the replicas that are ready.
"""

import asyncio
import base64
import contextlib
import os
import subprocess
import sys
from collections import Counter
from typing import Any, Self

from devcluster.cluster import Cluster
from kit.background import Clients
from kit.eventually import eventually, soon
from kit.objects import pod
from kit.processes.agent import PROJECT
from kit.processes.webhooks import HOST, WebhookProcess
from kit.world import Place, find_at
from kube.errors import KubeError
from kube.objects import Object
from kube.runtime.client import Client

NAMESPACE = "garden"
"""Where the server would run."""
CA_SECRET, SERVING_SECRET = "gardener-resource-manager-ca", "gardener-resource-manager-server"
DRY_RUN = "?dryRun=All"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SERVING = ("tls.crt", "tls.key")
OURS = {"app": "gardener-resource-manager"}
ROLE = {"gardener.cloud/role": "shoot"}
"""Namespaces with this label are managed."""


def replica(webhooks: Object, cluster: Cluster) -> WebhookProcess:
    """A server that has no certificate yet."""
    sections: dict[str, Any] = {
        "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
        # These two must both be on, or both be off.
        "controllers": {"tokenInvalidator": webhooks.get("tokenInvalidator", {})},
        # A part of it is how long a server that is to stop goes on serving: time for `Balancer` to see it.
        "gracefulShutdownTimeout": "24s",
    }
    return WebhookProcess(webhooks, kubeconfig=cluster.kubeconfig, certificate=False, **sections)


def start_command(name: str, server: WebhookProcess, cluster: Cluster, *arguments: str) -> "subprocess.Popen[str]":
    """`python -m webhooks <name>` with the configuration of a server."""
    config = next(argument for argument in server.arguments if argument.startswith("--config="))
    return subprocess.Popen(
        [sys.executable, "-m", "webhooks", name, config, *arguments],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def command(name: str, server: WebhookProcess, cluster: Cluster, *arguments: str) -> str:
    """Runs it to its end; what it reported."""
    with start_command(name, server, cluster, *arguments) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


def make_certificates(server: WebhookProcess, cluster: Cluster) -> None:
    command("certificates", server, cluster, "--once", f"--dns-name={HOST}")


def mount_certificate(server: WebhookProcess, cluster: Cluster) -> None:
    data = cluster.api.get(f"{SECRETS}/{SERVING_SECRET}")["data"]
    server.secret.write(*(base64.b64decode(data[name]) for name in SERVING))


def install(server: WebhookProcess, cluster: Cluster, *arguments: str, port: int | None = None) -> str:
    """The webhook configurations; API servers are to come to this port, or to that of the server."""
    trust = f"--ca-secret={NAMESPACE}/{CA_SECRET}"
    url = f"--url=https://{HOST}:{port or server.port}"
    return command("configurations", server, cluster, url, trust, "--install", *arguments)


def install_and_wait(server: WebhookProcess, cluster: Cluster, *arguments: str, requested: str) -> None:
    """Installs the configurations, and returns when a pod comes to that webhook: all entries take effect at once."""
    install(server, cluster, *arguments)
    series = f'controller_runtime_webhook_requests_total{{code="200",webhook="/webhooks/{requested}"}}'
    before = server.metric(series) or 0

    def is_asked() -> bool:
        Place(cluster, NAMESPACE).dry_run(pod("p"))
        return (server.metric(series) or 0) > before

    eventually(is_asked)


def create_namespace(
    cluster: Cluster, name: str, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> None:
    """With its labels from the start: API servers choose webhooks by them, and hear of changes a moment later."""
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    cluster.api.create("/api/v1/namespaces", {"metadata": meta})
    eventually(lambda: find_at(cluster, f"/api/v1/namespaces/{name}/serviceaccounts/default"))


def has_seccomp_profile(created: Object) -> bool:
    context = created["spec"].get("securityContext") or {}
    return bool(context.get("seccompProfile") == {"type": "RuntimeDefault"})


LOADED = pod("loaded")


class Balancer:
    """An address for API servers: new connections go to replicas that are ready, those that exist stay."""

    def __init__(self, *replicas: WebhookProcess) -> None:
        self.replicas = list(replicas)
        self.connections = 0
        self._ready: list[WebhookProcess] = []
        self._led_to: Counter[WebhookProcess] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self._start(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def chooses(self, server: WebhookProcess) -> bool:
        return server in self._ready

    def _start(self, work: Any) -> None:
        self._hold(asyncio.ensure_future(work))

    def _hold(self, task: "asyncio.Task[Any] | None") -> None:
        """No one else does: without it a task can vanish at any moment."""
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self) -> None:
        """What kubelet and EndpointSlices do."""
        while True:
            requested = list(self.replicas)
            reported = await asyncio.gather(*(asyncio.to_thread(each.probe) for each in requested))
            ready = [each for each, (status, _) in zip(requested, reported, strict=True) if status == 200]
            self._ready = [each for each in ready if each in self.replicas]
            await asyncio.sleep(0.1)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._hold(asyncio.current_task())
        # The streams of Python 3.11 take it for an error if this ends by cancellation.
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            if not self._ready:
                return
            # Not in turn: who is new would get none if only every other connection is recreated.
            chosen = min(self._ready, key=lambda each: self._led_to[each])
            self._led_to[chosen] += 1
            its_reader, its_writer = await asyncio.open_connection(HOST, chosen.port)
            with contextlib.closing(its_writer):
                self._start(_pump(reader, its_writer))
                await _pump(its_reader, writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class Creations(Clients):
    """Clients that create pods in a dry run, one after another, as long as the block lasts.

    A pod that was created without having been changed is a failure, too.

    Args:
        pod: what is created.
        proof: what the answer holds if it was changed.
        pause: seconds between two requests of a client.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        pod: Object | None = None,
        proof: bytes = b'"RuntimeDefault"',
        clients: int = 4,
        pause: float = 0.0,
    ) -> None:
        super().__init__(clients)
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._pod = pod or LOADED
        self._proof = proof
        self._pause = pause
        self.created = 0
        self.failures: list[str] = []

    async def work(self) -> None:
        while True:
            try:
                answer = await self._client.request(
                    "POST", self._path, params={"dryRun": "All"}, body=self._pod, timeout=60
                )
                if self._proof in answer:
                    self.created += 1
                else:
                    self.failures.append("was not changed")
            except KubeError as error:
                self.failures.append(str(error))
            await asyncio.sleep(self._pause)

    async def more(self, count: int) -> None:
        """Until so many more pods were created, or one was not."""
        goal = self.created + count
        await soon(lambda: self.created >= goal or self.failures, f"{goal} Pods to be created")
