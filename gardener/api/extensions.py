"""The kinds of extension resources, and Etcd: what is protected from deletion, and validated."""

from kube.resources import Resource

_GROUP = "extensions.gardener.cloud"
_VERSION = "v1alpha1"


def _extension(kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(_GROUP, _VERSION, kind, plural, namespaced=namespaced)


BACKUP_BUCKETS = _extension("BackupBucket", "backupbuckets", namespaced=False)
BACKUP_ENTRIES = _extension("BackupEntry", "backupentries", namespaced=False)
BASTIONS = _extension("Bastion", "bastions")
CONTAINER_RUNTIMES = _extension("ContainerRuntime", "containerruntimes")
CONTROL_PLANES = _extension("ControlPlane", "controlplanes")
DNS_RECORDS = _extension("DNSRecord", "dnsrecords")
EXTENSIONS = _extension("Extension", "extensions")
INFRASTRUCTURES = _extension("Infrastructure", "infrastructures")
NETWORKS = _extension("Network", "networks")
OPERATING_SYSTEM_CONFIGS = _extension("OperatingSystemConfig", "operatingsystemconfigs")
SELF_HOSTED_SHOOT_EXPOSURES = _extension("SelfHostedShootExposure", "selfhostedshootexposures")
WORKERS = _extension("Worker", "workers")
ALL_EXTENSIONS = (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    BASTIONS,
    CONTAINER_RUNTIMES,
    CONTROL_PLANES,
    DNS_RECORDS,
    EXTENSIONS,
    INFRASTRUCTURES,
    NETWORKS,
    OPERATING_SYSTEM_CONFIGS,
    SELF_HOSTED_SHOOT_EXPOSURES,
    WORKERS,
)

ETCDS = Resource("druid.gardener.cloud", _VERSION, "Etcd", "etcds", namespaced=True)
