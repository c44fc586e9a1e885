"""Token of a WorkloadIdentity: rights to it, and the object for which it may be used.

Only gardenlets may name the object of a token, and only one on their own Seed: verifiers of the token rely on it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gardener import keys
from gardener.api.garden import PROJECTS, SECURITY_GROUP, SEEDS, SHOOTS, WORKLOAD_IDENTITIES
from gardener.garden.seeds import no_seed_text, seed_of_user
from kube.clock import format_time, utc_now
from kube.objects import Key, Object, labels, spec, text, uid
from kube.paths import at
from kube.resources import NAMESPACES, Resource
from kube.runtime.client import Client
from webhooks.admission import User
from webhooks.garden.access import Access
from webhooks.tokens.claims import ContextObject, InvalidRequest, claims, parse
from webhooks.tokens.issuer import Issuers
from webhooks.tokens.paths import TOKEN
from webhooks.tokens.requests import Refused, demand_right, demand_type

REQUEST: Final = {"apiVersion": f"{SECURITY_GROUP}/{WORKLOAD_IDENTITIES.version}", "kind": "TokenRequest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTokens:
    """Issues tokens; `client` is that of the garden."""

    client: Client
    access: Access
    issuers: Issuers
    now: Callable[[], datetime] = field(default=utc_now)

    async def request(self, user: User, where: Key, body: Object) -> Object:
        """Return the answered TokenRequest.

        Raises:
            Refused: the user lacks the right, or the request is invalid.
            CannotIssue: there is no usable key.
        """
        demand_type(body, REQUEST)
        await demand_right(self.access, user, WORKLOAD_IDENTITIES, TOKEN, where)
        try:
            wanted = parse(body)
        except InvalidRequest as error:
            raise Refused(422, "Invalid", str(error)) from None
        identity = await self._get(WORKLOAD_IDENTITIES, where)
        context = await self._context(user, wanted.context)
        issuer, now = await self.issuers.current(), self.now()
        content = claims(identity, issuer=issuer.url, now=now, lifetime=wanted.lifetime, context=context)
        token = await asyncio.to_thread(issuer.key.sign, content)
        return {
            **REQUEST,
            "metadata": {"name": where.name, "namespace": where.namespace, "creationTimestamp": format_time(now)},
            "spec": body.get("spec") or {},
            "status": {"token": token, "expirationTimestamp": format_time(now + wanted.lifetime)},
        }

    async def _context(self, user: User, context: ContextObject | None) -> dict[str, Object]:
        own_seed = seed_of_user(user.name, user.groups)
        if own_seed == "":
            raise Refused(403, "Forbidden", no_seed_text(user.name))
        if context is None or own_seed is None:
            return {}
        if context.is_a(SEEDS):
            seed = await self._named(SEEDS, context)
            _demand_own({context.key.name}, own_seed, context)
            return {"seed": seed}
        if context.is_a(SHOOTS):
            shoot = await self._named(SHOOTS, context)
            name = text(spec(shoot).get("seedName"))
            _demand_own({name, text(at(shoot, "status", "seedName"))}, own_seed, context)
            found = {"shoot": shoot}
            if name:
                found["seed"] = await self._get(SEEDS, Key("", name))
            return {**found, "project": await self._project(context.key.namespace)}
        raise Refused(
            422, "Invalid", f"spec.contextObject: must be a {SHOOTS.kind}, with its namespace, or a {SEEDS.kind}"
        )

    async def _named(self, resource: Resource, context: ContextObject) -> Object:
        found = await self._get(resource, context.key)
        if uid(found) != context.uid:
            raise Refused(
                422,
                "Invalid",
                f'spec.contextObject.uid: {resource.kind} "{context.key}" has another uid: "{uid(found)}"',
            )
        return found

    async def _get(self, resource: Resource, where: Key) -> Object:
        found = await self.client.find(resource, where)
        if found is None:
            raise Refused(404, "NotFound", f'{resource.plural}.{resource.group} "{where}" not found')
        return found

    async def _project(self, namespace: str) -> Object:
        name = labels(await self._get(NAMESPACES, Key("", namespace))).get(keys.PROJECT_NAME, "")
        project = await self._get(PROJECTS, Key("", name)) if name else None
        if project is None or text(spec(project).get("namespace")) != namespace:
            raise Refused(422, "Invalid", f'spec.contextObject.namespace: "{namespace}" does not belong to a Project')
        return project


def _demand_own(seeds: set[str], own: str, context: ContextObject) -> None:
    if own not in seeds:
        raise Refused(
            403,
            "Forbidden",
            f'{context.kind} "{context.key}" is not on seed "{own}"; request a token for an object on the seed',
        )
