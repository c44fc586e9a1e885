"""One pass over a pool of workers of a Shoot: if there is a gardenlet to run on it, run the programs of a seed locally.

The Shoot's API server is polled for the gardenlet, in place of kubelets. Its presence alone decides nothing, since the
owner of the Shoot could deploy one: ManagedSeeds are made only of Shoots of the project `garden`, and the Cluster of a
Shoot, which only the gardenlet writes, has its project.
"""

import json
import sys
from pathlib import Path

import structlog

from gardener.garden.domains import NAMESPACE as GARDEN
from kube.errors import KubeError
from kube.objects import Key, Object, integer, is_deleting, spec, text
from kube.paths import at
from kube.resources import DEPLOYMENTS, ENDPOINTS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from localprocesses.components import APISERVER
from localprovider import shoots
from localprovider.runner.commands import GARDENLET
from localprovider.runner.places import SEED
from localprovider.runner.pods import Pods
from localprovider.seeds import configuration
from localprovider.seeds.configuration import HEALTH, METRICS
from process.composition import IDENTITY

_PERIOD_SECONDS = 5.0
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def may_be_seed(cluster: Object) -> bool:
    """Whether the Shoot of a Cluster may be a ManagedSeed."""
    return text(at(cluster, "spec", "shoot", "metadata", "namespace")) == GARDEN


class SeedReconciler:
    def __init__(self, *, client: Client, pods: Pods) -> None:
        self._client, self._pods = client, pods
        self._workers: Store[Object] | None = None
        self._deployments: Store[Object] | None = None
        self._may_be_seed: Store[bool] | None = None

    def begin(self, workers: Store[Object], deployments: Store[Object], may_be_seed: Store[bool]) -> None:
        """Begin once the kinds are served.

        `deployments` are those of the seed, with the API servers of Shoots; `may_be_seed` has an entry per Cluster.
        """
        self._workers, self._deployments, self._may_be_seed = workers, deployments, may_be_seed

    async def reconcile(self, name: Key) -> Result:
        assert self._workers is not None
        assert self._deployments is not None
        assert self._may_be_seed is not None
        namespace, worker = name.namespace, self._workers.get(name)
        apiserver = self._deployments.get(Key(namespace, APISERVER))
        if worker is None or is_deleting(worker) or not integer(spec(apiserver or {}).get("replicas")):
            await self._stop(namespace)
            return Done()
        if not self._may_be_seed.get(Key("", namespace)):
            await self._stop(namespace)
            return Done()
        if await self._has_gardenlet(namespace):
            await self._run(namespace)
        return RequeueAfter(_PERIOD_SECONDS)

    async def _has_gardenlet(self, namespace: str) -> bool:
        """Whether there is a gardenlet; the previous answer while its API server does not answer."""
        places = self._pods.places
        try:
            async with shoots.connected(self._client, namespace) as shoot:
                found = await shoot.find(DEPLOYMENTS, Key(GARDEN, GARDENLET))
                if found is not None and not places.is_seed(namespace):
                    log.info("The Shoot becomes a seed", namespace=namespace)
                    if await shoot.find(ENDPOINTS, Key("default", "kubernetes")) is None:
                        await shoot.create(ENDPOINTS, configuration.API_SERVER)
        except (KubeError, ReconcileError):
            return places.is_seed(namespace)
        return found is not None or places.is_seed(namespace)

    async def _run(self, namespace: str) -> None:
        """Start the programs of a seed.

        Raises:
            ReconcileError: there is no kubeconfig.
            LocalProcessError: the supervisor refused, or there are too many namespaces.
        """
        places = self._pods.places
        directory, files, own = places.seed(namespace), places.files_of(namespace), f"{namespace}/{SEED}"
        if not (content := await shoots.kubeconfig(self._client, namespace)):
            raise ReconcileError(f"there is no kubeconfig for the cluster of {namespace}")
        kubeconfig, token = configuration.with_token_file(content)
        files.write(f"{own}/token", token)
        files.write(f"{own}/kubeconfig", kubeconfig)
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
            written = json.dumps(configuration.served_at(config, ports), indent=2).encode()
            files.write(f"{own}/{program}.json", written)
            process = f"{namespace}.seed-{program}"
            if not running.get(process, False):
                await self._pods.processes.start(process, _command(module, directory, program, process))

    async def _stop(self, namespace: str) -> None:
        """Stop the programs of a seed, with all their processes.

        Raises:
            LocalProcessError: the supervisor refused.
        """
        for program in (configuration.LOCAL_PROVIDER, configuration.RESOURCE_MANAGER):
            await self._pods.processes.stop(f"{namespace}.seed-{program}")


def _command(module: str, directory: Path, program: str, identity: str) -> list[str]:
    environment = ["env", "--unset=TARGET_KUBECONFIG", f"KUBECONFIG={directory / 'kubeconfig'}"]
    environment.append(f"{IDENTITY}={identity}")
    return [*environment, sys.executable, "-P", "-m", module, "--config", str(directory / f"{program}.json")]
