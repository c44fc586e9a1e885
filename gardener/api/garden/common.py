"""Types that several kinds share (spec 60, section 2)."""

from collections.abc import Callable
from typing import Any

from gardener.api.schema import (
    FORBIDDEN,
    LABEL,
    LONGEST_NAME,
    REQUIRED,
    Schema,
    array,
    integer,
    name,
    rule,
    string,
    string_map,
    strings,
    struct,
    time,
)

DNS_LABEL: Schema = {"type": "string", "maxLength": 63, "pattern": LABEL}
"""Name of an object."""


# --- reports of controllers

_CODES = strings(
    "Codes for what users can do something about, such as ERR_INFRA_UNAUTHORIZED or ERR_CONFIGURATION_PROBLEM."
    " Extensions may write codes of their own."
)

CONDITION = struct(
    "One aspect of the state, as controllers see it.",
    {
        "type*": string("Name of the aspect; every type stands in the list once.", at_most=316),
        "status*": string(
            "True: it is so. False: it is not so. Unknown: it could not be found out. Progressing: it is not so, but"
            " for less time than the threshold that is set for it.",
            enum=["True", "False", "Unknown", "Progressing"],
        ),
        "lastTransitionTime*": time("Time of the last change of `status`."),
        "lastUpdateTime*": time("Time of the last change of `reason`, `message` or `codes`."),
        "reason*": string("One word in camel case for why the status is what it is."),
        "message*": string("Human-readable details of the status and, if there is a problem, of its cause."),
        "codes": _CODES,
    },
)

LONGEST_CONDITIONS = 64


def conditions(description: str) -> Schema:
    return array(description, CONDITION, key="type", at_most=LONGEST_CONDITIONS)


LAST_ERROR = struct(
    "An error that happened in the last operation.",
    {
        "description*": string("Human-readable description of the error."),
        "taskID": string("Step of the operation in which it happened, where the operation has steps."),
        "codes": _CODES,
        "lastUpdateTime": time("Time of the last observation of the error."),
    },
)

LAST_OPERATION = struct(
    "Last operation of the controllers on this object.",
    {
        "description*": string("Human-readable description of the progress or result."),
        "lastUpdateTime*": time("Time of the last update of the operation."),
        "progress*": integer("Progress of the operation; percent.", at_least=0, at_most=100),
        "state*": string(
            "Processing: in work. Succeeded: done. Error: failed, and tried again. Failed: given up; it needs a"
            " change of the object, or the operation `retry`. Pending: waits for something else. Aborted: ended"
            " before it was done.",
            enum=["Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted"],
        ),
        "type*": string(
            "Type of the operation: Create, Reconcile (a later change), Delete, Migrate (leaving a seed), "
            "Restore (on another seed).",
            enum=["Create", "Reconcile", "Delete", "Migrate", "Restore"],
        ),
    },
)

GARDENER = struct(
    "The program that worked on this object last.",
    {
        "id*": string("Unique name of the process: its container, for example."),
        "name*": string("Host of the program: the name of the Pod, for example."),
        "version*": string("Release of the program, such as v1.104.0."),
    },
)

OBSERVED_GENERATION = integer(
    "`metadata.generation` that the controllers saw last. Less than that: they have yet to look at the latest change.",
    bits=64,
)


# --- references

SECRET_REFERENCE = struct(
    "A Secret.",
    {"name": string("Name of the Secret."), "namespace": string("Namespace of the Secret.")},
)


def secret_reference(description: str) -> Schema:
    """A Secret that must be named in full."""
    return struct(
        description,
        {"name*": name("Name of the Secret."), "namespace*": name("Namespace of the Secret.")},
    )


OBJECT_REFERENCE = struct(
    "An object of Kubernetes.",
    {
        "apiVersion": string("Group and version of its kind, `v1` for a Secret.", at_most=317),
        "kind": string("Kind of the object.", at_most=63),
        "namespace": string("Namespace of the object; empty if the kind has none.", at_most=63),
        "name": string("Name of the object.", at_most=LONGEST_NAME),
        "uid": string("UID of the object, to exclude a later one of the same name.", at_most=128),
        "resourceVersion": string("Resource version of the object, to select exactly this one.", at_most=128),
        "fieldPath": string("The part of the object that is meant, such as `spec.containers[0]`.", at_most=1024),
    },
)

CLOUD_PROFILE_REFERENCE = struct(
    "The cloud profile: which versions, machines, volumes and regions there are.",
    {
        "kind*": string(
            "CloudProfile (for all projects) or NamespacedCloudProfile (of this project).",
            enum=["CloudProfile", "NamespacedCloudProfile"],
        ),
        "name*": name("Name of the profile."),
    },
)

NAMED_RESOURCE_REFERENCE = struct(
    "An object of the project's namespace, under a name by which extensions can ask for it.",
    {
        "name*": string("Name under which it is known in this Shoot.", at_least=1, at_most=LONGEST_NAME),
        "resourceRef*": struct(
            "The object, in the namespace of the Shoot.",
            {
                "apiVersion": string("Group and version of its kind: v1.", enum=["v1"]),
                "kind*": string("Kind of the object.", enum=["ConfigMap", "Secret"]),
                "name*": string("Name of the object.", at_least=1),
            },
        ),
    },
)


