"""Etcd: an etcd of one or several members, with backups."""

from gardener.api.definition import AGE, Column, Definition, Scale
from gardener.api.druid import ETCDS
from gardener.api.druid.common import CONDITIONS, LAST_ERRORS, LAST_OPERATION, secret, secret_with_key, store
from gardener.api.extensions.common import PROTECTED
from gardener.api.garden.common import OBSERVED_GENERATION
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    duration,
    integer,
    quantity,
    raw,
    string,
    string_map,
    strings,
    struct,
    time,
)

_RESOURCES = raw("Requests and limits of its container, as in a Pod.")


def _tls(description: str) -> Schema:
    return struct(
        description,
        {
            "tlsCASecretRef*": secret_with_key("Secret with the authority of the certificates."),
            "serverTLSSecretRef*": secret("Secret with the certificate of the server."),
            "clientTLSSecretRef": secret("Secret with the certificate for clients."),
        },
    )


_ETCD = struct(
    "Settings of etcd.",
    {
        "image": string("Image of etcd."),
        "quota": quantity("Size of the database at most."),
        "snapshotCount": integer("Number of writes between two snapshots by etcd itself.", bits=64),
        "defragmentationSchedule": string("Schedule of defragmentation, as a cron expression."),
        "etcdDefragTimeout": duration("Timeout of a defragmentation."),
        "heartbeatDuration": duration("Interval of the members' heartbeats."),
        "serverPort": integer("Port for other members."),
        "clientPort": integer("Port for clients."),
        "wrapperPort": integer("Port of the program that starts it."),
        "enableGRPCGateway": boolean("Whether clients may use HTTP with JSON."),
        "authSecretRef": secret("Secret with the name and password of the user root."),
        "metrics": string("Detail of the metrics.", enum=["basic", "extensive"]),
        "resources": _RESOURCES,
        "clientUrlTls": _tls("Certificates for clients."),
        "peerUrlTls": _tls("Certificates for members among each other."),
        "clientService": struct(
            "Service for clients.",
            {
                "annotations": string_map("Annotations of the Service."),
                "labels": string_map("Labels of the Service."),
                "trafficDistribution": string("Preferred endpoints."),
            },
        ),
        "additionalAdvertisePeerURLs": array(
            "Further URLs by which other members reach a member.",
            struct(
                "A member.", {"memberName*": string("Name of the member."), "urls*": strings("URLs of the member.")}
            ),
        ),
    },
)

_BACKUP = struct(
    "Settings of the backups.",
    {
        "port": integer("Port of the program that makes them."),
        "tls": _tls("Certificates of this program."),
        "image": string("Image of the backup program."),
        "store": store("Object store of the backups. Default: no backups."),
        "resources": _RESOURCES,
        "compression": struct(
            "Compression of snapshots.",
            {
                "enabled": boolean("Whether snapshots are compressed."),
                "policy": string("Algorithm of the compression.", enum=["gzip", "lzw", "zlib"]),
            },
        ),
        "snapshotCompaction": struct(
            "Job that merges delta snapshots into a full snapshot.",
            {
                "resources": raw("Requests and limits of the Job."),
                "eventsThreshold": integer("Number of changes that triggers a compaction.", bits=64),
                "triggerFullSnapshotThreshold": integer("Above how many changes etcd makes one instead.", bits=64),
            },
        ),
        "fullSnapshotSchedule": string("Schedule of full snapshots, as a cron expression."),
        "garbageCollectionPolicy": string(
            "Policy that selects the backups to remove.", enum=["Exponential", "LimitBased"]
        ),
        "garbageCollectionPeriod": duration("Interval of the removal of backups."),
        "maxBackupsLimitBasedGC": integer("Number of full snapshots that the policy LimitBased keeps."),
        "deltaSnapshotPeriod": duration("Interval of delta snapshots."),
        "deltaSnapshotMemoryLimit": quantity("Size of changes that triggers a delta snapshot early."),
        "deltaSnapshotRetentionPeriod": duration("Retention of delta snapshots."),
        "etcdSnapshotTimeout": duration("Timeout of a full snapshot."),
        "enableProfiling": boolean("Whether the program can be profiled."),
        "leaderElection": struct(
            "Settings of the program's leader election.",
            {
                "reelectionPeriod": duration("Interval of checks for the leader."),
                "etcdConnectionTimeout": duration("Timeout of requests to etcd."),
            },
        ),
    },
)

