"""Secrets in a garden that are bootstrap tokens: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/."""

import base64
from datetime import datetime

from gardener.garden.seed_graph import TOKEN_PREFIX
from kube.clock import format_time
from kube.objects import Object
from kube.resources import SECRETS

TOKEN_NAMESPACE = "kube-system"
_TYPE = "bootstrap.kubernetes.io/token"


def token_secret(
    identity: str, *, secret: str, description: str, extra_groups: str = "", expires: datetime | None = None
) -> Object:
    """Build the Secret.

    Args:
        identity: public part of the token, 6 letters or digits.
        secret: secret part, 16 letters or digits.
        description: purpose of the token.
        extra_groups: groups besides the default one, separated by commas.
        expires: end of the validity; None: it does not end.
    """
    data = {
        "description": description,
        "token-id": identity,
        "token-secret": secret,
        **({"expiration": format_time(expires)} if expires else {}),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        **({"auth-extra-groups": extra_groups} if extra_groups else {}),
    }
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    meta = {"name": f"{TOKEN_PREFIX}{identity}", "namespace": TOKEN_NAMESPACE}
    return {**SECRETS.type_meta, "metadata": meta, "type": _TYPE, "data": encoded}