def subject_fields() -> dict[str, Schema]:
    return {
        "kind*": string("User, Group or ServiceAccount.", at_most=63),
        "apiGroup": string(
            "Group of the kind. Default: rbac.authorization.k8s.io for User and Group, empty for ServiceAccount.",
            at_most=LONGEST_NAME,
        ),
        "name*": string(
            "Name of the user or the group as the API server knows it, or of the ServiceAccount.", at_most=1024
        ),
        "namespace": string("Namespace of the ServiceAccount; empty for the other kinds.", at_most=63),
    }


SUBJECT = struct("A user, a group, or a ServiceAccount.", subject_fields())


# --- selection of seeds

MOST_REQUIREMENTS, MOST_VALUES = 64, 256
"""Limits of a selector; each decision about a Shoot compares them with each Seed."""
LONGEST_LABEL = 317

_EXPRESSION = struct(
    "A requirement about one label.",
    {
        "key*": string("The key of the label that the selector applies to.", at_most=LONGEST_LABEL),
        "operator*": string(
            "Operator: In, NotIn (the value is, is not one of `values`), Exists or DoesNotExist (the label "
            "exists, does not exist)."
        ),
        "values": array(
            "Values for In and NotIn; empty for the other operators.",
            {"type": "string", "maxLength": LONGEST_NAME},
            at_most=MOST_VALUES,
        ),
    },
)


def _label_selector_fields() -> dict[str, Schema]:
    return {
        "matchLabels": string_map("Labels with the value that each must have.", at_most=MOST_REQUIREMENTS),
        "matchExpressions": array("Requirements, all of which must be met.", _EXPRESSION, at_most=MOST_REQUIREMENTS),
    }


def label_selector(description: str, **more: Any) -> Schema:
    """A label selector; an empty one selects everything."""
    return struct(description, _label_selector_fields(), **more)


def seed_selector(description: str) -> Schema:
    return struct(
        description,
        {
            **_label_selector_fields(),
            "providerTypes": strings(
                "Provider types that the seed may have; `*` stands for any. Default: that of the Shoot only.",
                at_most=MOST_REQUIREMENTS,
            ),
        },
    )


TOLERATION = struct(
    "A taint of Seeds that does not matter.",
    {
        "key*": string("Key of the taint.", at_least=1, at_most=317),
        "value": string("Value of the taint. Default: any value.", at_most=317),
    },
)


def tolerations(description: str) -> Schema:
    return array(description, TOLERATION, at_most=64)


# --- metadata inside of templates


def template_metadata(description: str) -> Schema:
    return struct(
        description,
        {
            "labels": string_map("Labels of the objects that are made."),
            "annotations": string_map("Annotations of the objects that are made."),
            "name": string("Name; empty where the controller finds one."),
            "finalizers": strings("Finalizers of the objects that are made."),
        },
    )


def provider_type(description: str) -> Schema:
    return string(description, at_least=1, at_most=63)


# --- charts

OCI_REPOSITORY = struct(
    "A chart in a registry: `ref` alone, or `repository` with `tag` or `digest`.",
    {
        "ref": string("All in one: `registry/repository:tag` or `registry/repository@sha256:...`.", at_most=1024),
        "repository": string("Registry and repository, without tag and digest.", at_most=1024),
        "tag": string("Tag in the repository.", at_most=128),
        "digest": string("Digest in the repository; wins over the tag. Begins with `sha256:`.", at_most=256),
    },
    rules=[
        rule("has(self.ref) || has(self.repository)", "must provide either ref or repository", reason=REQUIRED),
        rule(
            "has(self.ref) || !has(self.repository) || has(self.tag) || has(self.digest)",
            "must provide either tag or digest",
            reason=REQUIRED,
        ),
        *(
            rule(
                f"!has(self.ref) || !has(self.{field})",
                "must not be set together with ref",
                field=field,
                reason=FORBIDDEN,
            )
            for field in ("repository", "tag", "digest")
        ),
        rule("!has(self.digest) || self.digest.startsWith('sha256:')", "must start with 'sha256:'", field="digest"),
    ],
)


def signals(description: str, of: str, value: Callable[[str], Schema]) -> Schema:
    """Thresholds for the signals that a kubelet measures on its node.

    Args: of: start of each description; value: makes the schema of each.
    """
    return struct(
        description,
        {
            "memoryAvailable": value(f"{of} memory of the node."),
            "imageFSAvailable": value(f"{of} bytes of the file system of images."),
            "imageFSInodesFree": value(f"{of} inodes of the file system of images."),
            "nodeFSAvailable": value(f"{of} bytes of the root file system."),
            "nodeFSInodesFree": value(f"{of} inodes of the root file system."),
        },
    )
