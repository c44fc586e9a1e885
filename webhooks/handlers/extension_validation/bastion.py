from collections.abc import Iterator

import msgspec

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, immutable, need
from webhooks.handlers.extension_validation.typed import Typed


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


def _errors(bastion: Bastion) -> Iterator[FieldError]:
    yield from need("spec.type", bastion.spec.type)
    yield from need("spec.userData", bastion.spec.user_data)
    yield from need("spec.ingress", bastion.spec.ingress)


def _changes(new: Bastion, old: Bastion) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)
    yield from immutable("spec.userData", new.spec.user_data, old.spec.user_data)


BASTION = Kind(typed=Bastion, resource="bastions", noun="bastion", errors=_errors, changes=_changes)
