"""An unfinished bootstrap: its credentials still exist.

An annotation of the Secret with the kubeconfig records it from the time the kubeconfig is stored until the bootstrap
credentials are removed, so that a process that dies in between leaves nothing behind.
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
    """Creator of the request, as reported by the API server."""
    bootstrap_uid: str
    """Uid of the Secret with the bootstrap kubeconfig."""

    def as_annotations(self) -> dict[str, str]:
        return {ANNOTATION: json.dumps(asdict(self))}


def unfinished(secret: Object | None) -> Unfinished | None:
    """Return the bootstrap recorded in a Secret; None if absent or unreadable."""
    try:
        reported = json.loads(annotations(secret or {}).get(ANNOTATION, ""))
        return Unfinished(
            request=text(reported["request"]),
            user=text(reported["user"]),
            bootstrap_uid=text(reported["bootstrap_uid"]),
        )
    except (ValueError, LookupError, TypeError):
        return None


def credentials_of(user: str) -> list[tuple[Resource, str, str]]:
    """Kind, namespace and name of the bootstrap credentials of a user; empty for other kinds of users."""
    if user.startswith(_TOKEN) and (identity := user.removeprefix(_TOKEN)):
        return [(SECRETS, _NAMESPACE, f"bootstrap-token-{identity}")]
    if user.startswith(_SERVICE_ACCOUNT):
        namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        if colon and namespace and name:
            binding = (CLUSTER_ROLE_BINDINGS, "", f"{_BINDING}:{namespace}:{name}")
            return [(SERVICE_ACCOUNTS, namespace, name), binding]
    return []
