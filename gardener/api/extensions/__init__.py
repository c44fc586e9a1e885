"""Names and short names of the extension resources, which a seed serves.

Gardener writes the request, the extension of the type in `spec.type` carries it out and reports in the status. Fields
are described in the order of the original's types, since messages of the validating webhook follow it.
"""

from kube.resources import Resource

_GROUP = "extensions.gardener.cloud"
_VERSION = "v1alpha1"


def _extension(kind: str, plural: str, *short_names: str, namespaced: bool = True) -> Resource:
    return Resource(_GROUP, _VERSION, kind, plural, namespaced, short_names, any_size=True)


BACKUP_BUCKETS = _extension("BackupBucket", "backupbuckets", "bb", namespaced=False)
BACKUP_ENTRIES = _extension("BackupEntry", "backupentries", "be", namespaced=False)
BASTIONS = _extension("Bastion", "bastions")
CONTAINER_RUNTIMES = _extension("ContainerRuntime", "containerruntimes", "cr")
CONTROL_PLANES = _extension("ControlPlane", "controlplanes", "cp")
DNS_RECORDS = _extension("DNSRecord", "dnsrecords", "dns")
EXTENSIONS = _extension("Extension", "extensions", "ext")
INFRASTRUCTURES = _extension("Infrastructure", "infrastructures", "infra")
NETWORKS = _extension("Network", "networks")
OPERATING_SYSTEM_CONFIGS = _extension("OperatingSystemConfig", "operatingsystemconfigs", "osc")
SELF_HOSTED_SHOOT_EXPOSURES = _extension("SelfHostedShootExposure", "selfhostedshootexposures", "exp")
WORKERS = _extension("Worker", "workers")
OF_SHOOTS = (
    CONTAINER_RUNTIMES,
    CONTROL_PLANES,
    DNS_RECORDS,
    EXTENSIONS,
    INFRASTRUCTURES,
    NETWORKS,
    OPERATING_SYSTEM_CONFIGS,
    WORKERS,
)
"""Kinds whose state is saved, and moves with a Shoot to another Seed."""
_OTHERS = (BACKUP_BUCKETS, BACKUP_ENTRIES, BASTIONS, SELF_HOSTED_SHOOT_EXPOSURES)
ALL_EXTENSIONS = tuple(sorted((*OF_SHOOTS, *_OTHERS), key=lambda each: each.kind))

CLUSTERS = _extension("Cluster", "clusters", namespaced=False)
"""Data about the Shoot of a namespace for all extensions; none of them reconciles it."""
