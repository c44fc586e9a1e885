"""One pass over a Deployment of a Shoot's namespace: start or stop its process, and report it in the status."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from gardener.tenant_files import UnusableFile
from gardener.tenant_files.mounted import check_mounted
from kube.clock import format_time
from kube.objects import Key, Object, annotations, integer, is_deleting, key, mappings, metadata, spec, text, texts
from kube.paths import mapping_at
from kube.resources import DEPLOYMENTS, SECRETS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.status import StatusWriter
from localprocesses.components import APISERVER, CONTROLLER_MANAGER
from localprocesses.confined import OutsideError
from localprocesses.local import LocalProcessError
from localprovider.runner.addresses import Here
from localprovider.runner.commands import PROGRAMS, NotBuilt, Program, config_file, without_pods
from localprovider.runner.conditions import GOOD, condition
from localprovider.runner.flags import variables, without_effect
from localprovider.runner.pods import ROOT, Pod, Pods, Standing
from localprovider.runner.probes import probe_of
from localprovider.runner.volumes import File, MissingSource, Refused, files, mounts

SIMULATED = "local.provider/simulated"
"""Annotation of Deployments that are reported as ready without a process of the runner."""
_MISSING_SECONDS = 1.0
_LONGEST = 1000
"""Characters about parts without effect in a message."""
_ROLLED_OUT = "NewReplicaSetAvailable"
_SERVICES = {APISERVER: APISERVER, **{f"{each}-client": f"{each}-client" for each in ("etcd-main", "etcd-events")}}
"""Service -> name of its local port. Local processes use no other Services."""


@dataclass(eq=False, kw_only=True, slots=True)
class DeploymentReconciler:
    client: Client
    pods: Pods
    deployments: Store[Object]
    secrets: Store[Object]
    config_maps: Store[Object]
    statuses: StatusWriter
    runs: Callable[[str], Collection[str]]
    """Names of Deployments of a namespace that are local programs."""
    is_simulated: Callable[[str], bool]
    """Whether other Deployments of a namespace are reported as ready."""
    is_of_extension: Callable[[str], bool]
    """Whether Deployments of a namespace are extensions, whose programs the user starts."""
    seed_kubeconfig: Path
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        deployment = self.deployments.get(name)
        if name.name not in self.runs(name.namespace):
            if deployment is None or is_deleting(deployment):
                return Done()
            if self.is_simulated(name.namespace):
                return await self._simulate(deployment)
            if self.is_of_extension(name.namespace):
                await self._report(deployment, Standing(not_run(deployment), 0.0))
            return Done()
        if deployment is None or is_deleting(deployment):
            await self.pods.stop(name.namespace, name.name)
            self.pods.places.forget_pod(name.namespace, name.name)
            return Done()
        if not integer(spec(deployment).get("replicas")):
            await self.pods.stop(name.namespace, name.name)
            await self._report(deployment, Standing("", 0.0))
            return Done()
        program = PROGRAMS[name.name]
        ignored = without_effect(_template(deployment), program.variables)
        try:
            standing = await self.pods.run(self._pod(deployment, program))
        except MissingSource as error:
            standing = Standing(str(error), _MISSING_SECONDS)
        except NotBuilt as error:
            standing = await self.pods.build(error.release)
        except (LocalProcessError, OSError, OutsideError, Refused) as error:
            await self._report(deployment, Standing(str(error), _MISSING_SECONDS), ignored)
            raise ReconcileError(str(error)) from error
        await self._report(deployment, standing, ignored)
        if standing.lacks_port and not program.is_called:
            self.pods.places.forget_ports(name.namespace, *program.servers)
            return RequeueAfter(0.0)
        return RequeueAfter(standing.wait)

    async def _simulate(self, deployment: Object) -> Result:
        if integer(spec(deployment).get("replicas")) and SIMULATED not in annotations(deployment):
            await self.client.annotate(DEPLOYMENTS, key(deployment), {SIMULATED: "true"})
        await self._report(deployment, Standing("", 0.0))
        return Done()

    # --- the process

    def _pod(self, deployment: Object, program: Program) -> Pod:
        """Return the pod of a Deployment.

        Raises:
            MissingSource: a Secret or ConfigMap does not exist yet.
            NotBuilt: its programs have to be built first.
            LocalProcessError: a program is not available, or there are too many namespaces.
            OutsideError: a name or path is not accepted.
            Refused: the Deployment has unsupported parts.
        """
        name, template = key(deployment), _template(deployment)
        container = next(iter(mappings(template.get("containers"))), {})
        places = self.pods.places
        ports = {each: places.port(name.namespace, each) for each in (*program.servers, *_SERVICES.values())}
        root = places.of_pod(name.namespace, name.name) / ROOT
        services = {service: ports[each] for service, each in _SERVICES.items()}
        here = Here(root, tuple(mounts(container).values()), name.namespace, services)
        found = files(template, container, partial(self._source, name.namespace))
        command, found = prepared(program, container, here, found, ports, seed_kubeconfig=self.seed_kubeconfig)
        is_seed = name.name == CONTROLLER_MANAGER and places.is_seed(name.namespace)
        return Pod(
            namespace=name.namespace,
            name=name.name,
            here=here,
            command=without_pods(command) if is_seed else command,
            environment=variables(container, program.variables, here),
            files=found,
            probe=probe_of(container, ports[program.servers[0]]),
            # A token next to the kubeconfig is replaced periodically.
            reads=(*program.reads, *([self.seed_kubeconfig.parent] if program.config is not None else [])),
        )

    def _source(self, namespace: str, resource: Resource, name: str) -> Object | None:
        return (self.secrets if resource == SECRETS else self.config_maps).get(Key(namespace, name))

    # --- status

    async def _report(self, deployment: Object, standing: Standing, ignored: Sequence[str] = ()) -> None:
        """Write the status. Args: ignored: parts of the pod that have no effect."""
        limits = f"; without effect on this computer: {', '.join(ignored)}"[:_LONGEST] if ignored else ""
        problem, good = (f"{each}{limits}" for each in (standing.problem, GOOD))
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
                condition(
                    deployment, "Available", is_true=not standing.problem, reported=problem, now=moment, good=good
                ),
                condition(deployment, "Progressing", is_true=True, reported="", now=moment, reason=_ROLLED_OUT),
            ],
        }
        await self.statuses.write(deployment, status)


def _template(deployment: Object) -> Object:
    return mapping_at(spec(deployment), "template", "spec")


def not_run(deployment: Object) -> str:
    """Problem of an extension's Deployment; empty once the user has declared its program as running."""
    if annotations(deployment).get(SIMULATED) == "true" or not integer(spec(deployment).get("replicas")):
        return ""
    containers = mappings(_template(deployment).get("containers"))
    images, name = ", ".join(text(each.get("image")) for each in containers), key(deployment)
    return (
        f"no pods run on this seed: start the program of {images} yourself, with the flags in its manifest, then: "
        f"kubectl annotate deployment {name.name} -n {name.namespace} --overwrite {SIMULATED}=true"
    )


def prepared(
    program: Program,
    container: Object,
    here: Here,
    found: Sequence[File],
    ports: Mapping[str, int],
    *,
    seed_kubeconfig: Path,
) -> tuple[list[str], list[File]]:
    """Return the command of a program, and its files, with local paths; `found` are the files of the container.

    Raises:
        LocalProcessError: the program is not available.
        Refused: such as for a file that would run a command, or lead to another file of the host.
    """
    given = {str(here.path(each.path)): each for each in found}
    # Checked as the process reads them: only recognized paths in a text are below the root.
    contents = {path: here.content(each.content) for path, each in given.items()}
    command = program.call(container, here, ports)
    if program.config is None:
        arguments = (*texts(container.get("command")), *texts(container.get("args")))
        try:
            check_mounted([here.text(each) for each in arguments], contents)
        except UnusableFile as error:
            raise Refused(str(error)) from error
    else:
        path = config_file(command)
        if path not in given:
            raise Refused(f"{path} of its configuration is not mounted")
        config = program.config.read(given[path].content, here=here, files=contents)
        contents[path] = program.config.served(config, ports=ports, seed_kubeconfig=seed_kubeconfig)
    return command, [File(each.path, contents[path], each.is_fixed) for path, each in given.items()]
