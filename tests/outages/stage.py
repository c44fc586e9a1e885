"""An agent at work, as it is deployed: with the usual times of its lease, and a user who starts it again.

It reaches the API server by a proxy, which others don't use. Whether it works is shown by a change: a new version in the
Secret of its ManagedResource has to be in all objects.
"""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

from campaign.replicas import Clock, Replica
from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.testing.proxy import FaultProxy
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from kit.background import beside
from kit.managed_resources import config_map, install_crd
from kit.processes.agent import AgentProcess
from kit.proxied import proxy_to
from kube.clock import parse_time
from kube.errors import AlreadyExists, KubeError, NotFound
from kube.objects import Object, condition
from kube.resources import CONFIG_MAPS, LEASES, SECRETS
from localprocesses.pki import write_private

NAMESPACE = "outages"
NAME = "kubernetes.default.svc"
"""What an API server is called where names are looked up."""
PATIENCE_SECONDS = 300.0
_OBJECTS = 20
_LEASE = "gardener-resource-manager"
_HALF_A_MINUTE = 30.0
_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_CONFIG: Object = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "logFormat": "json",
    "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    recovered: float
    """Seconds from the end of the outage until it works again."""
    reported: str
    """What went wrong in between."""


class NotRecovered(Exception):
    """It does not work again."""


