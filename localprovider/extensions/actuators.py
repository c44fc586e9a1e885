"""Actions for each kind of extension object: one class per kind.

Each is idempotent: it writes only differences, and accepts that an object is already deleted. Its result becomes part
of the status. Objects can request faults, see `simulation`.
"""

import base64
from collections.abc import Mapping

from extension import actuators
from extension.errors import CodedError, Pending
from extension.objects import delete, delete_from_shoot, deploy_into_shoot, put
from extension.rules import SHOOT_CLASS, class_of
from gardener import operations
from gardener.extension_contract import last_operation
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
)
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from localprocesses.confined import OutsideError
from localprovider import shoots
from localprovider.extensions.machines import worker
from localprovider.extensions.simulation import simulation_of
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


class Local(actuators.Actuator):
    """Actions with the faults that an object requests."""

    type, finalizer = "local", "extensions.gardener.cloud/local"
    classes = frozenset({"shoot", "seed", "garden"})

    def __init__(self, seed: Client, state: State) -> None:
        super().__init__(seed)
        self.state = state
        self._failures: dict[str, int] = {}
        """Number of simulated failures of objects, by uid."""

    async def act(self, operation: str, obj: Object, *, waited: float) -> Object:
        try:
            simulation = simulation_of(obj)
            if simulation.is_stuck:
                raise Pending("simulation: stuck", seconds=None)
            if waited < simulation.delay:
                raise Pending("simulation: delayed", seconds=simulation.delay - waited)
            failures = self._failures.get(uid(obj), 0)
            if simulation.fails(failures):
                self._failures[uid(obj)] = failures + 1
                raise CodedError(simulation.error, *filter(None, [simulation.code]))
            fields = await super().act(operation, obj, waited=waited)
        except Pending as pending:
            if pending.longest is not None:
                pending.longest += simulation.delay
            raise
        except (OutsideError, ValueError) as error:
            raise ReconcileError(str(error)) from error
        self._failures.pop(uid(obj), None)
        return fields


# --- infrastructure and control plane


class Infrastructure(Local, actuators.Infrastructure):
    async def reconcile(self, obj: Object, /) -> Object:
        saved = integer(mapping_at(obj, "status", "state").get("network"))
        number = self.state.take_network(owner_of(obj), wanted=saved)
        cidr = await shoots.network_of_nodes(self.seed, key(obj).namespace) or f"10.{number}.0.0/16"
        return {"nodesCIDR": cidr, "providerStatus": {"network": number}, "state": {"network": number}}

    async def delete(self, obj: Object, /) -> None:
        self.state.free_network(owner_of(obj))


def owner_of(obj: Object) -> str:
    """Owner of a network, the same on any seed: a Shoot that moves to another one keeps its network."""
    return str(key(obj))


class ControlPlane(Local, actuators.ControlPlane):
    async def reconcile(self, obj: Object, /) -> Object:
        data = {"cloudprovider.conf": f"region: {text(spec(obj).get('region'))}\n"}
        await put(self.seed, CONFIG_MAPS, Key(key(obj).namespace, _CLOUD_CONFIG), {"data": data})
        await deploy_into_shoot(self.seed, Key(key(obj).namespace, _MACHINES), *_rights_of_machines())
        return {"providerStatus": {}}

    async def delete(self, obj: Object, /) -> None:
        await delete(self.seed, CONFIG_MAPS, Key(key(obj).namespace, _CLOUD_CONFIG))
        await delete_from_shoot(self.seed, Key(key(obj).namespace, _MACHINES))


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


# --- DNS


def record_key(name: str) -> str:
    """Return the key of a DNS name in the ConfigMap, which may not contain a `*`."""
    return name.replace("*", "_wildcard")


class DNSRecord(Local, actuators.DNSRecord):
    async def reconcile(self, obj: Object, /) -> Object:
        values = [text(each) for each in spec(obj).get("values") or []]
        data = {record_key(text(spec(obj).get("name"))): " ".join(values)}
        await put(self.seed, CONFIG_MAPS, Key(GARDEN, DNS), {"data": data}, merges=True)
        return {"zone": text(spec(obj).get("zone")) or "local"}

    async def delete(self, obj: Object, /) -> None:
        body = {"data": {record_key(text(spec(obj).get("name"))): None}}
        await self.seed.patch_if_exists(CONFIG_MAPS, Key(GARDEN, DNS), body)


# --- what the cluster of the Shoot gets


class Network(Local, actuators.Network):
    async def reconcile(self, obj: Object, /) -> Object:
        config = {name: text(spec(obj).get(name)) for name in ("podCIDR", "serviceCIDR")}
        await deploy_into_shoot(self.seed, Key(key(obj).namespace, _NETWORKING), _config_map("local-network", config))
        return {"ipFamilies": spec(obj).get("ipFamilies") or ["IPv4"]}

    async def delete(self, obj: Object, /) -> None:
        await delete_from_shoot(self.seed, Key(key(obj).namespace, _NETWORKING))


class Extension(Local, actuators.Extension):
    async def reconcile(self, obj: Object, /) -> Object:
        if class_of(obj) == SHOOT_CLASS:
            given = string_map(mapping_at(spec(obj), "providerConfig").get("data"))
            made = _config_map("local-extension", given)
            await deploy_into_shoot(self.seed, Key(key(obj).namespace, _EXTENSION), made)
        return {}

    async def delete(self, obj: Object, /) -> None:
        if class_of(obj) == SHOOT_CLASS:
            await delete_from_shoot(self.seed, Key(key(obj).namespace, _EXTENSION))


