"""Kubeconfig for a Shoot: rights to it, and its parts, which its user need not be allowed to read."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gardenapi.api import Role
from gardener.api.garden import AUTHENTICATION_API, INTERNAL_SECRETS, SHOOTS
from kube.clock import format_time, utc_now
from kube.objects import Key, Object, mapping, mappings, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.client import Client
from webhooks.admission import User
from webhooks.garden.access import Access
from webhooks.tokens.requests import Refused, demand_right, demand_type

DEFAULT = timedelta(hours=1)
LEAST_SECONDS, MOST_SECONDS = 600, 1 << 32
_CERTIFICATES = "ca.crt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfigs:
    """Issues kubeconfigs; `client` is that of the garden."""

    client: Client
    access: Access
    now: Callable[[], datetime] = field(default=utc_now)

    async def request(self, role: Role, user: User, where: Key, body: Object) -> Object:
        """Return the answered request.

        Raises:
            Refused: the user lacks the right, the request is invalid, or the Shoot is not ready for it yet.
        """
        # Imported late, to save memory in servers that issue none.
        from webhooks.tokens.shoot_kubeconfig import CannotIssue, NoAuthority, issue

        kind = {"apiVersion": AUTHENTICATION_API, "kind": role.request_kind}
        demand_type(body, kind)
        await demand_right(self.access, user, SHOOTS, role.subresource, where)
        lifetime = lifetime_of(body)
        shoot = await self.client.find(SHOOTS, where)
        if shoot is None:
            raise Refused(404, "NotFound", f'{SHOOTS.plural}.{SHOOTS.group} "{where.name}" not found')
        authority = await self.client.find(INTERNAL_SECRETS, Key(where.namespace, f"{where.name}.ca-client"))
        addresses = mappings(at(shoot, "status", "advertisedAddresses"))
        try:
            content, expires = await asyncio.to_thread(
                issue,
                name=f"{where.namespace}--{where.name}",
                addresses={text(each.get("name")): text(each.get("url")) for each in addresses},
                authority=None if authority is None else mapping(authority.get("data")),
                cluster=await self._certificates(where),
                user=user.name,
                group=role.group,
                now=self.now(),
                lifetime=lifetime,
            )
        except NoAuthority as error:
            raise Refused(500, "InternalError", f"no kubeconfig for shoot {where}: {error}") from None
        except CannotIssue as error:
            raise Refused(422, "Invalid", f"no kubeconfig for shoot {where}: {error}") from None
        status = {"kubeconfig": base64.b64encode(content).decode(), "expirationTimestamp": format_time(expires)}
        meta = {"name": where.name, "namespace": where.namespace, "creationTimestamp": format_time(self.now())}
        return {
            **kind,
            "metadata": meta,
            "spec": {"expirationSeconds": int(lifetime.total_seconds())},
            "status": status,
        }

    async def _certificates(self, shoot: Key) -> str:
        """Return the CA certificates of the Shoot's API server, as PEM; empty if they are unknown."""
        name = f"{shoot.name}.ca-cluster"
        public = await self.client.find(CONFIG_MAPS, Key(shoot.namespace, name))
        if found := text(mapping((public or {}).get("data")).get(_CERTIFICATES)):
            return found
        # Gardenlets of older versions write only this one.
        secret = await self.client.find(SECRETS, Key(shoot.namespace, name))
        encoded = text(mapping((secret or {}).get("data")).get(_CERTIFICATES))
        return base64.b64decode(encoded).decode(errors="replace")


def lifetime_of(body: Object) -> timedelta:
    """Return the requested lifetime.

    Raises:
        Refused: it is invalid.
    """
    path, seconds = "spec.expirationSeconds", mapping(body.get("spec")).get("expirationSeconds")
    if seconds is None:
        return DEFAULT
    if type(seconds) is not int:
        raise Refused(400, "BadRequest", f"{path}: must be a whole number of seconds")
    if seconds < LEAST_SECONDS:
        raise Refused(422, "Invalid", f"{path}: may not specify a duration less than 10 minutes")
    if seconds > MOST_SECONDS:
        raise Refused(422, "Invalid", f"{path}: may not specify a duration larger than 2^32 seconds")
    return timedelta(seconds=seconds)
