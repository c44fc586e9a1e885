from collections.abc import Sequence

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, immutable, need


class ExtensionSpec(DefaultSpec):
    pass


class Extension(Resource):
    spec: ExtensionSpec = ExtensionSpec()


def _errors(extension: Extension) -> Sequence[FieldError]:
    return need("spec.type", extension.spec.type)


def _changes(new: Extension, old: Extension) -> Sequence[FieldError]:
    return immutable("spec.type", new.spec.type, old.spec.type)


EXTENSION = Kind(typed=Extension, resource="extensions", noun="extension", errors=_errors, changes=_changes)
