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


def authorize(asked: Attributes, graph: Graph, *, with_selectors: bool = True) -> Decision:
    seed = seed_of_user(asked.user, asked.groups)
    if seed is None:
        return NO_OPINION
    if not seed:
        return deny(no_seed_text(asked.user))
    if not asked.is_resource_request:
        reason = f"a gardenlet does not need to {asked.verb} {asked.path}"
        return NO_OPINION if everybody.may_get(asked) else deny(reason)
    case = Case(seed=seed, asked=asked, graph=graph, with_selectors=with_selectors)
    if gardenlet.TABLE.permits(case):
        return ALLOW
    return NO_OPINION if everybody.TABLE.permits(case) else deny(_reason(case))


def _reason(case: Case) -> str:
    asked = case.asked
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    what = f'{resource} "{case.key}"' if asked.name else resource
    if not asked.name and asked.namespace:
        what += f' in namespace "{asked.namespace}"'
    return (
        f'{what} does not belong to seed "{case.seed}", or its gardenlet does not need to {asked.verb or "access"} it'
    )