class Stage:
    def __init__(self, source: Cluster, target: Cluster, proxy: FaultProxy, directory: Path) -> None:
        self.source = source
        self.target = target
        self.proxy = proxy
        self.directory = directory
        self.clock = Clock(directory / "clock")
        self.kubeconfig = directory / "kubeconfig"
        self.ca = directory / "ca.crt"
        self.ca.write_text(source.ca)
        self._token = directory / "token"
        self._version = 0
        self._uids: dict[str, str] = {}
        self.is_target_apart = target is not source

    # --- what is there

    async def begin(self, *, prefix: tuple[str, ...] = (), host: str = "127.0.0.1") -> "Replica[AgentProcess]":
        """Returns when the agent works."""
        for cluster in {self.source, self.target}:
            await asyncio.to_thread(self._prepare, cluster)
        await asyncio.to_thread(install_crd, self.source)
        await self.renew_token()
        self.write_kubeconfig(host=host)
        process = AgentProcess(
            _CONFIG,
            kubeconfig=self.kubeconfig,
            target_kubeconfig=self.target.kubeconfig if self.is_target_apart else None,
            environment=self.clock.environment,
        )
        process.prefix = prefix
        self.agent = Replica("agent", process, self.directory / "agent.log")
        return self.agent

    def _prepare(self, cluster: Cluster) -> None:
        with contextlib.suppress(AlreadyExists):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})

    def write_kubeconfig(self, *, host: str = "127.0.0.1", proxy: FaultProxy | None = None) -> None:
        """The agent's: to the proxy, with files for the token and the CA."""
        url = (proxy or self.proxy).url.replace("127.0.0.1", host)
        cluster = {"server": url, "certificate-authority": str(self.ca)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "source", "cluster": cluster}],
            "users": [{"name": "agent", "user": {"tokenFile": str(self._token)}}],
            "contexts": [{"name": "source", "context": {"cluster": "source", "user": "agent"}}],
            "current-context": "source",
        }
        self._write(self.kubeconfig, yaml.safe_dump(document))

    def write_ca(self, text: str) -> None:
        self._write(self.ca, text)

    def _write(self, file: Path, text: str) -> None:
        new = file.with_suffix(".new")
        write_private(new, text.encode())
        new.rename(file)

    async def renew_token(self) -> None:
        binding = {
            "metadata": {"name": NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": NAMESPACE}],
        }

        def renew() -> str:
            for path, obj in ((_ACCOUNTS, {"metadata": {"name": "agent"}}), (_BINDINGS, binding)):
                with contextlib.suppress(AlreadyExists):
                    self.source.api.create(path, obj)
            answer = self.source.api.create(f"{_ACCOUNTS}/agent/token", {"spec": {"expirationSeconds": 3600}})
            return str(answer["status"]["token"])

        self._write(self._token, await persist(renew))

    async def expire_token(self) -> None:
        await persist(lambda: self.source.api.delete(f"{_ACCOUNTS}/agent"))

    async def until_token_is_refused(self) -> None:
        """The API server caches its answer for some seconds."""
        api = Api(url=self.source.url, ca=self.source.ca, token=self._token.read_text())
        async with _patience("the token is still good"):
            while (await asyncio.to_thread(api.raw, "GET", "/version"))[0] != 401:
                await asyncio.sleep(0.2)

    async def move_clock(self, seconds: float) -> None:
        """Returns when the agent knows: it renews its lease at another time than ours."""
        self.clock.move(seconds)

        def shift() -> float:
            lease = self.source.api.get(LEASES.path(namespace=NAMESPACE, name=_LEASE))
            return (parse_time(lease["spec"]["renewTime"]) - datetime.now(UTC)).total_seconds()

        async with _patience("the clock of the agent does not move"):
            while abs(await persist(shift) - seconds) > _HALF_A_MINUTE:
                await asyncio.sleep(0.2)

    # --- whether it works

    async def change(self) -> None:
        """A new version is wanted."""
        self._version += 1
        manifests = [
            config_map(f"c{number}", str(self._version)) | {"metadata": {"name": f"c{number}", "namespace": NAMESPACE}}
            for number in range(_OBJECTS)
        ]
        data = {"objects.yaml": base64.b64encode(yaml.safe_dump_all(manifests).encode()).decode()}
        secrets, managed = SECRETS.path(namespace=NAMESPACE), MANAGED_RESOURCES.path(namespace=NAMESPACE)
        spec = {"secretRefs": [{"name": "s"}]}

        def write() -> None:
            try:
                self.source.api.patch(f"{secrets}/s", {"data": data})
            except NotFound:
                self.source.api.create(secrets, {"metadata": {"name": "s"}, "data": data})
            head = {**MANAGED_RESOURCES.type_meta, "metadata": {"name": "mr"}}
            with contextlib.suppress(AlreadyExists):
                self.source.api.create(managed, {**head, "spec": spec})

        await persist(write)

    async def works(self) -> None:
        """Returns when the version that is wanted is everywhere. Raises NotRecovered."""
        async with _patience("the change is not applied"):
            while not await self._is_applied():
                await asyncio.sleep(0.1)

    async def _is_applied(self) -> bool:
        try:
            found = await asyncio.to_thread(self.target.api.get, CONFIG_MAPS.path(namespace=NAMESPACE))
        except KubeError:
            return False
        ours = {o["metadata"]["name"]: o for o in found["items"] if o["metadata"]["name"].startswith("c")}
        if len(ours) != _OBJECTS or any(o["data"]["version"] != str(self._version) for o in ours.values()):
            return False
        uids = {name: o["metadata"]["uid"] for name, o in ours.items()}
        self._recreated = sum(self._uids.get(name, uid) != uid for name, uid in uids.items())
        self._uids = uids
        return True

    async def until_all_are_applied(self) -> None:
        """All ManagedResources. Raises NotRecovered."""
        path = MANAGED_RESOURCES.path(namespace=NAMESPACE)
        async with _patience("not all is applied"):
            while True:
                found = (await persist(lambda: self.source.api.get(path)))["items"]
                if all((condition(each, RESOURCES_APPLIED) or {}).get("status") == "True" for each in found):
                    return
                await asyncio.sleep(0.5)

    async def outcome(self, ended: float, *, mark: "Mark") -> Outcome:
        """A change that is made now: how long after the end of the outage it is there. Raises NotRecovered."""
        await self.change()
        await self.works()
        return Outcome(time.monotonic() - ended, self.logged_since(mark))

    # --- what went wrong

    def mark(self) -> "Mark":
        return Mark(len(self.agent.exits), self._errors())

    def logged_since(self, mark: "Mark") -> str:
        restarts, errors = len(self.agent.exits) - mark.exits, self._errors() - mark.errors
        reasons = {
            ended.output.strip().splitlines()[-1] for ended in self.agent.exits[mark.exits :] if ended.output.strip()
        }
        why = f" ({'; '.join(sorted(reasons))})" if reasons else ""
        found = [
            f"{restarts} restart{'s' * (restarts != 1)} of the agent{why}" if restarts else "",
            f"{errors} errors logged" if errors else "",
            f"{self._recreated} objects recreated" if self._recreated else "",
        ]
        return ", ".join(filter(None, found)) or "nothing"

    def _errors(self) -> int:
        lines = (line for line in self.agent.log().splitlines() if line.startswith('{"level":"error"'))
        return sum(1 for line in lines if _is_whole(line))


@dataclass(frozen=True, slots=True)
class Mark:
    exits: int
    errors: int


def _is_whole(line: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(json.loads(line))
    return False


async def persist(call: Callable[[], T]) -> T:
    """Until the API server does it. Raises NotRecovered."""
    async with _patience("the API server does not answer"):
        while True:
            try:
                return await asyncio.to_thread(call)
            except KubeError:
                await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def _patience(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield
    except TimeoutError as error:
        raise NotRecovered(f"{what} after {PATIENCE_SECONDS:.0f} s") from error


@contextlib.asynccontextmanager
async def clusters(*, apart: bool = False) -> AsyncIterator[tuple[Cluster, Cluster]]:
    async with contextlib.AsyncExitStack() as stack:
        source = await stack.enter_async_context(Cluster())
        yield source, await stack.enter_async_context(Cluster()) if apart else source


@contextlib.asynccontextmanager
async def working(source: Cluster, target: Cluster, directory: Path, **how: Any) -> AsyncIterator[Stage]:
    """A stage whose agent has applied its first change; it ends with the block."""
    async with proxy_to(source) as proxy:
        stage = Stage(source, target, proxy, directory)
        agent = await stage.begin(**how)
        try:
            async with beside(agent.keep()):
                await stage.change()
                await stage.works()
                yield stage
        finally:
            agent.end()
