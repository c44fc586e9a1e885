"""Actions for each kind of extension object: a table of functions.

Each is idempotent: it writes only differences, and accepts that an object is already deleted. Its result becomes part
of the status.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import yaml

from gardener import operations
from gardener.api import extensions
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.extension_contract import last_operation
from kube.errors import KindNotServed, NotFound
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    mapping,
    mappings,
    spec,
    string_map,
    text,
    uid,
)
from kube.paths import mapping_at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    NAMESPACES,
    RBAC_GROUP,
    SECRETS,
    Resource,
)
from kube.runtime.client import Client
from localprovider import shoots
from localprovider.extensions.machines import worker
from localprovider.extensions.state import State

GARDEN = "garden"
DNS = "local-dns"
"""ConfigMap with all DNS records: names and their values."""
CREATED_BY = "backup.gardener.cloud/created-by"
_CLOUD_CONFIG = "cloud-provider-config"
_NETWORKING = "extension-networking-local"
_MACHINES = "extension-controlplane-local"
_MACHINE_ACCOUNT = "machine-controller-manager"
_EXTENSION = "extension-local"
_SOURCE = "source-"
_ETCD_WITH_BACKUPS = "etcd-main"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Clients and state for actuators; `client` is that of the seed."""

    client: Client
    state: State


async def _nothing(_world: World, _obj: Object) -> Object:
    return {}


async def _forget_nothing(_world: World, _obj: Object) -> None:
    pass


