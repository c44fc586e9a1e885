from gardener.api.extensions import EXTENSIONS
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource


class ExtensionSpec(DefaultSpec):
    pass


class Extension(Resource):
    spec: ExtensionSpec = ExtensionSpec()


EXTENSION = Kind(
    typed=Extension, resource=EXTENSIONS, noun="extension", required=("spec.type",), immutable=("spec.type",)
)
