"""ControllerDeployments: installation of extensions."""

from collections.abc import Iterator

from gardener.api.garden.controller_deployment import CONTROLLER_DEPLOYMENT as DEFINITION
from kube.objects import Object, annotations, text
from kube.validation import forbidden, invalid, required
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write

TYPE = "migration.controllerdeployment.gardener.cloud/type"
"""Annotation of v1 with the type of v1beta1, unless it is helm."""
PROVIDER_CONFIG = "migration.controllerdeployment.gardener.cloud/providerConfig"
"""Annotation of v1: the `providerConfig` of v1beta1 for such a type, as JSON."""
_DIGEST_PREFIX = "sha256:"


def errors(write: Write) -> Iterator[Finding]:
    helm, custom = write.new.get("helm"), annotations(write.new).get(TYPE)
    if helm is None:
        if not custom:
            yield required("helm", "must use either helm or a custom deployment configuration")
        return
    if custom:
        yield forbidden("helm", "must use either helm or a custom deployment configuration")
    if (repository := helm.get("ociRepository")) is not None:
        yield from repository_errors("helm.ociRepository", repository)


def repository_errors(path: str, repository: Object) -> Iterator[Finding]:
    ref, name = text(repository.get("ref")), text(repository.get("repository"))
    tag, digest = text(repository.get("tag")), text(repository.get("digest"))
    if ref:
        for field in ("repository", "tag", "digest"):
            if repository.get(field):
                yield forbidden(f"{path}.{field}", "must not be set if ref is set")
        return
    if not name:
        yield required(path, "must provide either ref or repository")
    elif not (tag or digest):
        yield required(path, "must provide a tag or a digest of the repository")
    if digest and not digest.startswith(_DIGEST_PREFIX):
        yield invalid(f"{path}.digest", digest, f"must start with '{_DIGEST_PREFIX}'")


CONTROLLER_DEPLOYMENT = Kind(definition=DEFINITION, checks=(errors,))
