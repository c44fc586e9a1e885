"""Two webhooks that restrict gardenlets to their Seeds: an authorizer, and admission of the objects they write.

API servers configured for it call the authorizer for all requests of gardenlets, reads included. The admission is in
the webhook configurations. Both share their caches, and permit all that the API server's current objects permit.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from config.webhooks.schema import Garden, SeedAuthorizer
from gardener.garden.seed_graph import projects_named
from gardener.garden.seeds import no_seed_text, seed_of_user
from gardener.keys import SEEDS_GROUP
from gardener.rights.gardenlet import TABLE
from gardener.rights.requests import Attributes
from kube.clock import utc_now
from kube.objects import Key, Object, mapping, metadata, text
from kube.resources import Resource
from webhooks.admission import Allowed, Answer, Denied, Errored, Handler, Request
from webhooks.authorizers.decisions import Decision, Effect
from webhooks.authorizers.endpoint import endpoint
from webhooks.authorizers.seed.graph import LiveGraph
from webhooks.authorizers.seed.rules.authorize import authorize
from webhooks.authorizers.seed.rules.common import Objection, Write
from webhooks.authorizers.seed.rules.identity import projects_in
from webhooks.authorizers.seed.rules.restriction import objection
from webhooks.authorizers.seed.rules.uses import unconfirmed
from webhooks.descriptor import AuthorizationWebhook, Entry, HandlerWebhook
from webhooks.review import Endpoint
from webhooks.rules.registration import Rule
from webhooks.state import SharedListers

NAME = "seed-authorizer"
PATH = "/authorize/seed"
_ENTRY = "seed-restriction.garden"
NOT_READY = "not yet ready to handle request"

WRITTEN = TABLE.written()
"""Kinds of objects that gardenlets write, except those that belong to no Seed."""
_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}


# --- the authorizer


def authorizer(settings: SeedAuthorizer, state: SharedListers) -> Endpoint:
    graph, with_selectors = LiveGraph(state), settings.authorize_with_selectors

    async def decide(requested: Attributes) -> Decision:
        seed = seed_of_user(requested.user, requested.groups)
        known = graph.read()
        if known is None:
            raise RuntimeError(NOT_READY)
        decision = authorize(requested, known, with_selectors=with_selectors)
        if decision.effect is not Effect.DENY or not seed:
            return decision

        def is_refused() -> bool:
            return authorize(requested, known, with_selectors=with_selectors).effect is Effect.DENY

        where = Key(requested.namespace, requested.name)
        projects = projects_named(requested.resource, where)
        await graph.confirmed(seed, requested.resource, where, is_refused, also=projects)
        return authorize(requested, known, with_selectors=with_selectors)

    return endpoint(NAME, decide)


# --- the admission


def restriction(state: SharedListers, *, clock: Callable[[], datetime] = utc_now) -> Handler:
    graph = LiveGraph(state)

    async def handle(request: Request) -> Answer:
        seed = seed_of_user(request.user.name, request.user.groups)
        resource = _WRITTEN.get((request.resource.group, request.resource.resource))
        if seed is None:
            return Allowed()
        if not seed:
            return Denied(no_seed_text(request.user.name))
        if resource is None or request.operation not in _VERBS:
            return Denied(f'seed "{seed}" may not {request.operation} {request.resource.resource}')
        known = graph.read()
        if known is None:
            return Denied(NOT_READY)
        write = _write(request, seed, resource, clock())
        if objection(write, known) is None:
            return Allowed()
        if unread := unconfirmed(write, known):
            write = replace(write, confirmed=await graph.usable(seed, unread))

        def is_refused() -> bool:
            return objection(write, known) is not None

        await graph.confirmed(seed, resource.plural, write.key, is_refused, also=projects_in(write))
        return _answer(objection(write, known))

    return handle


def _write(request: Request, seed: str, resource: Resource, now: datetime) -> Write:
    new = {} if request.operation == "DELETE" else mapping(request.object)
    old = mapping(request.old_object)
    return Write(
        seed=seed,
        user=request.user.name,
        resource=resource,
        verb=_VERBS[request.operation],
        key=_key(new or old, request),
        subresource=request.subresource,
        new=new,
        old=old,
        now=now,
    )


def _key(obj: Object, request: Request) -> Key:
    """Key from the request; objects differ from it for ServiceAccount tokens, and when many objects are deleted."""
    return Key(request.namespace, request.name or text(metadata(obj).get("name")))


def _answer(found: Objection | None) -> Answer:
    if found is None:
        return Allowed()
    return Denied(found.message) if found.code == 403 else Errored(found.code, found.message)


_WRITTEN = {(each.group, each.plural): each for each in WRITTEN}


def _rules() -> tuple[Rule, ...]:
    found = []
    for each in WRITTEN:
        named = (each.plural, *(f"{each.plural}/{name}" for name in TABLE.written_subresources(each)))
        found.append(Rule(("CREATE", "UPDATE", "DELETE"), each.group, (each.version,), named))
    return tuple(found)


WEBHOOKS = (
    AuthorizationWebhook(name=NAME, path=PATH, settings=SeedAuthorizer, authorizer=authorizer),
    HandlerWebhook(
        name="garden",
        path="/webhooks/garden/seed-restriction",
        settings=Garden,
        handler=lambda _, state: restriction(state),
        validating=True,
        entries=(
            Entry(
                name="seed-restriction.garden", rules=_rules(), match_policy="Equivalent", only_for_group=SEEDS_GROUP
            ),
        ),
    ),
)
