"""A bootstrap that is not finished: what it was made with is still there.

An annotation of the Secret with the kubeconfig remembers it from the moment when that is stored until the bootstrap
credentials are removed, so a process that dies in between leaves nothing behind.
"""

import json
from dataclasses import asdict, dataclass

from kube.objects import Object, annotations, text
from kube.resources import CLUSTER_ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS, Resource

ANNOTATION = "gardenlet.gardener.cloud/unfinished-bootstrap"
_TOKEN = "system:bootstrap:"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_BINDING = "gardener.cloud:system:seed-bootstrapper"
_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    request: str
    """Name of the CertificateSigningRequest."""
    user: str
    """Who made it, as the API server said."""
    bootstrap_uid: str
    """Of the Secret with the bootstrap kubeconfig."""

    def as_annotations(self) -> dict[str, str]:
        return {ANNOTATION: json.dumps(asdict(self))}


def unfinished(secret: Object | None) -> Unfinished | None:
    """What a Secret remembers; what can't be read is nothing."""
    try:
        said = json.loads(annotations(secret or {}).get(ANNOTATION, ""))
        return Unfinished(
            request=text(said["request"]), user=text(said["user"]), bootstrap_uid=text(said["bootstrap_uid"])
        )
    except (ValueError, LookupError, TypeError):
        return None


def credentials_of(user: str) -> list[tuple[Resource, str, str]]:
    """Kind, namespace and name of what a user bootstraps with; nothing of one who is known otherwise."""
    if user.startswith(_TOKEN) and (identity := user.removeprefix(_TOKEN)):
        return [(SECRETS, _NAMESPACE, f"bootstrap-token-{identity}")]
    if user.startswith(_SERVICE_ACCOUNT):
        namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        if colon and namespace and name:
            binding = (CLUSTER_ROLE_BINDINGS, "", f"{_BINDING}:{namespace}:{name}")
            return [(SERVICE_ACCOUNTS, namespace, name), binding]
    return []
