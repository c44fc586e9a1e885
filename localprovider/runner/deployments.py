"""One pass over a Deployment of a Shoot's namespace: its process runs, or none does, and the status says which."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from kube.clock import format_time
from kube.objects import Key, Object, annotations, integer, is_deleting, key, mappings, metadata, spec
from kube.paths import mapping_at
from kube.resources import DEPLOYMENTS, SECRETS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.status import StatusWriter
from localprocesses.components import APISERVER, CONTROLLER_MANAGER
from localprocesses.local import LocalProcessError
from localprovider.runner.addresses import Here
from localprovider.runner.commands import PROGRAMS, Program, without_pods
from localprovider.runner.conditions import condition
from localprovider.runner.pods import Pod, Pods, Standing
from localprovider.runner.probes import probe_of
from localprovider.runner.volumes import File, MissingSource, files, mounts

SIMULATED = "local.provider/simulated"
"""An annotation of Deployments that are reported as ready although nothing runs."""
_MISSING_SECONDS = 1.0
_ROLLED_OUT = "NewReplicaSetAvailable"
_SERVICES = {APISERVER: APISERVER, **{f"{each}-client": f"{each}-client" for each in ("etcd-main", "etcd-events")}}
"""Service -> the port that stands for it. Others are not talked to by what runs here."""


@dataclass(eq=False, kw_only=True, slots=True)
class DeploymentReconciler:
    client: Client
    pods: Pods
    deployments: Store[Object]
    secrets: Store[Object]
    config_maps: Store[Object]
    statuses: StatusWriter
    is_run_here: Callable[[str], bool]
    """Whether what is in a namespace is."""
    seed_kubeconfig: Path
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        deployment = self.deployments.get(name)
        if not self.is_run_here(name.namespace):
            return Done()
        if deployment is None or is_deleting(deployment):
            await self.pods.stop(name.namespace, name.name)
            self.pods.places.forget_pod(name.namespace, name.name)
            return Done()
        if not integer(spec(deployment).get("replicas")):
            await self.pods.stop(name.namespace, name.name)
            await self._report(deployment, Standing("", 0.0))
            return Done()
        if (program := PROGRAMS.get(name.name)) is None:
            return await self._simulate(deployment)
        try:
            pod = self._pod(deployment, program)
        except MissingSource as error:
            await self._report(deployment, Standing(str(error), _MISSING_SECONDS))
            return RequeueAfter(_MISSING_SECONDS)
        except LocalProcessError as error:
            await self._report(deployment, Standing(str(error), _MISSING_SECONDS))
            raise ReconcileError(str(error)) from error
        standing = await self.pods.run(pod)
        await self._report(deployment, standing)
        if standing.lacks_port and not program.is_called:
            self.pods.places.forget_ports(name.namespace, *program.servers)
            return RequeueAfter(0.0)
        return RequeueAfter(standing.wait)

    async def _simulate(self, deployment: Object) -> Result:
        if SIMULATED not in annotations(deployment):
            name, body = key(deployment), {"metadata": {"annotations": {SIMULATED: "true"}}}
            await self.client.patch(DEPLOYMENTS, name.name, body, namespace=name.namespace)
        await self._report(deployment, Standing("", 0.0))
        return Done()

    # --- what is to run

    def _pod(self, deployment: Object, program: Program) -> Pod:
        """Raises MissingSource, LocalProcessError."""
        name, template = key(deployment), mapping_at(spec(deployment), "template", "spec")
        container = next(iter(mappings(template.get("containers"))), {})
        places = self.pods.places
        ports = {each: places.port(name.namespace, each) for each in (*program.servers, *_SERVICES.values())}
        root = places.of_pod(name.namespace, name.name) / "root"
        services = {service: ports[each] for service, each in _SERVICES.items()}
        here = Here(root, tuple(mounts(container).values()), name.namespace, services)
        found = files(template, container, partial(self._source, name.namespace))
        command = program.call(container, here, ports)
        is_seed = name.name == CONTROLLER_MANAGER and places.seed(name.namespace).is_dir()
        return Pod(
            namespace=name.namespace,
            name=name.name,
            here=here,
            command=without_pods(command) if is_seed else command,
            files=[self._here(each, here, program, ports) for each in found],
            probe=probe_of(container, ports[program.servers[0]]),
        )

    def _here(self, file: File, here: Here, program: Program, ports: Mapping[str, int]) -> File:
        content = here.content(file.content)
        if program.config is not None and file.path.endswith(program.config.path):
            content = program.config.here(content, ports=ports, seed_kubeconfig=self.seed_kubeconfig)
        return File(file.path, content, file.is_fixed)

    def _source(self, namespace: str, resource: Resource, name: str) -> Object | None:
        return (self.secrets if resource == SECRETS else self.config_maps).get(Key(namespace, name))

    # --- what is said of it

    async def _report(self, deployment: Object, standing: Standing) -> None:
        wanted = integer(spec(deployment).get("replicas"))
        ready = 0 if standing.problem else wanted
        moment = format_time(self.clock())
        status: Object = {
            "observedGeneration": metadata(deployment)["generation"],
            "replicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": wanted - ready,
            "conditions": [
                condition(deployment, "Available", is_true=not standing.problem, said=standing.problem, now=moment),
                condition(deployment, "Progressing", is_true=True, said="", now=moment, reason=_ROLLED_OUT),
            ],
        }
        await self.statuses.write(deployment, status)
