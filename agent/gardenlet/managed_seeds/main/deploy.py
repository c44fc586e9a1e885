"""Deployment of a ManagedSeed's gardenlet in the cluster of its Shoot; or of its Seed, if it has a template."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.gardenlet.common.image_overwrites import image_of
from agent.gardenlet.common.shoot_clusters import NoConnectionError
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.credentials import Owner
from agent.gardenlet.managed_seeds.installation.installation import Installer, Wanted
from agent.gardenlet.managed_seeds.installation.own_chart import archive
from agent.gardenlet.managed_seeds.installation.rules.rollout import image_of_container
from agent.gardenlet.managed_seeds.installation.target import NAME, NAMESPACE, Admit, Remembered, Target
from agent.gardenlet.managed_seeds.main.register import controller_reference, register
from agent.gardenlet.managed_seeds.main.rules import gardenlet as rules
from agent.gardenlet.managed_seeds.main.rules.timing import is_renewing
from config.gardenlet import COMPONENT
from gardener.api.garden import CREDENTIALS_BINDINGS, MANAGED_SEEDS, SECRET_BINDINGS, SEEDS
from kube.errors import NotFound
from kube.objects import Key, Object, controller_of, key, mapping, metadata, text, uid
from kube.paths import at
from kube.resources import DEPLOYMENTS, NAMESPACES, SECRETS, Resource
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from process.clusters import Cluster
from process.configuration.fields import as_document

_PROGRAM = "resource-manager"
"""Program whose image is used where a gardenlet runs without one, as a process."""
_AUTOSCALER = "vpa-admission-controller"
_BINDINGS: Mapping[str, Resource] = {each.kind: each for each in (SECRET_BINDINGS, CREDENTIALS_BINDINGS)}

Say = Callable[[str], None]
"""Reports a step."""


@dataclass(eq=False, slots=True, kw_only=True)
class Deployer:
    context: Context
    installer: Installer
    remembered: Remembered

    def target(self, shoot: Object, cluster: Cluster) -> Target:
        return Target(
            client=cluster.client,
            discovery=cluster.discovery,
            cluster=namespace_of(shoot),
            remembered=self.remembered,
        )

    async def deploy(self, managed_seed: Object, shoot: Object, *, admit: Admit, say: Say) -> Object | None:
        """Deploy the gardenlet; return its Deployment, None if there is none.

        Raises:
            NotAdmitted: the Deployment must wait for others.
            ReconcileError: it can't be deployed.
        """
        config = self._configuration(managed_seed) if rules.template_of(managed_seed) is None else {}
        try:
            async with self.context.shoot_clusters.use(namespace_of(shoot)) as cluster:
                return await self._deploy(managed_seed, shoot, config, cluster, admit=admit, say=say)
        except NoConnectionError as error:
            raise ReconcileError(no_connection(shoot, error)) from error

    def _configuration(self, managed_seed: Object) -> Object:
        """Configuration of the gardenlet.

        Raises:
            ReconcileError: it is invalid.
        """
        try:
            config = rules.configuration(managed_seed, parent=self._parent())
            rules.demand_way_in(managed_seed, config)
        except rules.Undeployable as error:
            raise ReconcileError(str(error)) from error
        return config

    async def _deploy(
        self, managed_seed: Object, shoot: Object, config: Object, cluster: Cluster, *, admit: Admit, say: Say
    ) -> Object | None:
        await self._demand_one_autoscaler(managed_seed, shoot)
        say("Ensuring garden namespace in target cluster")
        await ensure_namespace(cluster.client)
        say("Reconciling seed secrets")
        backup = await self._backup(managed_seed, shoot)
        if (template := rules.template_of(managed_seed)) is not None:
            say(f"Registering seed {key(managed_seed).name}")
            await register(self.context.garden.client, managed_seed, template)
            return None
        say("Deploying gardenlet into target cluster")
        target = self.target(shoot, cluster)
        await self._demand_same_seed(managed_seed, target)
        image = await self._image()
        wanted = Wanted(
            archive=archive(),
            deployment=rules.deployment(
                managed_seed, shoot, image=image_of(image), others=self.context.overwrites.values, backup=backup
            ),
            config=config,
            owner=Owner(kind=MANAGED_SEEDS, key=key(managed_seed), way=rules.way_of(managed_seed)),
            seed=await self.context.garden.client.find(SEEDS, key(managed_seed).name),
            renews=is_renewing(managed_seed),
            renewing=lambda: say("Renewing gardenlet kubeconfig secret due to operation annotation"),
            image=image,
        )
        await target.apply(await self.installer.objects(wanted, target), admit=admit)
        return await target.deployment()

    def _parent(self) -> Object:
        identity = {"apiVersion": COMPONENT.api_version, "kind": COMPONENT.kind}
        return {**identity, **as_document(self.context.config)}

    async def _image(self) -> str:
        """Image of this gardenlet, or a substitute."""
        own = await self.context.seed.client.find(DEPLOYMENTS, Key(NAMESPACE, NAME))
        found = image_of_container(own, NAME) if own is not None else ""
        return found or self.context.config.images.resource_manager or f"{_PROGRAM}:{self._version}"

    @property
    def _version(self) -> str:
        return text(self.context.gardener.get("version"))

    async def _demand_one_autoscaler(self, managed_seed: Object, shoot: Object) -> None:
        if not rules.has_own_autoscaler(managed_seed):
            return
        seed = self.context.seed.client
        if await seed.find(DEPLOYMENTS, Key(namespace_of(shoot), _AUTOSCALER)) is not None:
            raise ReconcileError(
                "runtime VPA is enabled but target cluster already has a VPA: in the spec of the Seed, set settings."
                "verticalPodAutoscaler.enabled to false"
            )

    async def _demand_same_seed(self, managed_seed: Object, target: Target) -> None:
        """Refuse to overwrite the gardenlet of another Seed."""
        owner = await target.seed_name()
        if owner not in ("", key(managed_seed).name):
            raise ReconcileError(
                f'the cluster already has the gardenlet of seed "{owner}", so it cannot become seed '
                f'"{key(managed_seed).name}"; if the other seed no longer exists, delete the Deployment '
                f"{NAMESPACE}/{NAME} in the cluster"
            )

    async def _backup(self, managed_seed: Object, shoot: Object) -> Object | None:
        """Secret with credentials for backups: generated from those of the Shoot, unless it has another owner."""
        reference = rules.backup_reference(managed_seed)
        try:
            binding = rules.binding_of(shoot)
        except rules.Undeployable as error:
            raise ReconcileError(str(error)) from error
        if reference is None:
            return None
        garden = self.context.garden.client
        name, namespace = text(reference.get("name")), text(reference.get("namespace"))
        live = await garden.find(SECRETS, Key(namespace, name))
        if live is not None and not is_owned(live, managed_seed):
            return live
        data = await self._infrastructure(shoot, binding)
        if live is not None:
            if mapping(live.get("data")) == data:
                return live
            return await garden.replace(SECRETS, {**live, "data": data})
        meta = {"name": name, "namespace": namespace, "ownerReferences": [controller_reference(managed_seed)]}
        return await garden.create(SECRETS, {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": data})

    async def _infrastructure(self, shoot: Object, binding: tuple[str, str, str]) -> Object:
        """Data of the Secret with the credentials of the Shoot.

        Raises:
            ReconcileError: there is no such Secret.
        """
        garden, (kind, name, field) = self.context.garden.client, binding
        try:
            found = await garden.get(_BINDINGS[kind], Key(key(shoot).namespace, name))
            where = mapping(found.get(field))
            if text(where.get("kind")) not in ("", SECRETS.kind):
                raise ReconcileError(
                    f"no credentials for backups: {kind} {name} of the Shoot refers to a {where['kind']} instead of a "
                    f"Secret; create the Secret that backup.secretRef of the Seed names"
                )
            secret = await garden.get(SECRETS, Key(text(where.get("namespace")), text(where.get("name"))))
        except NotFound as error:
            raise ReconcileError(f"no credentials for backups: {error}") from error
        return mapping(secret.get("data"))


def namespace_of(shoot: Object) -> str:
    """Namespace of the Shoot's control plane in this seed."""
    return text(at(shoot, "status", "technicalID"))


def no_connection(shoot: Object, error: NoConnectionError) -> str:
    reason = 'Secret "gardener" not found' if isinstance(error.__cause__, NotFound) else str(error)
    return f'error creating new ClientSet for key "{key(shoot)}": {reason}'


def is_owned(secret: Object, managed_seed: Object) -> bool:
    return mapping(controller_of(secret)).get("uid") == uid(managed_seed)


async def ensure_namespace(client: Client) -> None:
    """Create the garden namespace unless it exists.

    Raises:
        ReconcileError: a previous one is being deleted.
    """
    live = await client.find(NAMESPACES, NAMESPACE)
    if live is None:
        await client.create_if_missing(NAMESPACES, {**NAMESPACES.type_meta, "metadata": {"name": NAMESPACE}})
    elif metadata(live).get("deletionTimestamp"):
        raise ReconcileError(f"the namespace {NAMESPACE} of a former seed is still being deleted in the target cluster")
