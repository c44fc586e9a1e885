"""`status` of a Shoot."""

from gardener.api.garden.common import GARDENER, LAST_ERROR, LAST_OPERATION, OBSERVED_GENERATION, conditions
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    immutable_once_set,
    integer,
    string,
    strings,
    struct,
    time,
)


def _phases(description: str, *, is_on_nodes: bool = False) -> Schema:
    """Status of a rotation in two steps, between which users exchange their credentials."""
    reported = (
        "Preparing: the new credentials are being made, the old ones are valid, too. Prepared: users can"
        " exchange theirs, and then complete the rotation. Completing: the old ones are being removed."
        " Completed: only the new ones are valid."
    )
    phases = ["Preparing", "Prepared", "Completing", "Completed"]
    if is_on_nodes:
        reported = (
            f"{reported} PreparingWithoutWorkersRollout, WaitingForWorkersRollout: nodes are rolled out on request."
        )
        phases += ["PreparingWithoutWorkersRollout", "WaitingForWorkersRollout"]
    return struct(
        description,
        {
            "phase*": string(reported, enum=phases),
            "lastInitiationTime": time("Time of the last start of the rotation."),
            "lastInitiationFinishedTime": time("Time at which the new credentials were complete."),
            "lastCompletionTriggeredTime": time("Time of the last request for completion."),
            "lastCompletionTime": time("Time of the last completion."),
            **({"pendingWorkersRollouts": _PENDING} if is_on_nodes else {}),
        },
    )


_PENDING = array(
    "Worker pools whose nodes have credentials of before the rotation. Prepared comes when none is left.",
    struct(
        "A worker pool.",
        {
            "name*": string("Name of the worker pool."),
            "lastInitiationTime": time("Start of the rotation from which the credentials of its nodes come."),
        },
    ),
    at_most=256,
)


def _rotation(description: str) -> Schema:
    return struct(
        description,
        {
            "lastInitiationTime": time("Time of the last start of the rotation."),
            "lastCompletionTime": time("Time of the last completion."),
        },
    )


_ROTATION = struct(
    "Rotations of credentials, each on its own.",
    {
        "certificateAuthorities": _phases("Certificate authorities of the cluster.", is_on_nodes=True),
        "serviceAccountKey": _phases("The key that signs tokens of ServiceAccounts.", is_on_nodes=True),
        "etcdEncryptionKey": _phases("The key with which data in etcd is encrypted."),
        "kubeconfig": _rotation("The static token in the kubeconfig."),
        "sshKeypair": _rotation("The key pair for access to nodes."),
        "observability": _rotation("Credentials of monitoring and logging."),
    },
)

STATUS = struct(
    "State that the controllers report.",
    {
        "conditions": conditions(
            "Conditions of the cluster: APIServerAvailable, ControlPlaneHealthy, "
            "ObservabilityComponentsHealthy, EveryNodeReady (not if workerless), SystemComponentsHealthy."
        ),
        "constraints": conditions(
            "Constraints of operations: HibernationPossible, MaintenancePreconditionsSatisfied, "
            "CACertificateValiditiesAcceptable, CRDsWithProblematicConversionWebhooks, "
            "OldCACertificateUnused."
        ),
        "gardener": GARDENER,
        "hibernated": boolean(
            "Whether the cluster is hibernated; `spec.hibernation.enabled` is the desired state. Default: false.",
            default=False,
        ),
        "lastOperation": LAST_OPERATION,
        "lastErrors": array(
            "Errors of the last operation, one for each of its steps that failed.", LAST_ERROR, at_most=256
        ),
        "observedGeneration": OBSERVED_GENERATION,
        "observedOperationSequence": integer(
            "Last value of `operation.sequence` that the controllers observed. If it is less than that, an "
            "operation is due at once, even if changes of the spec wait for the maintenance time window.",
            bits=64,
        ),
        "retryCycleStartTime": time("Since when the last operation is tried. Too long ago: it fails for good."),
        "migrationStartTime": time("Time at which the migration to another Seed began."),
        "lastHibernationTriggerTime": time("Time at which a schedule last hibernated the cluster or woke it up."),
        "seedName": string("Seed on which the control plane is. Differs from the spec while it moves.", at_most=253),
        "technicalID": string("Name of the cluster in its Seed: its namespace there. Immutable once set.", at_most=63),
        "uid": string("Unique name of the cluster, which stays when it moves. Immutable once set.", at_most=128),
        "clusterIdentity": string("Name that no other cluster of any garden has. Immutable once set.", at_most=1024),
        "advertisedAddresses": array(
            "Addresses of the API server.",
            struct(
                "An address.",
                {
                    "name*": string("Name of the address: external, internal, service-account-issuer and so on."),
                    "url*": string("URL of the address."),
                },
            ),
            at_most=64,
        ),
        "credentials": struct("Credentials of the cluster.", {"rotation": _ROTATION}),
        "lastMaintenance": struct(
            "Result of the last maintenance in the time window.",
            {
                "description*": string("Description of the changes, or of the attempt."),
                "triggeredTime*": time("Time at which the maintenance began."),
                "state*": string("Processing, Succeeded or Failed.", at_least=1),
                "failureReason": string("Why it failed."),
            },
        ),
        "encryptedResources": strings("Resources beside Secrets that are encrypted in etcd now."),
        "networking": struct(
            "Networks as they are.",
            {
                "pods": strings("Addresses of Pods; CIDRs."),
                "nodes": strings("Addresses of nodes; CIDRs."),
                "services": strings("Addresses of Services; CIDRs."),
            },
        ),
    },
    rules=[
        immutable_once_set("uid", empty_is_unset=True),
        immutable_once_set("technicalID", empty_is_unset=True),
        immutable_once_set("clusterIdentity"),
    ],
)