_SPEC = struct(
    "Desired state of the object.",
    {
        "selector": raw("Selector of the Pods."),
        "labels": string_map("Labels of the Pods."),
        "annotations": string_map("Annotations of the Pods."),
        "etcd*": _ETCD,
        "backup*": _BACKUP,
        "sharedConfig": struct(
            "Settings of both programs.",
            {
                "autoCompactionMode": string(
                    "Unit of the retention: periodic or revision.", enum=["periodic", "revision"]
                ),
                "autoCompactionRetention": string("Retention of the history of keys."),
            },
        ),
        "schedulingConstraints": struct(
            "Scheduling constraints of the Pods.",
            {
                "affinity": raw("Affinity, as in a Pod."),
                "topologySpreadConstraints": array(
                    "Topology spread constraints, as in a Pod.", raw("Constraint, as in a Pod.")
                ),
            },
        ),
        "replicas*": integer("Number of members: odd, or 0.", at_least=0),
        "priorityClassName": string("PriorityClass of the Pods."),
        "storageClass": string("StorageClass of the volumes."),
        "storageCapacity": quantity("Size of the volumes."),
        "volumeClaimTemplate": string("Name of the template of the volumes."),
        "memberNamePrefix": string("Prefix of the members' names."),
        "externallyManagedMemberAddresses": strings("Addresses of members that others run."),
        "runAsRoot": boolean("Whether the programs run as root."),
    },
)

_STATUS = struct(
    "State that etcd-druid reports.",
    {
        "observedGeneration": OBSERVED_GENERATION,
        "etcd": struct(
            "StatefulSet of the members.",
            {
                "apiVersion": string("Group and version of its kind."),
                "kind*": string("Kind of the object."),
                "name*": string("Name of the object."),
            },
        ),
        "conditions": CONDITIONS,
        "serviceName": string("Name of the Service for clients."),
        "lastError": string("The error of the last reconciliation."),
        "lastErrors": LAST_ERRORS,
        "lastOperation": LAST_OPERATION,
        "clusterSize": integer("Number of members, of former releases."),
        "replicas": integer("Number of Pods."),
        "currentReplicas": integer("Number of Pods of the current revision."),
        "readyReplicas": integer("Number of Pods that are ready."),
        "updatedReplicas": integer("Number of Pods that are up to date."),
        "ready": boolean("Whether all members are ready."),
        "labelSelector": raw("Selector of the Pods."),
        "selector": string("Selector of the Pods, as a text."),
        "members": array(
            "State of the members.",
            struct(
                "A member.",
                {
                    "name*": string("Name of the member."),
                    "id": string("ID of the member in etcd."),
                    "role": string("Leader or Member."),
                    "status*": string("Ready, NotReady or Unknown."),
                    "reason*": string("Why it is so."),
                    "lastTransitionTime*": time("Time of the last change of `status`."),
                },
            ),
        ),
        "peerUrlTLSEnabled": boolean("Whether members talk to each other by TLS."),
    },
)

ETCD = Definition(
    resource=ETCDS,
    description="An etcd with backups, which etcd-druid runs.",
    labels=PROTECTED,
    fields={"spec": _SPEC, "status": _STATUS},
    scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    columns=(
        Column("Ready", ".status.ready"),
        Column("Quorate", '.status.conditions[?(@.type=="Ready")].status'),
        Column("All Members Ready", '.status.conditions[?(@.type=="AllMembersReady")].status'),
        Column("Backup Ready", '.status.conditions[?(@.type=="BackupReady")].status'),
        AGE,
        Column("Cluster Size", ".spec.replicas", "integer", priority=1),
        Column("Current Replicas", ".status.currentReplicas", "integer", priority=1),
        Column("Ready Replicas", ".status.readyReplicas", "integer", priority=1),
    ),
)
