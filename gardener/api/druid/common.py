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
            "prefix*": string("Where in the bucket."),
            "provider": string("The object store: local, S3, GCS, ABS, Swift, ..."),
            "secretRef": secret("Secret with its credentials."),
            "endpointOverride": string("URL of the store, in place of the one that the provider has."),
        },
    )


CONDITIONS = array(
    "How it is.",
    struct(
        "One aspect of the state.",
        {
            "type*": string("Name of the aspect."),
            "status*": string("True, False or Unknown."),
            "lastTransitionTime*": time("When `status` changed the last time."),
            "lastUpdateTime*": time("When anything of it changed the last time."),
            "reason*": string("One word in camel case for why the status is what it is."),
            "message*": string("The same for people."),
        },
    ),
)
