"""Gardener's own access to a Shoot: two kubeconfigs, whose tokens the resource manager renews.

gardener            with the public host name
gardener-internal   with the Service in the seed
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from components.access import cluster_role_binding
from components.control_plane import access_secret, in_shoot
from kube.kubeconfigs import kubeconfig
from kube.objects import Object, mapping, mappings, text

EXTERNAL, INTERNAL = "gardener", "gardener-internal"
"""Names of the Secrets, and of the ServiceAccounts in the Shoot."""
NAMES = (EXTERNAL, INTERNAL)
MANAGED_RESOURCE = "shoot-core-gardeneraccess"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of the kubeconfigs.

    Attributes:
        servers: URL of the API server, by name of the Secret.
        ca_bundle: of the Shoot's authority, PEM.
        tokens: current tokens in the Secrets, see `token_in`.
    """

    namespace: str
    servers: Mapping[str, str]
    ca_bundle: bytes
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)


def objects(values: Values) -> list[Object]:
    rights = cluster_role_binding(
        "gardener.cloud:system:gardener", *NAMES, namespace="kube-system", role="cluster-admin"
    )
    return [
        *(access_secret(name, values.namespace, name=name, kubeconfig=_kubeconfig(values, name)) for name in NAMES),
        *in_shoot(MANAGED_RESOURCE, [rights], namespace=values.namespace, keep_objects=True),
    ]


def server_of(name: str, *, host: str, namespace: str) -> str:
    """Args: host: of the API server. namespace: of the Shoot, in the seed."""
    return f"https://{host}" if name == EXTERNAL else f"https://kube-apiserver.{namespace}.svc"


def token_in(secret: Object | None) -> str:
    """Token that the requestor has put into the kubeconfig of a Secret; empty if there is none yet."""
    encoded = text(mapping((secret or {}).get("data")).get("kubeconfig"))
    try:
        config = yaml.safe_load(base64.b64decode(encoded)) if encoded else None
    except (ValueError, yaml.YAMLError):
        return ""  # is overwritten
    user, *_ = mappings(mapping(config).get("users")) or [{}]
    return text(mapping(user.get("user")).get("token"))


def _kubeconfig(values: Values, name: str) -> str:
    token = values.tokens.get(name, "")
    user = {"token": token} if token else {}
    content = kubeconfig(values.namespace, server=values.servers[name], ca_bundle=values.ca_bundle, user=user)
    return base64.b64encode(content).decode()
