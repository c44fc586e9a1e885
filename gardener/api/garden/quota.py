"""Quota: limits for the Shoots of a binding."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import QUOTAS
from gardener.api.garden.common import OBJECT_REFERENCE
from gardener.api.schema import but, immutable, integer, mapping, quantity, rule, struct

_SPEC = struct(
    "Limits of resources and of the lifetime of Shoots.",
    {
        "scope*": but(
            OBJECT_REFERENCE,
            "Scope: Shoots that are counted together, by apiVersion and kind: all of the project "
            "(core.gardener.cloud/v1beta1, Project), or all that use the same credentials, in any project "
            "(v1, Secret; or security.gardener.cloud/v1alpha1, WorkloadIdentity). Immutable.",
        ),
        "metrics*": mapping(
            "Limits by name: cpu, gpu (cores and devices of all worker nodes), memory (bytes), storage.standard,"
            " storage.premium (bytes of volumes of that class), loadbalancer (number). Worker pools count with their"
            " maximum. What has no name here is not limited.",
            quantity("The limit, 0 or more."),
            at_most=64,
        ),
        "clusterLifetimeDays": integer(
            "Days until a Shoot is deleted, counted from its creation or from the last extension. Default: no limit."
        ),
    },
    rules=[
        immutable("scope"),
        rule(
            "has(self.scope.apiVersion) && has(self.scope.kind) && ("
            "(self.scope.kind == 'Project' && self.scope.apiVersion.startsWith('core.gardener.cloud/'))"
            " || (self.scope.kind == 'Secret' && self.scope.apiVersion == 'v1') || (self.scope.kind =="
            " 'WorkloadIdentity' && self.scope.apiVersion.startsWith('security.gardener.cloud/')))",
            "must be a Project of core.gardener.cloud, a Secret of v1, or a WorkloadIdentity of"
            " security.gardener.cloud",
            field="scope",
        ),
    ],
)

QUOTA = Definition(
    resource=QUOTAS,
    description="Limits what the Shoots of a project, or of credentials, may use together, and how long they live."
    " It counts where a SecretBinding or a CredentialsBinding names it.",
    fields={"spec*": _SPEC},
    columns=(
        Column("Scope API", ".spec.scope.apiVersion"),
        Column("Scope", ".spec.scope.kind"),
        Column("Cluster Lifetime", ".spec.clusterLifetimeDays", "integer", description="Lifetime in days."),
        AGE,
    ),
)
