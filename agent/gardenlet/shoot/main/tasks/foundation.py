"""Foundations of a Shoot: namespace, identity, Secrets, and referenced resources."""

import asyncio
import random
from collections.abc import Iterable
from ipaddress import ip_network

from agent.gardenlet.common.secrets_manager import UseOfOld
from agent.gardenlet.flow.graph import Task
from agent.gardenlet.flow.unit import Unit
from agent.gardenlet.shoot.main import cluster_objects
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import CLUSTER
from agent.gardenlet.shoot.main.rules import rotation as rules
from agent.gardenlet.shoot.main.rules.extensions import wanted
from agent.gardenlet.shoot.main.tasks.components import known
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import kube_apiserver, referenced_resources, registry, shoot_namespace
from components.control_plane import etcd_members
from components.results import NAMESPACE as ITS_NAMESPACE
from components.results import Namespace
from components.secrets import persisted, published, tables
from components.secrets.configs import Config
from components.secrets.rotation import Old
from components.secrets.shoot_rotation import rotations
from components.secrets.stored import Stored
from components.secrets.tables import ControlPlane
from gardener import operations
from gardener.api.garden import INTERNAL_SECRETS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.rotations import AUTHORITIES, COMPLETING
from gardener.garden.shoots import has_ssh, references
from kube.apply.shared_objects import ensure
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, key, labels, mapping, metadata, spec, text, uid
from kube.paths import at, mappings_at
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, VOLUME_CLAIMS, VOLUMES, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError

_ZONE = "topology.kubernetes.io/zone"
_GONE_SECONDS = 300.0


async def namespace(operation: ShootOperation) -> Namespace:
    """Create or update the namespace.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
    """
    client = operation.seed.client
    live = await client.find(NAMESPACES, operation.technical_id)
    zones = shoot_namespace.zones_of(
        operation.shoot,
        operation.seed_object,
        live=live,
        volumes=await _zones_of_volumes(operation) if live else (),
        choose=random.choice,
    )
    values = shoot_namespace.Values(
        name=operation.technical_id,
        shoot=operation.shoot,
        seed=operation.seed_object,
        zones=zones,
        extensions=wanted(operation.shoot, operation.registrations.values()),
    )
    made = await ensure(client, NAMESPACES, shoot_namespace.manifest(values), live=live, is_absent=live is None)
    if live is None:
        operation.expect_none()
    return Namespace(uid(made), zones)


async def _zones_of_volumes(operation: ShootOperation) -> list[str]:
    """Zones of the volumes in the namespace."""
    client = operation.seed.client
    claims = await client.list(VOLUME_CLAIMS, Selection(namespace=operation.technical_id))
    names = [text(spec(each).get("volumeName")) for each in claims]
    found = [await client.find(VOLUMES, name) for name in names if name]
    return [zone for volume in found if volume is not None for zone in _zones_of(volume)]


