"""Every verb of every kind for members of a Project in each role, and for those who are none: what roles and bindings grant is the table.

The API server evaluates the objects that the manifests and the controller manager have made.
"""

from collections.abc import AsyncIterator, Mapping
from functools import partial

import pytest

from agent.controller_manager.project.lifecycle.controller import declare
from gardener.api.garden import PROJECTS
from gardener.garden import members
from gardener.rights import everybody, project
from gardener.rights.model import Case, Right, Table
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.objects import user
from kit.rights_walk import granted, requests
from kit.world import connected
from kube.paths import at
from kube.resources import CLUSTER_ROLES, ROLE_BINDINGS, Resource

pytestmark = pytest.mark.timeout(600)

THINGS = Resource("example.com", "v1", "Thing", "things", namespaced=True)
EXTENSION = Table((Right(THINGS, frozenset({"get"}), project.INSIDE),))
"""Rights that the ClusterRole of an extension adds for members with its role."""
TABLES: Mapping[str, Table] = {
    **{f"member-{role}": table for role, table in project.ROLES.items() if role != members.OWNER},
    "member-extension": EXTENSION,
    "owner": Table((*project.OWNER.rights, *project.ROLES[members.OWNER].rights)),
    "author-of-a-shoot": Table(()),
    "system:serviceaccount:seed-gone:extension-x": Table(()),
    "system:serviceaccount:seed-:extension-x": Table(()),
    "system:serviceaccount:seed-A_B:extension-x": Table(()),
}
"""By user."""
_SUBRESOURCES = ("", "status", "binding", "token", "adminkubeconfig", "viewerkubeconfig", "*")


@pytest.fixture
async def place(garden: Garden) -> AsyncIterator[ShootPlace]:
    place, role = ShootPlace(garden), "walk"
    labels = {"rbac.gardener.cloud/aggregate-to-extension-role": role}
    rule = {"apiGroups": [THINGS.group], "resources": [THINGS.plural], "verbs": ["get"]}
    garden.create(CLUSTER_ROLES, f"extension-{role}", metadata={"labels": labels}, rules=[rule])
    found = [user(f"member-{each}") | {"roles": [each]} for each in project.ROLES if each != members.OWNER]
    found += [user("member-extension") | {"roles": [f"extension:{role}"]}]
    place.garden = garden.as_user("author-of-a-shoot", "system:masters")
    place.shoot("made", seedName=place.seed())
    place.garden = garden
    place.patch(PROJECTS, place.name, {"spec": {"owner": user("owner"), "members": found}})
    async with connected(garden.cluster) as client, run_garden_controller(declare, client):
        bound = f"gardener.cloud:extension:project:{place.name}:{role}"
        await soon(lambda: place.find(ROLE_BINDINGS, bound) is not None, "the roles to be bound")
        await soon(lambda: at(place.get(PROJECTS, place.name), "status", "phase") == "Ready", "the Project")
        yield place
    place.remove()
    garden.delete(CLUSTER_ROLES, f"extension-{role}")


def wrong(place: ShootPlace, other: str, who: str) -> list[str]:
    """Where roles and table differ."""
    found, own, name = [], place.namespace, place.name
    for namespace in (own, f"garden-{other}", "garden", ""):
        rights = granted(place.garden, namespace or "default", who)
        names = ("", "x") if namespace else ("x", name, own)
        for requested in requests(((namespace, each) for each in names), _SUBRESOURCES):
            case = Case(requested=requested, project=name, namespace=own)
            if rights.permits(requested) != (TABLES[who].permits(case) or everybody.TABLE.permits(case)):
                found.append(f"{who}: {requested.verb} {requested.resource}/{requested.subresource} {case.key}")
    return found


def agree(place: ShootPlace, other: str, who: str) -> bool:
    return not wrong(place, other, who)


async def test_members_may_what_the_table_states_and_nothing_else(place: ShootPlace) -> None:
    other = place.garden.place()
    for who in TABLES:
        state = partial(wrong, place, other, who)
        await soon(partial(agree, place, other, who), f"the rights of {who}", state=state, seconds=60.0)
