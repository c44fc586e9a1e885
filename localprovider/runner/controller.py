"""The runner: control loops for objects in Shoots' namespaces, and the supervisor of their processes.

Services            in Shoots' namespaces
Deployments, Etcds  created, changed or deleted
Secrets             changed: a Deployment of their namespace may mount them
Namespaces          of Shoots on this provider, and their deletion
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import aiohttp

from gardener import keys
from gardener.api.druid import ETCD_COPY_BACKUPS_TASKS, ETCDS
from gardener.network_policies import GARDEN_NAMESPACE
from kube.objects import Key, Object, key, resource_version
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.client import Form
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, annotation, any_of, came, changed, exists, listed, went
from kube.runtime.status import StatusWriter
from localprocesses.confined import Confined
from localprovider.runner.backups import ASKED, Backups
from localprovider.runner.commands import GARDENLET, OF_SHOOTS
from localprovider.runner.copies import CopyReconciler
from localprovider.runner.deployments import SIMULATED, DeploymentReconciler
from localprovider.runner.etcds import EtcdReconciler
from localprovider.runner.namespaces import NamespaceReconciler
from localprovider.runner.places import MOST_SHOOTS, Places
from localprovider.runner.pods import Pods
from localprovider.runner.processes import Processes
from localprovider.runner.services import ServiceReconciler
from localprovider.runner.sidecars import Sidecars
from process.clusters import Cluster

_PROVIDER = "seed.gardener.cloud/provider"
_BY_NAMESPACE = "namespace"
_NAMESPACES_VIEW = View(
    NAMESPACES,
    resource_version,
    form=Form.METADATA,
    label_selector=f"{keys.ROLE}={keys.ROLE_SHOOT},{_PROVIDER}=local",
)
_EXTENSIONS_VIEW = View(
    NAMESPACES, resource_version, form=Form.METADATA, label_selector=f"{keys.ROLE}={keys.ROLE_EXTENSION}"
)
DEPLOYMENTS_VIEW = View(
    DEPLOYMENTS, without_managed_fields, indexes=((_BY_NAMESPACE, lambda obj: (key(obj).namespace,)),)
)
_SECRETS_VIEW, _CONFIG_MAPS_VIEW = View(SECRETS, without_managed_fields), View(CONFIG_MAPS, without_managed_fields)
ASKS: Predicate[Object] = any_of(listed, changed("metadata.generation", "metadata.deletionTimestamp"))
_WORKERS = 10
_MOST_IN_A_SHOOT = 12
"""Maximum number of namespaces with processes in a seed that is a Shoot: those of Shoots, and `garden`."""


class Runner:
    """Holds the processes while this program runs; a component in the sense of `process.runner`.

    Args:
        directory: directory of the local state.
        seed_kubeconfig: kubeconfig of the seed for programs.
        buckets: directory of the backup buckets.
        recorder: recorder of Events in the seed.
        is_shoot: whether the seed is a Shoot: nothing else runs its pods, and its owner may write anything in it.
    """

    name = "runner"

    def __init__(
        self,
        seed: Cluster,
        directory: Path,
        *,
        seed_kubeconfig: Path,
        buckets: Confined,
        recorder: EventRecorder,
        is_shoot: bool = False,
    ) -> None:
        self._seed, self._seed_kubeconfig, self._buckets = seed, seed_kubeconfig, buckets
        self._recorder, self._is_shoot = recorder, is_shoot
        self._places = Places(directory / "shoots", most=_MOST_IN_A_SHOOT if is_shoot else MOST_SHOOTS)
        self._processes = Processes(directory / "run", now=time.monotonic)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        await self._processes.begin()
        self._session = aiohttp.ClientSession()

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        if self._session is not None:
            await self._session.close()
            await self._processes.end()

    def pods(self) -> Pods:
        """Return the pods, only after the start."""
        assert self._session is not None
        return Pods(self._places, self._processes, self._session)

    def control_loops(self) -> Sequence[ControlLoop]:
        """Return the control loops, only after the start."""
        pods = self.pods()
        of_etcds = [self._etcds(pods, self._backups()), self._copies()]
        return [self._services(), self._deployments(pods), *of_etcds, self._namespaces(pods)]

    def _services(self) -> ControlLoop:
        loop, caches = ControlLoop("local-services", kind=SERVICES, workers=_WORKERS), self._seed.caches
        services = loop.watch(caches, View(SERVICES, without_managed_fields), enqueue(when=exists))
        return loop.reconciled_by(
            ServiceReconciler(
                places=self._places,
                services=services,
                statuses=StatusWriter(self._seed.client, services),
                is_of_shoot=self._shoots(loop),
            )
        )

    def _deployments(self, pods: Pods) -> ControlLoop:
        loop, caches = ControlLoop("local-deployments", kind=DEPLOYMENTS, workers=_WORKERS), self._seed.caches
        pods = replace(pods, ended=loop.queue.add)
        asks = any_of(ASKS, changed(annotation(SIMULATED)))
        deployments = loop.watch(caches, DEPLOYMENTS_VIEW, enqueue(when=asks))

        def in_extension(change: Change[int]) -> list[Key]:
            return deployments.keys_by_index(_BY_NAMESPACE, change.key.name)

        extensions = loop.watch(caches, _EXTENSIONS_VIEW, enqueue_mapped(in_extension, when=came))
        of_namespace, is_of_shoot = partial(_in_namespace, deployments), self._shoots(loop)

        def runs(namespace: str) -> Collection[str]:
            return OF_SHOOTS if is_of_shoot(namespace) else self._runs_beside.get(namespace, ())

        return loop.reconciled_by(
            DeploymentReconciler(
                client=self._seed.client,
                pods=pods,
                deployments=deployments,
                secrets=loop.watch(caches, _SECRETS_VIEW, enqueue_mapped(of_namespace, when=changed("data"))),
                config_maps=loop.watch(caches, _CONFIG_MAPS_VIEW),
                statuses=StatusWriter(self._seed.client, deployments),
                runs=runs,
                is_simulated=(lambda _: True) if self._is_shoot else is_of_shoot,
                is_of_extension=lambda name: extensions.get(Key("", name)) is not None,
                seed_kubeconfig=self._seed_kubeconfig,
                clock=self._seed.clock,
            )
        )

    @property
    def _runs_beside(self) -> Mapping[str, Collection[str]]:
        """Names of Deployments that are local programs, by namespace that does not belong to a Shoot."""
        return {GARDEN_NAMESPACE: (GARDENLET,)} if self._is_shoot else {}

    def _backups(self) -> Backups:
        return Backups(recorder=self._recorder, buckets=self._buckets, clock=self._seed.clock)

    def _etcds(self, pods: Pods, backups: Backups) -> ControlLoop:
        loop, sidecars = ControlLoop("local-etcds", kind=ETCDS, workers=_WORKERS), Sidecars()
        loop.on_close(sidecars.close)
        pods = replace(pods, ended=loop.queue.add)
        reconciler = EtcdReconciler(
            client=self._seed.client,
            pods=pods,
            secrets=loop.watch(self._seed.caches, _SECRETS_VIEW),
            backups=backups,
            sidecars=sidecars,
            is_of_shoot=self._shoots(loop),
            clock=self._seed.clock,
        )

        def follow() -> None:
            asks = any_of(ASKS, changed(annotation(keys.OPERATION), annotation(ASKED)))
            reconciler.begin(loop.watch(self._seed.caches, View(ETCDS, without_managed_fields), enqueue(when=asks)))

        loop.when_served(self._seed.discovery, [ETCDS], follow)
        return loop.reconciled_by(reconciler)

    def _copies(self) -> ControlLoop:
        kind = ETCD_COPY_BACKUPS_TASKS
        loop = ControlLoop("local-etcd-copies", kind=kind, workers=_WORKERS)
        reconciler = CopyReconciler(
            client=self._seed.client, buckets=self._buckets, is_of_shoot=self._shoots(loop), clock=self._seed.clock
        )

        def follow() -> None:
            reconciler.begin(loop.watch(self._seed.caches, View(kind, without_managed_fields), enqueue(when=ASKS)))

        loop.when_served(self._seed.discovery, [kind], follow)
        return loop.reconciled_by(reconciler)

    def _namespaces(self, pods: Pods) -> ControlLoop:
        left = [Key("", each) for each in self._places.namespaces()]
        loop = ControlLoop("local-namespaces", kind=NAMESPACES, initial_keys=left)
        loop.watch(self._seed.caches, _NAMESPACES_VIEW, enqueue(when=went))
        return loop.reconciled_by(NamespaceReconciler(client=self._seed.client, pods=pods))

    def _shoots(self, loop: ControlLoop) -> Callable[[str], bool]:
        """Whether a namespace belongs to a Shoot, or did before its deletion."""
        namespaces = loop.watch(self._seed.caches, _NAMESPACES_VIEW)
        return lambda name: namespaces.get(Key("", name)) is not None or name in self._places.namespaces()


def _in_namespace(deployments: Store[Object], change: Change[Object]) -> list[Key]:
    return deployments.keys_by_index(_BY_NAMESPACE, change.key.namespace)
