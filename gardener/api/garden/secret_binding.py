"""SecretBinding: credentials of an infrastructure, and the quotas of their users."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import SECRET_BINDINGS
from gardener.api.garden.common import OBJECT_REFERENCE, SECRET_REFERENCE, provider_type
from gardener.api.schema import array, but, immutable, immutable_once_set, name, struct, with_fields

QUOTAS = array(
    "Quotas that the Shoots with this binding must keep to, all of them; at most one for each scope. Immutable.",
    with_fields(
        but(OBJECT_REFERENCE, "A Quota."),
        {"name*": name("Name of the Quota.")},
    ),
    at_most=64,
)

SECRET_BINDING = Definition(
    resource=SECRET_BINDINGS,
    description="Selects the Secret with the credentials to create machines, networks and volumes of Shoots, and the "
    "Quotas that apply to them. Shoots name the binding in `spec.secretBindingName`."
    " CredentialsBinding can do the same and more.",
    fields={
        "provider*": struct(
            "The infrastructure that the credentials are for.",
            {
                "type*": provider_type(
                    "Type of the infrastructure; several, separated by commas, where the Secret fits all."
                )
            },
        ),
        "secretRef*": with_fields(
            but(
                SECRET_REFERENCE,
                "The Secret with the credentials. Default of the namespace: that of the binding. Immutable.",
            ),
            {"name*": name("Name of the Secret.")},
        ),
        "quotas": QUOTAS,
    },
    rules=[immutable("secretRef"), immutable("quotas"), immutable_once_set("provider")],
    columns=(
        Column("Secret Namespace", ".secretRef.namespace"),
        Column("Secret", ".secretRef.name"),
        Column("Provider", ".provider.type"),
        AGE,
    ),
)
