"""Types that the kinds of etcd-druid share."""

from gardener.api.schema import Schema, array, string, struct, time

_SECRET = {"name": string("Name of the Secret."), "namespace": string("Namespace of the Secret.")}


def secret(description: str) -> Schema:
    return struct(description, _SECRET)


def secret_with_key(description: str) -> Schema:
    return struct(description, {**_SECRET, "dataKey": string("Key of the value in it.")})


def store(description: str) -> Schema:
    return struct(
        description,
        {
            "container": string("Name of the bucket."),
            "prefix*": string("Prefix of the backups in the bucket."),
            "provider": string("The object store: local, S3, GCS, ABS, Swift, ..."),
            "secretRef": secret("Secret with its credentials."),
            "endpointOverride": string("URL of the store, in place of the one that the provider has."),
        },
    )


CONDITIONS = array(
    "Conditions of the object.",
    struct(
        "One aspect of the state.",
        {
            "type*": string("Name of the aspect."),
            "status*": string("True, False or Unknown."),
            "lastTransitionTime*": time("Time of the last change of `status`."),
            "lastUpdateTime*": time("Time of the last change of the condition."),
            "reason*": string("One word in camel case for why the status is what it is."),
            "message*": string("Human-readable details."),
        },
    ),
)

LAST_ERRORS = array(
    "Errors of the last operation.",
    struct(
        "An error.",
        {
            "code*": string("Code of the error."),
            "description*": string("Description of the error."),
            "observedAt*": time("Time of the observation."),
        },
    ),
)

LAST_OPERATION = struct(
    "Last operation.",
    {
        "type*": string("Type of the operation."),
        "state*": string("State of the operation."),
        "description*": string("Human-readable details."),
        "runID*": string("Identifies the reconciliation in logs."),
        "lastUpdateTime*": time("Time of the last update."),
    },
)
