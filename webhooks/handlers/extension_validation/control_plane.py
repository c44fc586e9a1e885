from gardener.api.extensions import CONTROL_PLANES
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference
from webhooks.handlers.extension_validation.rules.typed import Raw


class ControlPlaneSpec(DefaultSpec):
    infrastructure_provider_status: Raw = None
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class ControlPlane(Resource):
    spec: ControlPlaneSpec = ControlPlaneSpec()


CONTROL_PLANE = Kind(
    typed=ControlPlane,
    resource=CONTROL_PLANES,
    noun="control plane",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)
