"""Bootstrap of an installed gardenlet: a bootstrap token, or the token of a ServiceAccount."""

import base64
from datetime import datetime, timedelta

from agent.gardenlet.bootstrap.rules.certificate import Life
from gardener.garden import bootstrap_tokens
from gardener.garden.seed_graph import TOKEN_PREFIX
from gardener.garden.seeds import (
    BOOTSTRAP_ROLE,
    bootstrap_account,
    bootstrap_binding,
    bootstrap_token_id,
)
from kube.clock import time_or_none
from kube.objects import Key, Object, mapping, string_map, text
from kube.paths import at
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS, Resource

TOKEN, ACCOUNT, NONE = "BootstrapToken", "ServiceAccount", "None"
_LIFETIME = timedelta(hours=24)


def token_name(owner: Key) -> str:
    return f"{TOKEN_PREFIX}{bootstrap_token_id(owner)}"


def token_of(secret: Object, now: datetime, *, group: str) -> str:
    """Token in a Secret; empty if it has expired, or has other groups."""
    found = _decoded(secret)
    if group and found.get("auth-extra-groups") != group:
        return ""
    expires = time_or_none(found.get("expiration", ""))
    is_whole = found.get("token-id") and found.get("token-secret")
    return f"{found['token-id']}.{found['token-secret']}" if is_whole and expires and expires > now else ""


def token_secret(kind: Resource, owner: Key, *, secret: str, group: str, now: datetime) -> Object:
    """Build the Secret of a bootstrap token.

    Args:
        kind: of the owner.
        owner: its name.
        secret: 16 letters or digits.
        group: extra group of the token; empty for the default group.
        now: the current time.
    """
    described = f"{kind.api_version}.{kind.kind} resource {owner.namespace}/{owner.name}"
    return bootstrap_tokens.token_secret(
        bootstrap_token_id(owner),
        secret=secret,
        description=f"A bootstrap token for the Gardenlet for {described}.",
        extra_groups=group,
        expires=now + _LIFETIME,
    )


def secret_part(secret: Object) -> str:
    """Secret part of an expired token, which is reused; empty if there is none."""
    return _decoded(secret).get("token-secret", "")


def account(owner: Key) -> Object:
    where = bootstrap_account(owner)
    return {**SERVICE_ACCOUNTS.type_meta, "metadata": {"name": where.name, "namespace": where.namespace}}


def binding(owner: Key) -> Object:
    where = bootstrap_account(owner)
    return {
        **CLUSTER_ROLE_BINDINGS.type_meta,
        "metadata": {"name": bootstrap_binding(where)},
        "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": BOOTSTRAP_ROLE},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": where.name, "namespace": where.namespace}],
    }


def has_expired(seed: Object | None, stored: Life | None, now: datetime) -> bool:
    """Whether the gardenlet of a Seed is locked out.

    `stored` is the validity of the certificate in its cluster, which may be newer than in the status of the Seed.
    """
    expires = time_or_none(text(at(mapping(seed), "status", "clientCertificateExpirationTimestamp")))
    if expires is None or expires > now:
        return False
    return stored is None or stored.is_over(now)


def _decoded(secret: Object) -> dict[str, str]:
    data = string_map(secret.get("data"))
    try:
        return {name: base64.b64decode(value).decode() for name, value in data.items()}
    except ValueError:
        return {}
