"""The two webhooks that keep gardenlets to their Seeds: an authorizer, and an admission of what they write.

API servers ask the authorizer about all requests of gardenlets, reads too, if they are configured to. The admission is
in the webhook configurations. Both work with the same caches, and refuse nothing that the API server would permit.
"""

from collections.abc import Callable
from datetime import datetime

from config.webhooks.schema import Garden, SeedAuthorizer
from gardener.api import garden
from gardener.garden.seeds import seed_of_user
from gardener.keys import SEEDS_GROUP
from kube import resources as kubernetes
from kube.clock import utc_now
from kube.objects import Key, Object, mapping, metadata, text
from kube.resources import Resource
from webhooks.admission import Allowed, Answer, Denied, Errored, Handler, Request
from webhooks.authorizers.attributes import Attributes, Decision, Effect
from webhooks.authorizers.endpoint import endpoint
from webhooks.authorizers.seed.graph import LiveGraph
from webhooks.authorizers.seed.rules.authorize import RIGHTS, authorize
from webhooks.authorizers.seed.rules.restriction import Objection, Write, objection
from webhooks.descriptor import AuthorizationWebhook, Entry, HandlerWebhook
from webhooks.review import Endpoint
from webhooks.rules.registration import Rule
from webhooks.state import SharedListers

NAME = "seed-authorizer"
PATH = "/authorize/seed"
_ENTRY = "seed-restriction.garden"
NOT_READY = "not yet ready to handle request"

WRITTEN: tuple[Resource, ...] = (
    garden.BACKUP_BUCKETS,
    garden.BACKUP_ENTRIES,
    garden.BASTIONS,
    garden.CONTROLLER_INSTALLATIONS,
    garden.GARDENLETS,
    garden.INTERNAL_SECRETS,
    garden.MANAGED_SEEDS,
    garden.SEEDS,
    garden.SHOOTS,
    garden.SHOOT_STATES,
    kubernetes.CLUSTER_ROLE_BINDINGS,
    kubernetes.CONFIG_MAPS,
    kubernetes.LEASES,
    kubernetes.SECRETS,
    kubernetes.SERVICE_ACCOUNTS,
)
"""The kinds of which gardenlets write objects, but for those that belong to no Seed."""
_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}


# --- the authorizer


def authorizer(settings: SeedAuthorizer, state: SharedListers) -> Endpoint:
    graph, with_selectors = LiveGraph(state), settings.authorize_with_selectors

    async def decide(asked: Attributes) -> Decision:
        seed = seed_of_user(asked.user, asked.groups)
        known = graph.read()
        if known is None:
            raise RuntimeError(NOT_READY)
        decision = authorize(asked, known, with_selectors=with_selectors)
        if decision.effect is not Effect.DENY:
            return decision

        def is_refused() -> bool:
            return authorize(asked, known, with_selectors=with_selectors).effect is Effect.DENY

        await graph.confirmed(seed, asked.resource, Key(asked.namespace, asked.name), is_refused)
        return authorize(asked, known, with_selectors=with_selectors)

    return endpoint(NAME, decide)


# --- the admission


def restriction(state: SharedListers, *, clock: Callable[[], datetime] = utc_now) -> Handler:
    graph = LiveGraph(state)

    async def handle(request: Request) -> Answer:
        seed = seed_of_user(request.user.name, request.user.groups)
        resource = _WRITTEN.get((request.resource.group, request.resource.resource))
        if not seed or resource is None or request.operation not in _VERBS:
            return Allowed()
        known = graph.read()
        if known is None:
            return Denied(NOT_READY)
        write = _write(request, seed, resource, clock())
        found = objection(write, known)
        if found is None:
            return Allowed()
        await graph.confirmed(seed, resource.plural, write.key, lambda: objection(write, known) is not None)
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
    """Of a token of a ServiceAccount, and where many are deleted, the object names less or more than the request."""
    return Key(request.namespace, request.name or text(metadata(obj).get("name")))


def _answer(found: Objection | None) -> Answer:
    if found is None:
        return Allowed()
    return Denied(found.message) if found.code == 403 else Errored(found.code, found.message)


_WRITTEN = {(each.group, each.plural): each for each in WRITTEN}


def _rules() -> tuple[Rule, ...]:
    found = []
    for each in WRITTEN:
        rights = RIGHTS[each.group, each.plural]
        named = (each.plural, *(f"{each.plural}/{name}" for name in sorted(rights.subresources)))
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