def _config_map(name: str, data: Mapping[str, str]) -> Object:
    meta = {"name": name, "namespace": "kube-system"}
    return {**CONFIG_MAPS.type_meta, "metadata": meta, "data": dict(data)}


# --- machines


class OperatingSystemConfig(Local, actuators.OperatingSystemConfig):
    """Scripts with the names of the units and files for machines; kubelets of this provider are simulated."""

    async def reconcile(self, obj: Object, /) -> Object:
        units = [text(each.get("name")) for each in mappings(spec(obj).get("units"))]
        files = [text(each.get("path")) for each in mappings(spec(obj).get("files"))]
        lines = ["#!/bin/sh", *(f"# unit {each}" for each in units), *(f"# file {each}" for each in files), ""]
        data = {"cloud_config": base64.b64encode("\n".join(lines).encode()).decode()}
        where = _script_of(obj)
        await put(self.seed, SECRETS, where, {"data": data})
        return {"cloudConfig": {"secretRef": {"name": where.name, "namespace": where.namespace}}}

    async def delete(self, obj: Object, /) -> None:
        await delete(self.seed, SECRETS, _script_of(obj))


def _script_of(config: Object) -> Key:
    return Key(key(config).namespace, f"osc-result-{key(config).name}")


class Worker(Local, actuators.Worker):
    async def reconcile(self, obj: Object, /) -> Object:
        return await worker.make(self.seed, obj)

    async def delete(self, obj: Object, /) -> None:
        await worker.remove(self.seed, obj)

    async def restore(self, obj: Object, /) -> Object:
        await worker.restore(self.seed, obj)
        return await worker.make(self.seed, obj)


class Bastion(Local, actuators.Bastion):
    async def reconcile(self, _obj: Object, /) -> Object:
        return {"ingress": {"ip": _LOOPBACK}}


class ContainerRuntime(Local, actuators.ContainerRuntime):
    async def reconcile(self, _obj: Object, /) -> Object:
        return {}


# --- backups


def generated_name(bucket: str) -> str:
    return f"generated-bucket-{bucket}"


class BackupBucket(Local, actuators.BackupBucket):
    async def reconcile(self, obj: Object, /) -> Object:
        name = key(obj).name
        path = self.state.bucket(name, is_new=_is_new(obj))
        if not _generates(obj):
            return {}
        data = {"hostPath": base64.b64encode(str(path).encode()).decode()}
        await put(self.seed, SECRETS, Key(GARDEN, generated_name(name)), {"data": data})
        return {"generatedSecretRef": {"name": generated_name(name), "namespace": GARDEN}}

    async def delete(self, obj: Object, /) -> None:
        name = key(obj).name
        self.state.remove_bucket(name)
        if _generates(obj):
            await delete(self.seed, SECRETS, Key(GARDEN, generated_name(name)))


def _generates(bucket: Object) -> bool:
    return mapping(spec(bucket).get("providerConfig")).get("generate") is True


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


class BackupEntry(Local, actuators.BackupEntry):
    async def reconcile(self, obj: Object, /) -> Object:
        name, bucket = key(obj).name, text(spec(obj).get("bucketName"))
        is_restored = last_operation(obj).get("type") == operations.RESTORE
        is_new = (_is_new(obj) and not name.startswith(_SOURCE)) or is_restored
        path, secret = self.state.entry(bucket, _directory(name), is_new=is_new), etcd_backup(name)
        if is_restored:
            # Its etcd does not begin empty: snapshots are there, or will be.
            self.state.buckets.make(f"{bucket}/{_directory(name)}/{_ETCD_WITH_BACKUPS}")
        namespace = await self.seed.find(NAMESPACES, secret.namespace) if secret.namespace else None
        if namespace is None or is_deleting(namespace):
            return {}
        reference = mapping(spec(obj).get("secretRef"))
        where = Key(text(reference.get("namespace")), text(reference.get("name")))
        found = await self.seed.get(SECRETS, where)
        own = {"bucketName": bucket, "hostPath": str(path)}
        encoded = {field: base64.b64encode(value.encode()).decode() for field, value in own.items()}
        meta = {"annotations": {CREATED_BY: name}}
        await put(self.seed, SECRETS, secret, {"metadata": meta, "data": {**mapping(found.get("data")), **encoded}})
        return {}

    async def delete(self, obj: Object, /) -> None:
        """Remove an entry, and its Secret only if that is its own: another Shoot may have the same name by now."""
        name, bucket = key(obj).name, text(spec(obj).get("bucketName"))
        self.state.remove_entry(bucket, _directory(name))
        secret = etcd_backup(name)
        live = await self.seed.find(SECRETS, secret) if secret.namespace else None
        if live is not None and annotations(live).get(CREATED_BY) == name:
            await delete(self.seed, SECRETS, secret, expected_uid=uid(live))


ACTUATORS = (
    *(BackupBucket, BackupEntry, Bastion, ContainerRuntime, ControlPlane, DNSRecord, Extension, Infrastructure),
    *(Network, OperatingSystemConfig, Worker),
)
