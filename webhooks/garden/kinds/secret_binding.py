"""SecretBindings: a Secret with credentials, and quotas."""

from collections.abc import Iterator

from gardener.api.garden import QUOTAS
from gardener.api.garden.secret_binding import SECRET_BINDING as DEFINITION
from kube.objects import mapping, text
from kube.resources import SECRETS
from webhooks.garden.common import credentials
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Right, Write


def default_namespaces(write: Write) -> None:
    credentials.default_namespaces(write, "secretRef")


def rights(write: Write) -> Iterator[Right]:
    if write.changed("secretRef"):
        reference = mapping(write.new.get("secretRef"))
        yield credentials.reading_right(write, "secretRef", SECRETS, reference, "a Secret")
    yield from credentials.quota_rights(write)


def secret_exists(write: Write) -> Iterator[Finding]:
    """The Secret exists."""
    reference = mapping(write.new.get("secretRef"))
    name, namespace = text(reference.get("name")), text(reference.get("namespace"))
    yield from exists(write.garden, "secretRef", SECRETS, name, namespace)


def deprecated(write: Write) -> Iterator[str]:
    if write.is_create:
        yield "SecretBinding is deprecated: use CredentialsBinding (security.gardener.cloud/v1alpha1)"


SECRET_BINDING = Kind(
    definition=DEFINITION,
    defaults=(default_namespaces, credentials.label_provider),
    references=(secret_exists, credentials.quota_errors),
    rights=(rights,),
    deprecations=(deprecated,),
    reads=(SECRETS, QUOTAS),
)