def _zones_of(volume: Object) -> Iterable[str]:
    if zone := labels(volume).get(_ZONE):
        yield zone
    for term in mappings_at(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms"):
        for each in mappings_at(term, "matchExpressions"):
            if each.get("key") == _ZONE and each.get("operator") == "In":
                yield from each.get("values") or ()


async def cluster_identity(operation: ShootOperation) -> None:
    """Write the cluster identity to the status, once."""
    if at(operation.shoot, "status", "clusterIdentity"):
        return
    own = operation.inputs().identity
    await operation.statuses.update(operation.shoot, lambda status: {**status, "clusterIdentity": own})


# --- Secrets


async def secrets(operation: ShootOperation) -> Object | None:
    """Generate or find all keys, tokens and certificates, publish those for users, and return the Cluster object.

    Raises: SecretsError, ReconcileError, KubeError.
    """
    if operation.is_restored:
        await _take_over_keys(operation)
    elif operation.kind == operations.RECONCILE:
        await _demand_keys(operation)
    has_static_kubeconfig = rules.has_static_kubeconfig(operation.shoot)
    was_monitored = operation.keys.has(tables.OBSERVER.name)
    rotation = rotations(operation.shoot, has_static_kubeconfig=has_static_kubeconfig)
    by_current = await servers_by_current(operation)

    def use_of_old(config: Config) -> UseOfOld:
        def use(current: Stored) -> Old:
            return rotation.old(config, servers_by_current={config.name} if current.name in by_current else ())

        return use

    async def generate(*configs: Config) -> None:
        await asyncio.gather(*(operation.keys.generate(each, old=use_of_old(each)) for each in configs))

    await generate(*tables.authorities_of_a_shoot(has_workers=not operation.is_workerless))
    await generate(
        tables.SERVICE_ACCOUNT_KEY,
        tables.ENCRYPTION_KEY,
        tables.static_tokens(has_cluster_admin=has_static_kubeconfig),
        tables.generic_token_kubeconfig(operation.technical_id, operation.inputs().ca_bundle),
        *registry.secrets(certificates(operation)),
        *((tables.SSH_KEY,) if has_ssh(spec(operation.shoot)) else ()),
        *((tables.OBSERVER,) if operation.is_monitored else ()),
    )
    await publish(
        operation, *published.certificate_authority(operation.shoot, operation.inputs().secrets.bundle(tables.CA.name))
    )
    await _ssh_keypairs(operation)
    await _observer(operation, was_there=was_monitored)
    if (shown := operation.results[CLUSTER]) is None:
        return None
    secret = name_of(operation, tables.TOKEN_KUBECONFIG)
    return await cluster_objects.name_token_kubeconfig(operation.seed.client, shown, secret)


async def _ssh_keypairs(operation: ShootOperation) -> None:
    """Publish the SSH key pairs, or withdraw them.

    Raises:
        ReconcileError: another writer has changed a published Secret.
    """
    if operation.is_workerless:
        return
    wanted = list[Object]()
    if has_ssh(spec(operation.shoot)):
        made = operation.keys.get(tables.SSH_KEY.name)
        wanted = published.ssh_keypairs(operation.shoot, made.current, made.old)
    await publish(operation, *wanted)
    names = {key(each).name for each in wanted}
    for suffix in (published.SSH_KEYPAIR, published.OLD_SSH_KEYPAIR):
        if f"{operation.name.name}.{suffix}" not in names:
            await _withdraw(operation, suffix)


async def _observer(operation: ShootOperation, *, was_there: bool) -> None:
    """Publish the login for monitoring, or withdraw it.

    Raises:
        ReconcileError: another writer has changed the published Secret.
    """
    if operation.is_monitored:
        user = operation.keys.get(tables.OBSERVER.name).current
        await publish(operation, published.observer(operation.shoot, user))
    elif was_there:
        await _withdraw(operation, published.MONITORING)


async def _withdraw(operation: ShootOperation, suffix: str) -> None:
    """Delete a published Secret."""
    garden, name = operation.garden.client, f"{operation.name.name}.{suffix}"
    if await garden.find(SECRETS, Key(operation.name.namespace, name)):
        await garden.delete_if_exists(SECRETS, Key(operation.name.namespace, name))


async def servers_by_current(operation: ShootOperation) -> list[str]:
    """Names of current authorities for which all servers were seen with certificates of them."""
    if not operation.is_in(COMPLETING, AUTHORITIES):
        return []
    live = await operation.seed.client.find(DEPLOYMENTS, Key(operation.technical_id, kube_apiserver.NAME))
    return annotations(live or {}).get(rules.SERVERS_BY_CURRENT, "").split(",")


async def _take_over_keys(operation: ShootOperation) -> None:
    """Take over the keys from the ShootState: stored data is encrypted with them, and users trust them."""
    await operation.keys.take_over(persisted.secrets(operation.state, operation.technical_id))
    if operation.keys.has(tables.CA.name) or not await had_keys(operation.garden.client, operation.name):
        return
    raise ReconcileError(
        f"the Shoot has moved here without its keys: ShootState {operation.name} does not exist or has none; restore "
        "it from a backup of the garden"
    )


async def _demand_keys(operation: ShootOperation) -> None:
    """Refuse to generate keys for a recreated cluster: they would hide the loss.

    Raises: ReconcileError, KubeError.
    """
    if operation.keys.has(tables.CA.name) or not await had_keys(operation.garden.client, operation.name):
        return
    raise ReconcileError(
        f"namespace {operation.technical_id} has lost the keys of the Shoot; if the seed was lost and replaced, "
        "restore the Shoot: set its status.lastOperation to type Migrate and state Aborted"
    )


async def had_keys(garden: Client, shoot: Key) -> bool:
    """Whether keys were ever generated for a Shoot, and thus published."""
    return await garden.find(CONFIG_MAPS, Key(shoot.namespace, f"{shoot.name}.ca-cluster")) is not None


def certificates(operation: ShootOperation) -> ControlPlane:
    """Return the settings of certificates in the control plane.

    Raises:
        ReconcileError: the network of Services is unknown or invalid.
    """
    with known():
        services = ip_network(operation.inputs().service_network)
    hosts = [operation.internal.host, *([operation.external.host] if operation.external else [])]
    own_domain = text(at(spec(operation.shoot), "dns", "domain"))
    return ControlPlane(
        namespace=operation.technical_id,
        domains=[*hosts, *([own_domain] if own_domain else [])],
        service_addresses=[str(services[1])],
        has_workers=not operation.is_workerless,
        has_several_etcds=etcd_members(operation.shoot) > 1,
        etcd_names=operation.config.etcd_server_names,
    )


async def client_authority(operation: ShootOperation) -> None:
    """Publish the authority for client certificates once all API servers trust it. Raises KubeError, ReconcileError."""
    current = operation.keys.get(tables.CA_CLIENT.name).current
    await publish(operation, published.client_authority(operation.shoot, current))


async def publish(operation: ShootOperation, *objects: Object) -> None:
    """Publish objects to users in the garden; up-to-date ones are not written. Raises KubeError, ReconcileError.

    A Shoot that is being deleted publishes nothing: its namespace in the garden may be terminating.
    """
    if operation.is_going:
        return
    for each in objects:
        await _publish_one(operation, _KINDS[text(each.get("kind"))], each)


_KINDS = {each.kind: each for each in (CONFIG_MAPS, SECRETS, INTERNAL_SECRETS)}


async def _publish_one(operation: ShootOperation, resource: Resource, wanted: Object) -> None:
    live = await ensure(operation.garden.client, resource, wanted, patch=_changes)
    if mapping(live.get("data")) != wanted["data"]:
        raise ReconcileError(f"{resource.kind} {key(wanted)} was changed during the write; it is written again")


def _changes(wanted: Object, live: Object) -> Object | None:
    data = mapping(live.get("data"))
    if data == wanted["data"] and labels(wanted).items() <= labels(live).items():
        return None
    meta = {"labels": labels(wanted), "ownerReferences": metadata(wanted)["ownerReferences"]}
    return {"metadata": meta, "data": {**dict.fromkeys(data), **wanted["data"]}}


# --- referenced resources


async def referenced(operation: ShootOperation) -> None:
    """Copy referenced resources from the garden; a Shoot that is being deleted keeps the copies of missing ones.

    Raises:
        ReconcileError: a resource is missing.
    """
    namespace = operation.name.namespace
    found = list[Object]()
    for resource, name in references(operation.shoot):
        try:
            found.append(await operation.garden.client.get(resource, Key(namespace, name)))
        except NotFound as error:
            if not operation.is_going:
                raise ReconcileError(
                    f"the Shoot refers to {resource.kind} {name}, which does not exist: {error}"
                ) from error
            copy = Key(operation.technical_id, referenced_resources.name_of_copy(name))
            if (kept := await operation.seed.client.find(resource, copy)) is not None:
                found.append({**resource.type_meta, **kept, "metadata": {"name": name}})
    await operation.deploy(referenced_resources.NAME, referenced_resources.objects(operation.technical_id, found))


async def destroy_referenced(operation: ShootOperation) -> None:
    """Delete copies of referenced resources, and wait.

    Raises:
        ComponentError: the objects could not be written or removed.
    """
    kinds = [MANAGED_RESOURCES.type_meta, SECRETS.type_meta]
    await operation.destroy(referenced_resources.NAME, kinds, seconds=_GONE_SECONDS)


# --- units

NAMESPACE = Unit(id="namespace", title="Shoot namespace in Seed", deploy=namespace, provides=ITS_NAMESPACE)
IDENTITY = Task("identity", "Ensuring Shoot cluster identity", cluster_identity, after=["namespace"])
KEYS = Task(
    "secrets", "Initializing secrets management", secrets, after=["namespace"], provides=CLUSTER, reads=[CLUSTER]
)
REFERENCED = Unit(
    id="referenced",
    title="referenced resources",
    deploy=referenced,
    after=["namespace"],
    destroy=destroy_referenced,
)
CLIENT_AUTHORITY = Task(
    "client-authority",
    "Publishing the authority for client certificates",
    client_authority,
    after=["api-server-ready"],
)
