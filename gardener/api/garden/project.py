"""Project: a namespace with members, in which Shoots live."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import PROJECTS
from gardener.api.garden.common import (
    DNS_LABEL,
    OBSERVED_GENERATION,
    SUBJECT,
    label_selector,
    subject_fields,
    tolerations,
)
from gardener.api.schema import (
    array,
    boolean,
    but,
    immutable_once_set,
    not_removed,
    rule,
    string,
    strings,
    struct,
    time,
)

LONGEST_NAME = 10
"""Characters. Names of namespaces in seeds and of domains start with it."""

_MEMBER = struct(
    "A member, and what it may do.",
    {
        **subject_fields(),
        "role": string(
            "A role; use `roles`. It is here because clients of the first release read it. Default: viewer, if there"
            " are no roles.",
        ),
        "roles": strings(
            "Roles of the member. owner: all, including the deletion of the project. admin: Shoots, Secrets "
            "and most else in the namespace. uam: manage members. serviceaccountmanager: manage "
            "ServiceAccounts. viewer: read all but Secrets. extension:NAME: permissions that ClusterRoles "
            "with that name add.",
            at_most=64,
        ),
    },
)

_SPEC = struct(
    "Members, purpose and settings of the project.",
    {
        "createdBy": but(SUBJECT, "Creator of the project, as authenticated by the API server. Immutable once set."),
        "description": string("Human-readable description of the project.", at_least=1),
        "owner": but(
            SUBJECT,
            "Whom to ask, and who may do everything. Always a member, too. Default: the first member with the role"
            " `owner`, else who created the project. Cannot be removed.",
        ),
        "purpose": string("Human-readable purpose of the project.", at_least=1),
        "members": array(
            "Members of the project and their roles. Each member occurs once; one of them has the role `owner`.",
            _MEMBER,
            at_most=1024,
        ),
        "namespace": string(
            "The namespace of the project: `garden`, or a name that begins with `garden-`. It is made if it does not "
            "exist. Default: a name that the controller finds. Immutable once set.",
            at_most=63,
            pattern=DNS_LABEL["pattern"],
        ),
        "tolerations": struct(
            "Tolerated taints: Shoots of the project may use Seeds with them.",
            {
                "defaults": tolerations(
                    "Tolerations that every new Shoot of the project gets. Each must be allowed by the whitelist."
                ),
                "whitelist": tolerations(
                    "Tolerations that Shoots of the project may have: by key, or by key and value. Who may not"
                    " `modify-spec-tolerations-whitelist` cannot change it. Default: none."
                ),
            },
        ),
        "dualApprovalForDeletion": array(
            "Objects whose deletion requires two people: one confirms, another deletes.",
            struct(
                "Objects that two people have to delete.",
                {
                    "resource*": string("Resource of the objects: shoots.", enum=["shoots"]),
                    "selector*": label_selector("Labels of the objects. An empty selector means all."),
                    "includeServiceAccounts": boolean(
                        "Whether the rule is about deletions by ServiceAccounts, too. Unless it is false, it is."
                    ),
                },
            ),
            key="resource",
            at_most=16,
        ),
    },
    rules=[
        immutable_once_set("createdBy"),
        immutable_once_set("namespace"),
        not_removed("owner", "owner cannot be reset"),
        rule(
            "!has(self.__namespace__) || self.__namespace__ != 'gardener-system-seed-lease'",
            "Project namespace gardener-system-seed-lease is reserved by Gardener",
            field="namespace",
        ),
    ],
)

_STATUS = struct(
    "State that the controllers report.",
    {
        "observedGeneration": OBSERVED_GENERATION,
        "phase": string(
            "Pending: to be set up. Ready: the namespace and the rights are there. Failed: something is wrong, see"
            " the Events. Terminating: being deleted.",
            enum=["Pending", "Ready", "Failed", "Terminating"],
        ),
        "staleSinceTimestamp": time("Since when the project is not used: no Shoots, Secrets, or other activity."),
        "staleAutoDeleteTimestamp": time("Time at which the project is deleted because it is unused."),
        "lastActivityTimestamp": time("Time of the last activity in the project."),
    },
    rules=[not_removed("phase", "phase cannot be updated to an empty string")],
)

PROJECT = Definition(
    resource=PROJECTS,
    description="A team: members with roles, and a namespace with their Shoots, credentials and quotas.",
    name={"type": "string", "maxLength": LONGEST_NAME},
    rules=[
        rule(
            "!self.metadata.name.contains('--')", "name may not contain two consecutive hyphens", field="metadata.name"
        )
    ],
    fields={"spec": but(_SPEC, default={}), "status": _STATUS},
    selectable=("spec.namespace",),
    columns=(
        Column("Namespace", ".spec.namespace"),
        Column("Status", ".status.phase"),
        Column("Owner", ".spec.owner.name"),
        Column("Creator", ".spec.createdBy.name"),
        AGE,
    ),
)
