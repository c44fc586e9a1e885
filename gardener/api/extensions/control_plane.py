"""ControlPlane: additions of an infrastructure to the control plane of a Shoot."""

from gardener.api.definition import Column
from gardener.api.extensions import CONTROL_PLANES
from gardener.api.extensions.common import CREDENTIALS, INFRASTRUCTURE_STATUS, REGION_COLUMN, definition, region
from gardener.api.schema import immutable, immutable_once_set, string

CONTROL_PLANE = definition(
    CONTROL_PLANES,
    "Provider-specific part of a Shoot's control plane, such as the cloud controller manager.",
    spec={
        "purpose": string(
            "Purpose: normal (the components; the default), or exposure (access to the API server). "
            "Immutable once set.",
            enum=["normal", "exposure"],
        ),
        "infrastructureProviderStatus": INFRASTRUCTURE_STATUS,
        "region*": region("the Shoot"),
        "secretRef*": CREDENTIALS,
    },
    columns=(Column("Purpose", ".spec.purpose"), REGION_COLUMN),
    rules=[immutable("region"), immutable_once_set("purpose")],
)
