from collections.abc import Iterator

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, SecretReference, immutable, need
from webhooks.handlers.extension_validation.typed import Raw


class ControlPlaneSpec(DefaultSpec):
    infrastructure_provider_status: Raw = None
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class ControlPlane(Resource):
    spec: ControlPlaneSpec = ControlPlaneSpec()


def _errors(plane: ControlPlane) -> Iterator[FieldError]:
    yield from need("spec.type", plane.spec.type)
    yield from need("spec.region", plane.spec.region)
    yield from need("spec.secretRef.name", plane.spec.secret_ref.name)


def _changes(new: ControlPlane, old: ControlPlane) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)
    yield from immutable("spec.region", new.spec.region, old.spec.region)


CONTROL_PLANE = Kind(
    typed=ControlPlane,
    resource="controlplanes",
    noun="control plane",
    errors=_errors,
    changes=_changes,
)
