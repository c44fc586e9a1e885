"""Credentials in the garden with which an installed gardenlet requests its certificate."""

import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import orjson

from agent.gardenlet.bootstrap.rules.kubeconfig import configured_authority
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.rules import bootstrap
from gardener.garden.bootstrap_tokens import TOKEN_NAMESPACE
from gardener.garden.seeds import BootstrapToken, bootstrap_account
from kube.kubeconfigs import kubeconfig
from kube.objects import Key, Object, mapping, metadata, text, uid
from kube.paths import mapping_at
from kube.resources import CLUSTER_ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS, Resource
from kube.runtime.controller import ReconcileError
from process.clusters import Cluster

_NAME = "gardenlet"
"""Name of cluster, user and context."""
_LETTERS = string.ascii_lowercase + string.digits
_TOKEN_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Object and bootstrap method of a gardenlet."""

    kind: Resource
    key: Key
    way: str


def credentials_of(context: Context) -> "Credentials":
    # Our garden allows only this group, not every bootstrap token, to request the certificate of a gardenlet. The
    # original allows every token, and rejects tokens with further groups.
    issuer = context.seed_name if context.api.has_own_fields else ""
    return Credentials(garden=context.garden, issuer=issuer, clock=context.clock)


@dataclass(eq=False, slots=True, kw_only=True)
class Credentials:
    """Source of bootstrap credentials.

    Args:
        issuer: name of the own Seed for the groups of bootstrap tokens; empty if the garden wants no groups.
    """

    garden: Cluster
    issuer: str
    clock: Callable[[], datetime]

    async def kubeconfig(self, owner: Owner, config: Object) -> str:
        """Return the bootstrap kubeconfig for a gardenlet with this `config`.

        Raises:
            ReconcileError: the configuration is invalid, or there is no token.
        """
        connection = mapping_at(config, "gardenClientConnection")
        try:
            authority = configured_authority(text(connection.get("gardenClusterCACert")))
        except ValueError as error:
            raise ReconcileError(
                f"gardenClientConnection.gardenClusterCACert is not valid base64: {error}; correct the configuration"
            ) from error
        if owner.way == bootstrap.ACCOUNT:
            token = await self._account_token(owner.key)
        else:
            token = await self._token(owner)
        server = text(connection.get("gardenClusterAddress")) or self.garden.transport.connection.server
        bundle = self.garden.authority if authority is None else authority
        return kubeconfig(_NAME, server=server, ca_bundle=bundle, user={"token": token}).decode()

    async def _token(self, owner: Owner) -> str:
        client, name, now = self.garden.client, bootstrap.token_name(owner.key), self.clock()
        group = BootstrapToken(owner.key.name, self.issuer).extra_groups if self.issuer else ""
        live = await client.find(SECRETS, Key(TOKEN_NAMESPACE, name))
        if live is not None and (token := bootstrap.token_of(live, now, group=group)):
            return token
        part = bootstrap.secret_part(live) if live is not None and not group else ""
        wanted = bootstrap.token_secret(owner.kind, owner.key, secret=part or _random(), group=group, now=now)
        if live is not None and group:
            # Gardenlets may not change the token of an operator, or of the gardenlet of the Shoot's previous Seed.
            await client.delete(SECRETS, Key(TOKEN_NAMESPACE, name), uid=uid(live))
            live = None
        if live is None:
            written = await client.create(SECRETS, wanted)
        else:
            version = metadata(live)["resourceVersion"]
            meta = {**wanted["metadata"], "resourceVersion": version}
            written = await client.replace(SECRETS, {**wanted, "metadata": meta})
        return bootstrap.token_of(written, now, group=group)

    async def _account_token(self, owner: Key) -> str:
        client, where = self.garden.client, bootstrap_account(owner)
        for resource, obj in (
            (SERVICE_ACCOUNTS, bootstrap.account(owner)),
            (CLUSTER_ROLE_BINDINGS, bootstrap.binding(owner)),
        ):
            await client.create_if_missing(resource, obj)
        path = SERVICE_ACCOUNTS.path_of(where, "token")
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        answer = mapping(orjson.loads(await client.request("POST", path, body=body)))
        if not (token := text(mapping(answer.get("status")).get("token"))):
            raise ReconcileError(f"the garden returned no token for the ServiceAccount {where}")
        return token


def _random() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(16))
