"""Rights of all users of the garden, from roles that are bound to `system:authenticated`.

The seed authorizer leaves these requests of gardenlets to RBAC.
"""

from gardener.api import garden
from gardener.rights.model import ALL, READ, Right, Table
from gardener.rights.requests import Attributes
from kube import resources as kubernetes
from kube.resources import Resource

_CREATE = frozenset({"create"})
_AUTHENTICATION = garden.AUTHENTICATION_API.partition("/")[0]
ISSUED: tuple[tuple[Resource, str], ...] = (
    (garden.SHOOTS, "adminkubeconfig"),
    (garden.SHOOTS, "viewerkubeconfig"),
    (garden.WORKLOAD_IDENTITIES, "token"),
)
"""Subresources by which credentials are issued, in Gardener's own API server."""
_LOGIN = Resource(_AUTHENTICATION, "v1alpha1", "Login", "login", namespaced=False)
TOKEN_SERVER: tuple[tuple[Resource, str], ...] = (
    *(
        (Resource(_AUTHENTICATION, "v1alpha1", kind.kind, kind.plural, namespaced=True), subresource)
        for kind, subresource in ISSUED
    ),
    # An API server takes the group in a path such as `.../login/apis/GROUP/...` for a subresource.
    *((_LOGIN, group) for group in dict.fromkeys(kind.group for kind, _ in ISSUED)),
)
"""Requests for the token server, which requires the right in the API group of the object."""

TABLE = Table(
    (
        *(
            Right(kind, READ, ALL)
            for kind in (
                garden.CLOUD_PROFILES,
                garden.EXPOSURE_CLASSES,
                garden.SEEDS,
                kubernetes.CUSTOM_RESOURCE_DEFINITIONS,
            )
        ),
        *(
            Right(kind, _CREATE, ALL)
            for kind in (
                kubernetes.SELF_SUBJECT_ACCESS_REVIEWS,
                kubernetes.SELF_SUBJECT_REVIEWS,
                kubernetes.SELF_SUBJECT_RULES_REVIEWS,
                kubernetes.TOKEN_REVIEWS,
            )
        ),
        *(Right(kind, _CREATE, ALL, subresource=subresource) for kind, subresource in TOKEN_SERVER),
    )
)

PATHS = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version")
"""URLs that are not about objects, which all users may get, including paths below: Kubernetes' role of discovery."""


def may_get(requested: Attributes) -> bool:
    """Whether all users may send a request for a URL that is not about objects."""
    return requested.verb == "get" and any(f"{requested.path}/".startswith(f"{path}/") for path in PATHS)
