"""Etcd: an etcd of one or several members, with backups."""

from gardener.api.definition import AGE, Column, Definition, Scale
from gardener.api.druid import ETCDS
from gardener.api.druid.common import CONDITIONS, secret, secret_with_key, store
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
        "image": string("Its image."),
        "quota": quantity("Size of the database at most."),
        "snapshotCount": integer("After how many writes etcd makes a snapshot.", bits=64),
        "defragmentationSchedule": string("When it is defragmented, as a cron expression."),
        "etcdDefragTimeout": duration("How long a defragmentation may take."),
        "heartbeatDuration": duration("How often members report."),
        "serverPort": integer("Port for other members."),
        "clientPort": integer("Port for clients."),
        "wrapperPort": integer("Port of the program that starts it."),
        "enableGRPCGateway": boolean("Whether clients may use HTTP with JSON."),
        "authSecretRef": secret("Secret with the name and password of the user root."),
        "metrics": string("Which metrics it has.", enum=["basic", "extensive"]),
        "resources": _RESOURCES,
        "clientUrlTls": _tls("Certificates for clients."),
        "peerUrlTls": _tls("Certificates for members among each other."),
        "clientService": struct(
            "Its Service.",
            {
                "annotations": string_map("Annotations of the Service."),
                "labels": string_map("Labels of the Service."),
                "trafficDistribution": string("Which endpoints are preferred."),
            },
        ),
        "additionalAdvertisePeerUrls": array(
            "Further URLs by which other members reach a member.",
            struct("A member.", {"memberName*": string("Its name."), "urls*": strings("Its URLs.")}),
        ),
    },
)

_BACKUP = struct(
    "Settings of the backups.",
    {
        "port": integer("Port of the program that makes them."),
        "tls": _tls("Certificates of this program."),
        "image": string("Its image."),
        "store": store("Where they are stored. Default: there are none."),
        "resources": _RESOURCES,
        "compression": struct(
            "How they are compressed.",
            {
                "enabled": boolean("Whether they are."),
                "policy": string("How it is done.", enum=["gzip", "lzw", "zlib"]),
            },
        ),
        "snapshotCompaction": struct(
            "How snapshots of changes are merged into a full one.",
            {
                "resources": raw("Requests and limits of the Job."),
                "eventsThreshold": integer("After how many changes.", bits=64),
                "triggerFullSnapshotThreshold": integer("Above how many changes etcd makes one instead.", bits=64),
            },
        ),
        "fullSnapshotSchedule": string("When full snapshots are made, as a cron expression."),
        "garbageCollectionPolicy": string("Which backups are removed.", enum=["Exponential", "LimitBased"]),
        "garbageCollectionPeriod": duration("How often backups are removed."),
        "maxBackupsLimitBasedGC": integer("How many full snapshots the policy LimitBased keeps."),
        "deltaSnapshotPeriod": duration("How often snapshots of changes are made."),
        "deltaSnapshotMemoryLimit": quantity("After which size of changes such a snapshot is made earlier."),
        "deltaSnapshotRetentionPeriod": duration("How long such snapshots are kept."),
        "etcdSnapshotTimeout": duration("How long a full snapshot may take."),
        "enableProfiling": boolean("Whether the program can be profiled."),
        "leaderElection": struct(
            "How the program finds out which member leads.",
            {
                "reelectionPeriod": duration("How often it looks."),
                "etcdConnectionTimeout": duration("How long an answer may take."),
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
                "autoCompactionMode": string("What the retention counts.", enum=["periodic", "revision"]),
                "autoCompactionRetention": string("How much of the history of keys is kept."),
            },
        ),
        "schedulingConstraints": struct(
            "Where Pods may run.",
            {
                "affinity": raw("As in a Pod."),
                "topologySpreadConstraints": array("As in a Pod.", raw("As in a Pod.")),
            },
        ),
        "replicas*": integer("Number of members: odd, or 0.", at_least=0),
        "priorityClassName": string("PriorityClass of the Pods."),
        "storageClass": string("StorageClass of the volumes."),
        "storageCapacity": quantity("Size of the volumes."),
        "volumeClaimTemplate": string("Name of the template of the volumes."),
        "memberNamePrefix": string("What names of members begin with."),
        "externallyManagedMemberAddresses": strings("Addresses of members that others run."),
        "runAsRoot": boolean("Whether the programs run as root."),
    },
)

_STATUS = struct(
    "What etcd-druid reports.",
    {
        "observedGeneration": OBSERVED_GENERATION,
        "etcd": struct(
            "StatefulSet of the members.",
            {
                "apiVersion": string("Group and version of its kind."),
                "kind*": string("Its kind."),
                "name*": string("Its name."),
            },
        ),
        "conditions": CONDITIONS,
        "serviceName": string("Name of the Service for clients."),
        "lastError": string("The error of the last reconciliation."),
        "lastErrors": array(
            "Errors of the last operation.",
            struct(
                "An error.",
                {
                    "code*": string("Its code."),
                    "description*": string("What went wrong."),
                    "observedAt*": time("When it was seen."),
                },
            ),
        ),
        "lastOperation": struct(
            "What was done last.",
            {
                "type*": string("What it is about."),
                "state*": string("How far it is."),
                "description*": string("The same for people."),
                "runID*": string("Identifies the reconciliation in logs."),
                "lastUpdateTime*": time("When anything of it changed the last time."),
            },
        ),
        "clusterSize": integer("Number of members, of former releases."),
        "replicas": integer("Number of Pods."),
        "currentReplicas": integer("Number of Pods of the current revision."),
        "readyReplicas": integer("Number of Pods that are ready."),
        "updatedReplicas": integer("Number of Pods that are up to date."),
        "ready": boolean("Whether all members are ready."),
        "labelSelector": raw("Selector of the Pods."),
        "selector": string("Selector of the Pods, as a text."),
        "members": array(
            "How its members are.",
            struct(
                "A member.",
                {
                    "name*": string("Its name."),
                    "id": string("Its id in etcd."),
                    "role": string("Leader or Member."),
                    "status*": string("Ready, NotReady or Unknown."),
                    "reason*": string("Why it is so."),
                    "lastTransitionTime*": time("When `status` changed the last time."),
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
