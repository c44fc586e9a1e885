"""An etcd of a Shoot: `main` for all objects, with backups; `events` for Events, which need none.

The operator of etcds (`etcd_druid`) creates the pods. A hibernated etcd has no pods and keeps its volume.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from components.control_plane import ALL_SCRAPE_TARGETS, CONTROL_PLANE, FROM_GARDEN, PRIORITY, Running
from components.etcd_schedules import Schedules
from components.parts import TO_DNS, TO_RUNTIME_API_SERVER, allowed_ports, made
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kube.objects import Object, mapping, text
from kube.paths import at
from kube.resources import STATEFUL_SETS

MAIN, EVENTS = "main", "events"
ROLES = (MAIN, EVENTS)
BACKUP_SECRET = "etcd-backup"
"""Secret with the credentials for the bucket, created by an extension."""
_CLIENT, _SERVER, BACKUP_PORT = 2379, 2380, 8080
_REACHES = (
    TO_DNS,
    f"{keys.TO_NETWORKS_PREFIX}private-networks",
    f"{keys.TO_NETWORKS_PREFIX}public-networks",
    TO_RUNTIME_API_SERVER,
)
_SERVICE_ANNOTATIONS = {
    ALL_SCRAPE_TARGETS: allowed_ports(_CLIENT, BACKUP_PORT),
    keys.NAMESPACE_SELECTORS: f"[{FROM_GARDEN}]",
    keys.NAMESPACE_ALIAS: "all-shoots",
}
_NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


@dataclass(frozen=True, slots=True)
class _Role:
    """Attributes: volume: name of its claim; memory: minimum request."""

    volume: str
    metrics: str
    memory: str
    backup_cpu: str
    backup_memory: str
    annotations: Mapping[str, str]


_ROLES = {
    MAIN: _Role("main-etcd", "extensive", "300M", "20m", "80Mi", _NOT_EVICTED),
    EVENTS: _Role("etcd-events", "basic", "60M", "10m", "40Mi", {}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Names of Secrets. Attributes: ca: a bundle; client: empty between members, which are each other's clients."""

    ca: str
    server: str
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Location of backups. Attributes: entry: name of the BackupEntry; bucket: `bucketName` of its Secret."""

    entry: str
    bucket: str
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of an etcd.

    Attributes:
        role: `MAIN` or `EVENTS`.
        between_members: required if there are several.
        store: None if there are no backups, as always for `EVENTS`.
        window: `spec.maintenance.timeWindow` of the Shoot.
        autoscaled: whether there are VerticalPodAutoscalers.
    """

    namespace: str
    role: str
    certificates: Certificates
    schedules: Schedules
    between_members: Certificates | None = None
    store: Store | None = None
    window: Mapping[str, str] = field(default_factory=dict)
    running: Running = Running.AWAKE
    members: int = 1
    autoscaled: bool = True


def name(role: str) -> str:
    return f"etcd-{role}"


def objects(values: Values) -> list[Object]:
    return [*([_autoscaler(values)] if values.autoscaled else []), _etcd(values)]


def _etcd(values: Values) -> Object:
    role = _ROLES[values.role]
    own = {**CONTROL_PLANE, "role": values.role}
    found = {"app": "etcd-statefulset", **own}
    spec: Object = {
        "selector": {"matchLabels": found},
        "labels": {**found, **dict.fromkeys(_REACHES, keys.ALLOWED)},
        **({"annotations": dict(role.annotations)} if role.annotations else {}),
        "replicas": values.running.replicas(values.members),
        "priorityClassName": PRIORITY.format(500),
        "storageCapacity": "10Gi",
        "volumeClaimTemplate": role.volume,
        "etcd": _server(values, role),
        "backup": dict(_backup(values, role)),
    }
    return made(ETCDS, name(values.role), namespace=values.namespace, labels=own, spec=spec)


def _server(values: Values, role: _Role) -> Object:
    peers = values.between_members
    return {
        "clientPort": _CLIENT,
        "serverPort": _SERVER,
        "clientService": {"annotations": dict(_SERVICE_ANNOTATIONS)},
        "clientUrlTls": _tls(values.certificates, values.namespace),
        **({"peerUrlTls": _tls(peers, values.namespace)} if peers and values.members > 1 else {}),
        "defragmentationSchedule": values.schedules.defragmentation,
        "metrics": role.metrics,
        "quota": "8Gi",
        "resources": {"requests": {"cpu": "300m", "memory": "1G"}},
    }


def _backup(values: Values, role: _Role) -> Iterator[tuple[str, object]]:
    yield "port", BACKUP_PORT
    yield "tls", _tls(values.certificates, values.namespace)
    yield "resources", {"requests": {"cpu": role.backup_cpu, "memory": role.backup_memory}}
    yield "compression", {"enabled": True, "policy": "gzip"}
    yield "garbageCollectionPeriod", "12h0m0s"
    yield "garbageCollectionPolicy", "Exponential"
    if values.store is None:
        return
    yield "deltaSnapshotMemoryLimit", "100Mi"
    yield "deltaSnapshotPeriod", "5m0s"
    yield "fullSnapshotSchedule", values.schedules.full
    yield (
        "store",
        {
            "container": values.store.bucket,
            "prefix": f"{values.store.entry}/{name(values.role)}",
            "provider": values.store.provider,
            "secretRef": {"name": BACKUP_SECRET},
        },
    )


def client_secrets(etcd: Object) -> tuple[str, str]:
    """Names of the Secrets with its authorities, and with the certificate of its clients."""
    tls = mapping(at(etcd, "spec", "etcd", "clientUrlTls"))
    return text(at(tls, "tlsCASecretRef", "name")), text(at(tls, "clientTLSSecretRef", "name"))


def _tls(certificates: Certificates, namespace: str) -> Object:
    def secret(its_name: str) -> Object:
        return {"name": its_name, "namespace": namespace}

    return {
        "tlsCASecretRef": {**secret(certificates.ca), "dataKey": "bundle.crt"},
        "serverTLSSecretRef": secret(certificates.server),
        **({"clientTLSSecretRef": secret(certificates.client)} if certificates.client else {}),
    }


def _autoscaler(values: Values) -> Object:
    """Autoscaler that scales down only in the maintenance window, since the etcd restarts then."""
    etcd = {
        "containerName": "etcd",
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": _ROLES[values.role].memory},
        "mode": "Auto",
    }
    backup = {"containerName": "backup-restore", "controlledValues": "RequestsOnly", "mode": "Off"}
    notes = {keys.DOWNSCALE_RESTRICTION: "in-maintenance-window-only"}
    if values.window:
        notes[keys.MAINTENANCE_WINDOW] = f"{values.window['begin']},{values.window['end']}"
    spec = {
        "resourcePolicy": {"containerPolicies": [etcd, backup]},
        "targetRef": {**STATEFUL_SETS.type_meta, "name": name(values.role)},
        "updatePolicy": {"updateMode": "Auto"},
    }
    return made(
        VERTICAL_POD_AUTOSCALERS,
        name(values.role),
        namespace=values.namespace,
        labels={
            keys.EVICTION_REQUIREMENTS: keys.EVICTION_REQUIREMENTS_MANAGED,
            "role": f"etcd-vpa-{values.role}",
        },
        annotations=notes,
        spec=spec,
    )
