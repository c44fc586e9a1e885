"""CredentialsBinding: credentials of an infrastructure, of any kind, and the quotas of their users."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import CREDENTIALS_BINDINGS
from gardener.api.garden.common import provider_type
from gardener.api.garden.secret_binding import QUOTAS
from gardener.api.schema import immutable, name, rule, string, struct

CREDENTIALS_BINDING = Definition(
    resource=CREDENTIALS_BINDINGS,
    description="Selects the credentials to create machines, networks and volumes of Shoots, and the Quotas that apply "
    "to them. Shoots name the binding in `spec.credentialsBindingName`.",
    fields={
        "provider*": struct(
            "The infrastructure that the credentials are for. Immutable.",
            {"type*": provider_type("Type of the provider; exactly one.")},
        ),
        "credentialsRef*": struct(
            "The credentials: a Secret (apiVersion v1) or a WorkloadIdentity (apiVersion"
            " security.gardener.cloud/v1alpha1). Immutable.",
            {
                "apiVersion*": string(
                    "Group and version of its kind.", enum=["v1", "security.gardener.cloud/v1alpha1"]
                ),
                "kind*": string("Kind of the credentials.", enum=["Secret", "WorkloadIdentity"]),
                "name*": name("Name of the credentials."),
                "namespace": string("Namespace of the credentials. Default is that of the binding.", at_most=63),
            },
            rules=[
                rule(
                    "(self.apiVersion == 'v1') == (self.kind == 'Secret')",
                    "must be a Secret of v1 or a WorkloadIdentity of security.gardener.cloud/v1alpha1",
                    field="kind",
                )
            ],
        ),
        "quotas": QUOTAS,
    },
    rules=[
        immutable("provider"),
        immutable("credentialsRef"),
        immutable("quotas"),
        rule("!self.provider.type.contains(',')", "must specify only one provider type", field="provider.type"),
    ],
    columns=(
        Column("Provider", ".provider.type"),
        Column("APIVersion", ".credentialsRef.apiVersion"),
        Column("Kind", ".credentialsRef.kind"),
        Column("Name", ".credentialsRef.name"),
        AGE,
    ),
)
