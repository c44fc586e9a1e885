from gardener.api.extensions import INFRASTRUCTURES
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference


class InfrastructureSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()
    ssh_public_key: bytes | None = None


class Infrastructure(Resource):
    spec: InfrastructureSpec = InfrastructureSpec()


INFRASTRUCTURE = Kind(
    typed=Infrastructure,
    resource=INFRASTRUCTURES,
    noun="infrastructure",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)
