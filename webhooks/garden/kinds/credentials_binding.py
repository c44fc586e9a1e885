"""CredentialsBindings: credentials of any kind, and quotas."""

from collections.abc import Iterator

from gardener.api.garden import QUOTAS, WORKLOAD_IDENTITIES
from gardener.api.garden.credentials_binding import CREDENTIALS_BINDING as DEFINITION
from kube.objects import Object, mapping, text
from kube.resources import SECRETS, Resource
from webhooks.garden.common import credentials
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Right, Write


def default_namespaces(write: Write) -> None:
    credentials.default_namespaces(write, "credentialsRef")


def rights(write: Write) -> Iterator[Right]:
    if write.changed("credentialsRef"):
        resource, reference = _credentials(write)
        yield credentials.reading_right(write, "credentialsRef", resource, reference, f"a {resource.kind}")
    yield from credentials.quota_rights(write)


def credentials_exist(write: Write) -> Iterator[Finding]:
    """The credentials exist."""
    resource, reference = _credentials(write)
    name, namespace = text(reference.get("name")), text(reference.get("namespace"))
    yield from exists(write.garden, "credentialsRef", resource, name, namespace)


def _credentials(write: Write) -> tuple[Resource, Object]:
    """Kind of the credentials, and their reference; the schema permits no other kinds."""
    reference = mapping(write.new.get("credentialsRef"))
    return WORKLOAD_IDENTITIES if reference.get("kind") == WORKLOAD_IDENTITIES.kind else SECRETS, reference


CREDENTIALS_BINDING = Kind(
    definition=DEFINITION,
    defaults=(default_namespaces, credentials.label_provider),
    references=(credentials_exist, credentials.quota_errors),
    rights=(rights,),
    reads=(SECRETS, WORKLOAD_IDENTITIES, QUOTAS),
)
