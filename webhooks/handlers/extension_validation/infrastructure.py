from collections.abc import Iterator

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, SecretReference, immutable, need


class InfrastructureSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()
    ssh_public_key: bytes | None = None


class Infrastructure(Resource):
    spec: InfrastructureSpec = InfrastructureSpec()


def _errors(infrastructure: Infrastructure) -> Iterator[FieldError]:
    yield from need("spec.type", infrastructure.spec.type)
    yield from need("spec.region", infrastructure.spec.region)
    yield from need("spec.secretRef.name", infrastructure.spec.secret_ref.name)


def _changes(new: Infrastructure, old: Infrastructure) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)
    yield from immutable("spec.region", new.spec.region, old.spec.region)


INFRASTRUCTURE = Kind(
    typed=Infrastructure,
    resource="infrastructures",
    noun="infrastructure",
    errors=_errors,
    changes=_changes,
)
