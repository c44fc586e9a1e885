import msgspec

from gardener.api.extensions import BASTIONS
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource
from webhooks.handlers.extension_validation.rules.typed import Typed


class IPBlock(Typed):
    cidr: str = ""
    except_: list[str] | None = msgspec.field(name="except", default=None)


class BastionIngressPolicy(Typed):
    ip_block: IPBlock = IPBlock()


class BastionSpec(DefaultSpec):
    user_data: bytes | None = None
    ingress: list[BastionIngressPolicy] | None = None


class Bastion(Resource):
    spec: BastionSpec = BastionSpec()


BASTION = Kind(
    typed=Bastion,
    resource=BASTIONS,
    noun="bastion",
    required=("spec.type", "spec.userData", "spec.ingress"),
    immutable=("spec.type", "spec.userData"),
)