Make = Callable[[World, Object], Awaitable[Object]]
"""Return fields of the status."""
Remove = Callable[[World, Object], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuator:
    """Actions for a kind.

    Attributes:
        make: for reconcile and restore; migrate leaves everything as it is.
    """

    resource: Resource
    make: Make = _nothing
    remove: Remove = _forget_nothing


# --- infrastructure and control plane


async def _make_infrastructure(world: World, obj: Object) -> Object:
    saved = integer(mapping_at(obj, "status", "state").get("network"))
    number = world.state.take_network(owner_of(obj), wanted=saved)
    cidr = await shoots.network_of_nodes(world.client, key(obj).namespace) or f"10.{number}.0.0/16"
    return {"nodesCIDR": cidr, "providerStatus": {"network": number}, "state": {"network": number}}


async def _remove_infrastructure(world: World, obj: Object) -> None:
    world.state.free_network(owner_of(obj))


def owner_of(obj: Object) -> str:
    """Owner of a network, the same on any seed: a Shoot that moves to another one keeps its network."""
    return str(key(obj))


async def _make_control_plane(world: World, obj: Object) -> Object:
    data = {"cloudprovider.conf": f"region: {text(spec(obj).get('region'))}\n"}
    await _put(world, CONFIG_MAPS, Key(key(obj).namespace, _CLOUD_CONFIG), {"data": data})
    await _put_into_shoot(world, Key(key(obj).namespace, _MACHINES), *_rights_of_machines())
    return {"providerStatus": {}}


def _rights_of_machines() -> tuple[Object, ...]:
    """Return rights for the simulator of machines, which uses the account of the machine controller manager."""
    kubelets = [
        {"apiGroups": [""], "resources": ["nodes", "nodes/status", "pods", "pods/status", "events"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    ]
    name = {"metadata": {"name": "local.provider:machines"}}
    account = {"kind": "ServiceAccount", "name": _MACHINE_ACCOUNT, "namespace": "kube-system"}
    role = {"apiGroup": RBAC_GROUP, "kind": CLUSTER_ROLES.kind, "name": "local.provider:machines"}
    return (
        {**CLUSTER_ROLES.type_meta, **name, "rules": kubelets},
        {**CLUSTER_ROLE_BINDINGS.type_meta, **name, "roleRef": role, "subjects": [account]},
    )


async def _remove_control_plane(world: World, obj: Object) -> None:
    await _delete(world, CONFIG_MAPS, Key(key(obj).namespace, _CLOUD_CONFIG))
    await _remove_from_shoot(world, Key(key(obj).namespace, _MACHINES))


# --- DNS


def record_key(name: str) -> str:
    """Return the key of a DNS name in the ConfigMap, which may not contain a `*`."""
    return name.replace("*", "_wildcard")


async def _make_record(world: World, obj: Object) -> Object:
    values = [text(each) for each in spec(obj).get("values") or []]
    data = {record_key(text(spec(obj).get("name"))): " ".join(values)}
    await _put(world, CONFIG_MAPS, Key(GARDEN, DNS), {"data": data}, merges=True)
    return {"zone": text(spec(obj).get("zone")) or "local"}


async def _remove_record(world: World, obj: Object) -> None:
    body = {"data": {record_key(text(spec(obj).get("name"))): None}}
    await world.client.patch_if_exists(CONFIG_MAPS, Key(GARDEN, DNS), body)


# --- what the cluster of the Shoot gets


async def _make_network(world: World, obj: Object) -> Object:
    namespace = key(obj).namespace
    config = {name: text(spec(obj).get(name)) for name in ("podCIDR", "serviceCIDR")}
    await _put_into_shoot(world, Key(namespace, _NETWORKING), _config_map("local-network", config))
    return {"ipFamilies": spec(obj).get("ipFamilies") or ["IPv4"]}


async def _remove_network(world: World, obj: Object) -> None:
    await _remove_from_shoot(world, Key(key(obj).namespace, _NETWORKING))


async def _make_extension(world: World, obj: Object) -> Object:
    if _is_of_shoot(obj):
        given = string_map(mapping_at(spec(obj), "providerConfig").get("data"))
        await _put_into_shoot(world, Key(key(obj).namespace, _EXTENSION), _config_map("local-extension", given))
    return {}


async def _remove_extension(world: World, obj: Object) -> None:
    if _is_of_shoot(obj):
        await _remove_from_shoot(world, Key(key(obj).namespace, _EXTENSION))


def _is_of_shoot(extension: Object) -> bool:
    """Whether an Extension belongs to a Shoot; others belong to seeds and gardens."""
    return spec(extension).get("class") in {None, "shoot"}


def _config_map(name: str, data: Mapping[str, str]) -> Object:
    meta = {"name": name, "namespace": "kube-system"}
    return {**CONFIG_MAPS.type_meta, "metadata": meta, "data": dict(data)}


async def _put_into_shoot(world: World, name: Key, *objects: Object) -> None:
    """Deploy objects by the resource manager of the Shoot; `name` is that of the ManagedResource."""
    written = yaml.safe_dump_all(objects)
    stored = {"objects.yaml": base64.b64encode(written.encode()).decode()}
    await _put(world, SECRETS, name, {"data": stored})
    await _put(world, MANAGED_RESOURCES, name, {"spec": {"secretRefs": [{"name": name.name}]}})


async def _remove_from_shoot(world: World, name: Key) -> None:
    await _delete(world, MANAGED_RESOURCES, name)
    await _delete(world, SECRETS, name)


# --- machines


async def _make_operating_system_config(world: World, obj: Object) -> Object:
    """Write a script with the names of the units and files for a machine; kubelets of this provider are simulated."""
    where = key(obj)
    units = [text(each.get("name")) for each in mappings(spec(obj).get("units"))]
    files = [text(each.get("path")) for each in mappings(spec(obj).get("files"))]
    script = "\n".join(["#!/bin/sh", *(f"# unit {each}" for each in units), *(f"# file {each}" for each in files), ""])
    name = f"osc-result-{where.name}"
    data = {"cloud_config": base64.b64encode(script.encode()).decode()}
    await _put(world, SECRETS, Key(where.namespace, name), {"data": data})
    return {"cloudConfig": {"secretRef": {"name": name, "namespace": where.namespace}}}


async def _remove_operating_system_config(world: World, obj: Object) -> None:
    await _delete(world, SECRETS, Key(key(obj).namespace, f"osc-result-{key(obj).name}"))


async def _make_worker(world: World, obj: Object) -> Object:
    if last_operation(obj).get("type") == operations.RESTORE:
        await worker.restore(world.client, obj)
    return await worker.make(world.client, obj)


async def _remove_worker(world: World, obj: Object) -> None:
    await worker.remove(world.client, obj)


async def _make_bastion(_world: World, _obj: Object) -> Object:
    return {"ingress": {"ip": _LOOPBACK}}


# --- backups


def generated_name(bucket: str) -> str:
    return f"generated-bucket-{bucket}"


async def _make_bucket(world: World, obj: Object) -> Object:
    name = key(obj).name
    path = world.state.bucket(name, is_new=_is_new(obj))
    if mapping(spec(obj).get("providerConfig")).get("generate") is not True:
        return {}
    data = {"hostPath": base64.b64encode(str(path).encode()).decode()}
    await _put(world, SECRETS, Key(GARDEN, generated_name(name)), {"data": data})
    return {"generatedSecretRef": {"name": generated_name(name), "namespace": GARDEN}}


async def _remove_bucket(world: World, obj: Object) -> None:
    name = key(obj).name
    world.state.remove_bucket(name)
    if mapping(spec(obj).get("providerConfig")).get("generate") is True:
        await _delete(world, SECRETS, Key(GARDEN, generated_name(name)))


def _is_new(obj: Object) -> bool:
    """Whether the current operation creates the object."""
    return last_operation(obj).get("type") == operations.CREATE


def etcd_backup(entry: str) -> Key:
    """Return the Secret with the directory of the backups, for etcd of the entry's Shoot."""
    namespace = entry.removeprefix(_SOURCE).rpartition("--")[0]
    return Key(namespace, f"{_SOURCE}etcd-backup" if entry.startswith(_SOURCE) else "etcd-backup")


def _directory(entry: str) -> str:
    """Name of the directory of backups; a source entry has the backups of another Seed."""
    return entry.removeprefix(_SOURCE)


async def _make_entry(world: World, obj: Object) -> Object:
    name, bucket = key(obj).name, text(spec(obj).get("bucketName"))
    is_restored = last_operation(obj).get("type") == operations.RESTORE
    is_new = (_is_new(obj) and not name.startswith(_SOURCE)) or is_restored
    path, secret = world.state.entry(bucket, _directory(name), is_new=is_new), etcd_backup(name)
    if is_restored:
        # Its etcd does not begin empty: snapshots are there, or will be.
        world.state.buckets.make(f"{bucket}/{_directory(name)}/{_ETCD_WITH_BACKUPS}")
    namespace = await world.client.find(NAMESPACES, secret.namespace) if secret.namespace else None
    if namespace is None or is_deleting(namespace):
        return {}
    reference = mapping(spec(obj).get("secretRef"))
    where = Key(text(reference.get("namespace")), text(reference.get("name")))
    found = await world.client.get(SECRETS, where)
    own = {"bucketName": bucket, "hostPath": str(path)}
    encoded = {field: base64.b64encode(value.encode()).decode() for field, value in own.items()}
    meta = {"annotations": {CREATED_BY: name}}
    await _put(world, SECRETS, secret, {"metadata": meta, "data": {**mapping(found.get("data")), **encoded}})
    return {}


async def _remove_entry(world: World, obj: Object) -> None:
    """Remove an entry, and its Secret only if that is its own: another Shoot may have the same name by now."""
    name, bucket = key(obj).name, text(spec(obj).get("bucketName"))
    world.state.remove_entry(bucket, _directory(name))
    secret = etcd_backup(name)
    live = await world.client.find(SECRETS, secret) if secret.namespace else None
    if live is not None and annotations(live).get(CREATED_BY) == name:
        await _delete(world, SECRETS, secret, expected_uid=uid(live))


# --- requests


async def _put(
    world: World, resource: Resource, name: Key, wanted: Mapping[str, Object], *, merges: bool = False
) -> None:
    """Create or update an object with these fields, keeping its others.

    With `merges`, other data stay as well, and other writers may write theirs at the same time.
    """
    live = await world.client.find(resource, name)
    place = {"name": name.name, "namespace": name.namespace}
    if live is None:
        meta = {**mapping(wanted.get("metadata")), **place}
        await world.client.create(resource, {**resource.type_meta, **wanted, "metadata": meta})
        return
    changed: Object = {}
    for field, value in wanted.items():
        having = mapping(live.get(field))
        gone = {} if merges or field != "data" else dict.fromkeys(having.keys() - value.keys())
        if gone or any(having.get(inner) != content for inner, content in value.items()):
            changed[field] = {**value, **gone}
    if changed:
        # Not an object that was recreated meanwhile.
        meta = {**mapping(changed.get("metadata")), "uid": uid(live)}
        await world.client.patch(resource, name, {**changed, "metadata": meta})


async def _delete(world: World, resource: Resource, name: Key, *, expected_uid: str = "") -> None:
    try:
        await world.client.delete(resource, name, uid=expected_uid)
    except (NotFound, KindNotServed):
        return


ACTUATORS = (
    Actuator(resource=extensions.BACKUP_BUCKETS, make=_make_bucket, remove=_remove_bucket),
    Actuator(resource=extensions.BACKUP_ENTRIES, make=_make_entry, remove=_remove_entry),
    Actuator(resource=extensions.BASTIONS, make=_make_bastion),
    Actuator(resource=extensions.CONTAINER_RUNTIMES),
    Actuator(resource=extensions.CONTROL_PLANES, make=_make_control_plane, remove=_remove_control_plane),
    Actuator(resource=extensions.DNS_RECORDS, make=_make_record, remove=_remove_record),
    Actuator(resource=extensions.EXTENSIONS, make=_make_extension, remove=_remove_extension),
    Actuator(resource=extensions.INFRASTRUCTURES, make=_make_infrastructure, remove=_remove_infrastructure),
    Actuator(resource=extensions.NETWORKS, make=_make_network, remove=_remove_network),
    Actuator(
        resource=extensions.OPERATING_SYSTEM_CONFIGS,
        make=_make_operating_system_config,
        remove=_remove_operating_system_config,
    ),
    Actuator(resource=extensions.WORKERS, make=_make_worker, remove=_remove_worker),
)
