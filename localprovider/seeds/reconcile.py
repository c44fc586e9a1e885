"""One pass over a pool of workers of a Shoot: if there is a gardenlet to run on it, what a seed needs runs here.

Whether there is one is asked of the Shoot's API server, again and again: this is what kubelets would be for.
"""

import json
import sys
from pathlib import Path

import structlog

from gardener.garden.domains import NAMESPACE as GARDEN
from kube.errors import KubeError
from kube.objects import Key, Object, integer, is_deleting, spec
from kube.resources import DEPLOYMENTS, ENDPOINTS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from localprocesses.components import APISERVER
from localprovider import shoots
from localprovider.runner.commands import GARDENLET
from localprovider.runner.pods import Pods, write_private
from localprovider.seeds import configuration
from localprovider.seeds.configuration import HEALTH, METRICS

_PERIOD_SECONDS = 5.0
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class SeedReconciler:
    def __init__(self, *, client: Client, pods: Pods) -> None:
        self._client, self._pods = client, pods
        self._workers: Store[Object] | None = None
        self._deployments: Store[Object] | None = None

    def begin(self, workers: Store[Object], deployments: Store[Object]) -> None:
        """Args: deployments: of the seed, among them the API servers of Shoots."""
        self._workers, self._deployments = workers, deployments

    async def reconcile(self, name: Key) -> Result:
        assert self._workers is not None
        assert self._deployments is not None
        namespace, worker = name.namespace, self._workers.get(name)
        apiserver = self._deployments.get(Key(namespace, APISERVER))
        if worker is None or is_deleting(worker) or not integer(spec(apiserver or {}).get("replicas")):
            await self._stop(namespace)
            return Done()
        if await self._has_gardenlet(namespace):
            await self._run(namespace)
        return RequeueAfter(_PERIOD_SECONDS)

    async def _has_gardenlet(self, namespace: str) -> bool:
        """As long as its API server does not answer, it has what it had."""
        places = self._pods.places
        try:
            async with shoots.connected(self._client, namespace) as shoot:
                found = await shoot.find(DEPLOYMENTS, GARDENLET, namespace=GARDEN)
                if found is not None and not places.seed(namespace).is_dir():
                    log.info("The Shoot becomes a seed", namespace=namespace)
                    if await shoot.find(ENDPOINTS, "kubernetes", namespace="default") is None:
                        await shoot.create(ENDPOINTS, configuration.API_SERVER)
        except (KubeError, ReconcileError):
            return places.seed(namespace).is_dir()
        return found is not None or places.seed(namespace).is_dir()

    async def _run(self, namespace: str) -> None:
        """Raises ReconcileError: there is no kubeconfig; LocalProcessError, KubeError."""
        places = self._pods.places
        directory = places.seed(namespace)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (content := await shoots.kubeconfig(self._client, namespace)):
            raise ReconcileError(f"there is no kubeconfig for the cluster of {namespace}")
        kubeconfig, token = configuration.with_token_file(content)
        write_private(directory / "token", token)
        write_private(directory / "kubeconfig", kubeconfig)
        running = await self._pods.processes.running()
        provider = configuration.of_local_provider(directory / "state", is_shoot=True)
        connection = {"kubeconfig": str(directory / "kubeconfig")}
        for program, module, config in (
            (configuration.LOCAL_PROVIDER, "localprovider", {**provider, "seedClientConnection": connection}),
            (
                configuration.RESOURCE_MANAGER,
                "agent",
                {**configuration.of_resource_manager(), "sourceClientConnection": connection},
            ),
        ):
            ports = {each: places.port(namespace, f"seed-{program}-{each}") for each in (HEALTH, METRICS)}
            write_private(
                directory / f"{program}.json", json.dumps(configuration.served_at(config, ports), indent=2).encode()
            )
            process = f"{namespace}.seed-{program}"
            if not running.get(process, False):
                await self._pods.processes.start(process, _command(module, directory, program))

    async def _stop(self, namespace: str) -> None:
        """With all that it ran. Raises LocalProcessError."""
        for program in (configuration.LOCAL_PROVIDER, configuration.RESOURCE_MANAGER):
            await self._pods.processes.stop(f"{namespace}.seed-{program}")


def _command(module: str, directory: Path, program: str) -> list[str]:
    environment = ["env", "--unset=TARGET_KUBECONFIG", f"KUBECONFIG={directory / 'kubeconfig'}"]
    return [*environment, sys.executable, "-P", "-m", module, "--config", str(directory / f"{program}.json")]
