"""One operation on a Shoot: inputs and clients of its tasks, fixed before the first task starts.

The desired state follows from the Shoot's spec and the operation, never from live objects: a repeated operation ends in
the same state as the first one.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.extension_objects.objects import Asked, ExtensionObjects
from agent.gardenlet.common.secrets_manager import GeneratedSecrets, SecretsManager
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.common.shoot_states.rules.contents import left_for
from agent.gardenlet.shoot.main.rules.domains import Served
from agent.gardenlet.shoot.main.rules.status import is_hibernated
from components.control_plane import Running
from components.gateways import Gateway, nearest
from components.inputs import Inputs
from components.results import NAMESPACE, Results
from config.gardenlet.schema import RESOURCE_MANAGER, GardenletConfiguration, Images
from gardener import keys, operations
from gardener.api.extensions import ALL_EXTENSIONS
from gardener.api.garden import SHOOTS
from gardener.garden.rotations import phase as phase_of
from gardener.garden.shoots import workers
from kube.clock import format_time
from kube.objects import (
    Key,
    Object,
    annotations,
    is_deleting,
    is_truthy,
    key,
    metadata,
    resource_version,
    spec,
    text,
    uid,
)
from kube.paths import at
from kube.resources import NAMESPACES, Resource
from kube.runtime.client import Client
from kube.runtime.controller import TerminalError
from kube.runtime.edits import edit
from kube.runtime.status import StatusWriter
from kube.runtime.waiting import Waiting
from process.clusters import Cluster
from process.configuration.fields import as_object

LEAVING_CONTROL_PLANE = "control-plane"
"""Value of `keys.SHOOT_LEAVING`: the deletion has reached the ControlPlane, after all that may need it."""


def running_after(shoot: Object, kind: str) -> Running:
    """Desired running state after an operation. Args: kind: of operation."""
    if kind in {operations.DELETE, operations.MIGRATE}:
        return Running.LEAVING
    return Running.ASLEEP if is_hibernated(shoot) else Running.AWAKE


def _tasks(shoot: Object) -> list[str]:
    return [each for each in annotations(shoot).get(keys.TASKS, "").split(",") if each]


async def forget_task(garden: Client, shoot: Object, task: str) -> None:
    """Remove a task from the annotation, unless the spec is newer."""

    def without(live: Object) -> Object | None:
        if metadata(live)["generation"] != metadata(shoot)["generation"] or task not in _tasks(live):
            return None
        left = ",".join(each for each in _tasks(live) if each != task)
        return {"metadata": {"annotations": {keys.TASKS: left or None}}}

    await edit(garden, SHOOTS, await garden.get(SHOOTS, key(shoot)), without)


@dataclass(slots=True)
class _Searches:
    """Searches in the namespace; those in a new one send no request."""

    has_new_namespace: bool = False
    done: set[tuple[Resource, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Images:
    """Images from the configuration."""

    configured: Images

    def of(self, name: str, /) -> str:
        """Return a configured image.

        Raises:
            TerminalError: it is not configured.
        """
        is_manager = name == RESOURCE_MANAGER
        image = self.configured.resource_manager if is_manager else self.configured.workers.get(name)
        if not image:
            field = "resourceManager" if is_manager else f"workers[{name}]"
            raise TerminalError(f"images.{field} is not set in the configuration of the gardenlet; set it")
        return image

    def of_kubernetes(self, program: str, version: str, /) -> str:
        where = self.configured.programs.get(program) or "/".join(filter(None, (self.configured.kubernetes, program)))
        return f"{where}:v{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootOperation:
    """Attributes:
    kind: of operation, see `gardener.operations`.
    seed_object: the Seed.
    technical_id: name of the Shoot's namespace in the seed.
    garden_identity: of the garden cluster.
    external: None if the gardenlet creates no records in the Shoot's own domain.
    gateway: ingress gateway in front of the API server, in any zone; None if the seed
        has none, or the Shoot leaves and it is no longer known.
    profile: its CloudProfile.
    registrations: ControllerRegistrations by name.
    autoscaled: whether there are VerticalPodAutoscalers in the seed.
    namespace_lives: whether it exists, and is not being deleted.
    cleans_up: whether the Shoot is deleted or leaves, and its cluster has to be cleaned first.
    leaving: part of its deletion or migration that an earlier attempt had begun, see `keys.SHOOT_LEAVING`.
    copies_backups: whether they are in the bucket of another Seed.
    state: `spec` of the ShootState that the Shoot has brought from another Seed.
    results: of its tasks; at the start, the Cluster object, if it was written.
    """

    config: GardenletConfiguration
    kind: str
    running: Running
    shoot: Object
    seed_object: Object
    technical_id: str
    garden_identity: str
    internal: Served
    external: Served | None
    gateway: Gateway | None
    profile: Object
    registrations: Mapping[str, Object]
    autoscaled: bool
    namespace_lives: bool
    cleans_up: bool
    leaving: str
    copies_backups: bool
    state: Object
    seed: Cluster
    garden: Cluster
    objects: ComponentObjects
    extensions: ExtensionObjects
    waiting: Waiting
    garden_waiting: Waiting
    keys: SecretsManager
    statuses: StatusWriter
    shoots: ShootClusters
    results: Results = field(default_factory=Results)
    _editing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _requested: dict[tuple[Resource, Key], Asked] = field(default_factory=dict)
    _searches: _Searches = field(default_factory=_Searches)
    _written: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def name(self) -> Key:
        """Namespace and name of the Shoot."""
        return key(self.shoot)

    @property
    def is_asleep(self) -> bool:
        return self.running is Running.ASLEEP

    @property
    def is_going(self) -> bool:
        """Whether the Shoot is being deleted, so that it needs nothing that only a creation needs."""
        return is_deleting(self.shoot)

    @property
    def is_restored(self) -> bool:
        """Whether the Shoot comes from another Seed."""
        return self.kind == operations.RESTORE

    @property
    def is_workerless(self) -> bool:
        return not workers(spec(self.shoot))

    @property
    def is_monitored(self) -> bool:
        """Whether Shoot monitoring may be deployed."""
        return self.config.monitoring.shoot.enabled and spec(self.shoot).get("purpose") != "testing"

    @property
    def nearest_gateway(self) -> Gateway | None:
        """Gateway in the zones of the control plane, once these are known."""
        if self.gateway is None:
            return None
        return nearest(self.gateway, self.config, seed=self.seed_object, zones=self.results[NAMESPACE].zones)

    @property
    def has_backup(self) -> bool:
        return bool(spec(self.seed_object).get("backup"))

    @property
    def skips_waiting(self) -> bool:
        """Whether the user requested to skip waiting for readiness; ignored while the Shoot is deleted or leaves."""
        return self.running is not Running.LEAVING and is_truthy(annotations(self.shoot).get(keys.SHOOT_SKIP_READINESS))

    def is_in(self, phase: str, what: str) -> bool:
        """Whether a rotation is in a phase, see `gardener.garden.rotations`."""
        return phase_of(self.shoot, what) == phase

    def inputs(self, live: Mapping[str, Sequence[Object]] | None = None) -> Inputs:
        """Current inputs of components. Args: live: objects that a component reads, by name."""
        return Inputs(
            shoot=self.shoot,
            seed=self.seed_object,
            profile=self.profile,
            namespace=self.technical_id,
            host=self.internal.host,
            running=self.running,
            autoscaled=self.autoscaled,
            images=_Images(self.config.images),
            secrets=GeneratedSecrets(self.keys),
            garden_identity=self.garden_identity,
            patience=as_object(self.config.node_toleration),
            omitted=self.config.omit.shoots,
            mutates_pods=not self.config.omit.pod_webhooks,
            results=self.results,
            tasks=_tasks(self.shoot),
            now=format_time(self.seed.clock()),
            live=live or {},
        )

    # --- tasks requested by an annotation of the Shoot

    def is_asked(self, task: str) -> bool:
        return task in _tasks(self.shoot)

    async def task_done(self, task: str) -> None:
        """Remove a completed task from the annotation, unless the spec is newer."""
        if not self.is_asked(task):
            return
        async with self._editing:
            await forget_task(self.garden.client, self.shoot, task)

    async def waiting_skipped(self) -> None:
        """Remove the annotation that skips waiting; it applies to one operation."""
        if keys.SHOOT_SKIP_READINESS in annotations(self.shoot):
            done = {keys.SHOOT_SKIP_READINESS: None}
            await self.garden.client.annotate(SHOOTS, self.name, done, uid=uid(self.shoot))

    async def record_leaving(self, part: str) -> None:
        """Record a part of the deletion or migration that begins, for later attempts. Raises KubeError."""
        if self.namespace_lives:
            await self.seed.client.annotate(NAMESPACES, self.technical_id, {keys.SHOOT_LEAVING: part})

    # --- components

    async def deploy(self, component: str, objects: list[Object]) -> None:
        """Replace the objects of a component. Raises ComponentError, KubeError."""
        for each in await self.objects.deploy(f"{self.technical_id}/{component}", objects):
            self._written[each["kind"], key(each).name] = resource_version(each)

    def written(self, resource: Resource, name: str) -> int:
        """The resourceVersion of a component's object as written by this operation; 0 if it was not."""
        return self._written.get((resource.kind, name), 0)

    @property
    def has_changed(self) -> bool:
        """Whether this operation has written objects of components, or requested anything new of extensions."""
        return bool(self._written) or any(each.is_new for each in self._requested.values())

    async def destroy(self, component: str, objects: Collection[Object], *, seconds: float) -> None:
        """Remove all objects of a component. Args: objects: define the kinds. Raises ComponentError, KubeError."""
        await self.objects.destroy(f"{self.technical_id}/{component}", objects, seconds=seconds)

    def expect_none(self) -> None:
        """The operation has just created the namespace."""
        self._searches.has_new_namespace = True
        self.keys.expect_none_of_others()
        self.shoots.expect_none(self.technical_id)

    @property
    def has_new_namespace(self) -> bool:
        """Whether the namespace was empty before the operation."""
        return self._searches.has_new_namespace

    async def find(self, resource: Resource, name: str) -> Object | None:
        """Find an object in the namespace; the first search in a new namespace makes no request."""
        if self._can_be_new(resource, name):
            return None
        return await self.seed.client.find(resource, Key(self.technical_id, name))

    def _can_be_new(self, resource: Resource, name: str) -> bool:
        """Whether nothing can exist: in a new namespace, only a failed attempt may have created the object."""
        is_first = (resource, name) not in self._searches.done
        self._searches.done.add((resource, name))
        return self.has_new_namespace and is_first

    # --- extension objects

    async def ask(self, kind: Kind, manifest: Object, *, is_demanded: bool = False, live: Object | None = None) -> None:
        """Write the object, and request its reconciliation if it has changed or `is_demanded` is set.

        Extensions of a restored Shoot continue with the state from the previous Seed.

        Args: live: the object as just read; None: it is read. Raises: ReconcileError, ExtensionError, KubeError.
        """
        if self.is_restored and kind.resource in ALL_EXTENSIONS:
            requested = await self.extensions.restore(kind, manifest, left_for(self.state, manifest), live=live)
        else:
            is_absent = live is None and self._can_be_new(kind.resource, f"requested {key(manifest).name}")
            requested = await self.extensions.deploy(
                kind, manifest, is_demanded=is_demanded, live=live, is_absent=is_absent
            )
        self._requested[kind.resource, requested.name] = requested

    async def until_answered(self, kind: Kind, name: Key) -> Object:
        """Return the object once its extension has responded to the request of this operation.

        Raises: ExtensionError, KubeError.
        """
        return await self.extensions.wait(self._requested.get((kind.resource, name)) or Asked(kind, name, ""))

    # --- the Shoot's own cluster

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """Connect to the Shoot's cluster.

        Raises:
            NoConnectionError: there is no connection to the Shoot.
        """
        version = text(at(spec(self.shoot), "kubernetes", "version"))
        async with self.shoots.use(self.technical_id, version=version) as cluster:
            yield cluster
