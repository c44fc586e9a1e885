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
            "lastInitiationTime": time("When the rotation was started the last time."),
            "lastInitiationFinishedTime": time("When the new credentials were there."),
            "lastCompletionTriggeredTime": time("When the completion was last requested."),
            "lastCompletionTime": time("When the last rotation was complete."),
            **({"pendingWorkersRollouts": _PENDING} if is_on_nodes else {}),
        },
    )


_PENDING = array(
    "Worker pools whose nodes have credentials of before the rotation. Prepared comes when none is left.",
    struct(
        "A worker pool.",
        {
            "name*": string("Its name."),
            "lastInitiationTime": time("When the rotation was started whose credentials its nodes have."),
        },
    ),
    at_most=256,
)


def _rotation(description: str) -> Schema:
    return struct(
        description,
        {
            "lastInitiationTime": time("When the rotation was started the last time."),
            "lastCompletionTime": time("When the last rotation was complete."),
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
    "What the controllers report.",
    {
        "conditions": conditions(
            "How the cluster is: APIServerAvailable, ControlPlaneHealthy, ObservabilityComponentsHealthy,"
            " EveryNodeReady (not if workerless), SystemComponentsHealthy."
        ),
        "constraints": conditions(
            "What is possible: HibernationPossible, MaintenancePreconditionsSatisfied,"
            " CACertificateValiditiesAcceptable, CRDsWithProblematicConversionWebhooks, OldCACertificateUnused."
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
            "`operation.sequence` that the controllers saw last. Less than that: an operation is to be done at once,"
            " even if changes of the spec wait for the maintenance time window.",
            bits=64,
        ),
        "retryCycleStartTime": time("Since when the last operation is tried. Too long ago: it fails for good."),
        "migrationStartTime": time("When the move to another Seed began."),
        "lastHibernationTriggerTime": time("When a schedule hibernated the cluster or woke it up the last time."),
        "seedName": string("Seed on which the control plane is. Differs from the spec while it moves.", at_most=253),
        "technicalID": string("Name of the cluster in its Seed: its namespace there. Immutable once set.", at_most=63),
        "uid": string("Unique name of the cluster, which stays when it moves. Immutable once set.", at_most=128),
        "clusterIdentity": string("Name that no other cluster of any garden has. Immutable once set.", at_most=1024),
        "advertisedAddresses": array(
            "Where the API server can be reached.",
            struct(
                "An address.",
                {
                    "name*": string("What it is for: external, internal, service-account-issuer and so on."),
                    "url*": string("Its URL."),
                },
            ),
            at_most=64,
        ),
        "credentials": struct("Credentials of the cluster.", {"rotation": _ROTATION}),
        "lastMaintenance": struct(
            "What the last maintenance in the time window did, or why it failed.",
            {
                "description*": string("What was done, or tried."),
                "triggeredTime*": time("When it began."),
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
