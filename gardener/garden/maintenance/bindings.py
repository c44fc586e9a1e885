"""The CredentialsBinding that replaces a SecretBinding, which newer versions of Kubernetes forbid."""

from collections.abc import Iterable

from gardener.api.garden import CREDENTIALS_BINDINGS
from kube.objects import Object, key, mapping, mappings, metadata, text
from kube.resources import SECRETS

_PREFIX = "force-migrated-"


def replacement(secret_binding: Object, others: Iterable[Object]) -> Object | None:
    """A CredentialsBinding with the same Secret and Quotas: one of the namespace, or a new one, which has no uid.

    None if another CredentialsBinding has the name of the new one.

    Args: others: CredentialsBindings, of all namespaces.
    """
    own = key(secret_binding)
    named = {key(each).name: each for each in others if key(each).namespace == own.namespace}
    wanted = _new(secret_binding)
    name = key(wanted).name
    found = [each for each in named.values() if _means(each) == _means(wanted)]
    if found:
        return min(found, key=lambda each: (key(each).name != name, key(each).name))
    return None if name in named else wanted


def _new(secret_binding: Object) -> Object:
    own, secret = key(secret_binding), mapping(secret_binding.get("secretRef"))
    quotas = mappings(secret_binding.get("quotas"))
    return {
        **CREDENTIALS_BINDINGS.type_meta,
        "metadata": {
            "name": f"{_PREFIX}{own.name}",
            "namespace": own.namespace,
            "labels": {"credentialsbinding.gardener.cloud/status": "force-migrated"},
        },
        "provider": mapping(secret_binding.get("provider")),
        "credentialsRef": {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "name": text(secret.get("name")),
            "namespace": text(secret.get("namespace")) or own.namespace,
        },
        **({"quotas": quotas} if quotas else {}),
    }


def _means(binding: Object) -> tuple[object, ...]:
    """Content of a binding without its name."""
    namespace, credentials = key(binding).namespace, mapping(binding.get("credentialsRef"))
    quotas = {_named(each, namespace) for each in mappings(binding.get("quotas"))}
    kind = (credentials.get("apiVersion"), credentials.get("kind"))
    return (mapping(binding.get("provider")).get("type"), kind, _named(credentials, namespace), frozenset(quotas))


def _named(reference: Object, namespace: str) -> tuple[str, str]:
    return text(reference.get("namespace")) or namespace, text(reference.get("name"))


def is_new(binding: Object) -> bool:
    return "uid" not in metadata(binding)
