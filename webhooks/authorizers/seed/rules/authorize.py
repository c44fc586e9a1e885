"""Decide about requests of gardenlets by the table of their rights.

Members of the group of gardenlets without a valid name are denied everything. Users that are no gardenlets, and rights
that all users have, are left to the next authorizer. All other requests are denied.
"""

from gardener.garden.seed_graph import Graph
from gardener.garden.seeds import no_seed_text, seed_of_user
from gardener.rights import everybody, gardenlet
from gardener.rights.model import Case
from gardener.rights.requests import Attributes
from webhooks.authorizers.decisions import ALLOW, NO_OPINION, Decision, deny


def authorize(requested: Attributes, graph: Graph, *, with_selectors: bool = True) -> Decision:
    seed = seed_of_user(requested.user, requested.groups)
    if seed is None:
        return NO_OPINION
    if not seed:
        return deny(no_seed_text(requested.user))
    if not requested.is_resource_request:
        reason = f"a gardenlet does not need to {requested.verb} {requested.path}"
        return NO_OPINION if everybody.may_get(requested) else deny(reason)
    case = Case(seed=seed, requested=requested, graph=graph, with_selectors=with_selectors)
    if gardenlet.TABLE.permits(case):
        return ALLOW
    return NO_OPINION if everybody.TABLE.permits(case) else deny(_reason(case))


def _reason(case: Case) -> str:
    requested = case.requested
    resource = f"{requested.resource}/{requested.subresource}" if requested.subresource else requested.resource
    what = f'{resource} "{case.key}"' if requested.name else resource
    if not requested.name and requested.namespace:
        what += f' in namespace "{requested.namespace}"'
    verb = requested.verb or "access"
    return f'{what} does not belong to seed "{case.seed}", or its gardenlet does not need to {verb} it'
