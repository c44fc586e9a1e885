"""The ControllerRevisions of a set: created, found again, and removed beyond the limit.

They are read on demand, which is seldom: so there is no watch on those of all StatefulSets.
"""

from dataclasses import dataclass

from agent.controller_manager.managed_seed_set.rules.history import (
    History,
    equal,
    new_revision,
    next_number,
    outlived,
)
from gardener.garden import managed_seed_sets
from kube.errors import AlreadyExists
from kube.objects import Object, integer, key, mapping, metadata, spec, text, uid
from kube.paths import mapping_at
from kube.resources import CONTROLLER_REVISIONS
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError

_MOST_COLLISIONS = 50
"""Maximum number of collisions in one pass."""


def is_kept(seed_set: Object) -> bool:
    """Whether changed templates are rolled out to existing replicas."""
    return isinstance(mapping_at(spec(seed_set), "updateStrategy").get("rollingUpdate"), dict)


@dataclass(eq=False, kw_only=True, slots=True)
class Keeper:
    client: Client

    async def keep(self, seed_set: Object) -> History:
        """Return the revisions; the newest is that of the present templates."""
        status, templates = mapping(seed_set.get("status")), managed_seed_sets.templates_of(seed_set)
        collisions = status.get("collisionCount")
        known = await self._all(seed_set)
        found, number = equal(known, templates), next_number(known)
        if found is None:
            found, collisions = await self._create(seed_set, templates, number=number, collisions=collisions)
            known.append(found)
        elif integer(found.get("revision")) != number - 1:
            found = await self._renumber(found, number)
            known = [*(each for each in known if uid(each) != uid(found)), found]
        update = key(found).name
        return History(
            known, update=update, current=text(status.get("currentRevision")) or update, collisions=collisions
        )

    async def forget(self, seed_set: Object, history: History, live: set[str]) -> None:
        """Remove past revisions beyond the limit, except those in `live`, by name."""
        limit = integer(spec(seed_set).get("revisionHistoryLimit"))
        for each in outlived(history.revisions, live, limit=limit):
            own, version = key(each), text(metadata(each).get("resourceVersion"))
            await self.client.delete_if_exists(CONTROLLER_REVISIONS, own, uid=uid(each), resource_version=version)

    async def _all(self, seed_set: Object) -> list[Object]:
        pages = self.client.pages(CONTROLLER_REVISIONS, Selection(key(seed_set).namespace))
        return managed_seed_sets.owned(seed_set, [each async for page in pages for each in page])

    async def _create(
        self, seed_set: Object, templates: Object, *, number: int, collisions: int | None
    ) -> tuple[Object, int | None]:
        """Return the new revision, and the number of collisions of its name."""
        for _ in range(_MOST_COLLISIONS):
            wanted = new_revision(seed_set, templates, number=number, collisions=collisions)
            try:
                return await self.client.create(CONTROLLER_REVISIONS, wanted), collisions
            except AlreadyExists:
                collisions = (collisions or 0) + 1
        raise ReconcileError(
            f"no free name for a new revision of {key(seed_set)}; delete old ControllerRevisions of the set"
        )

    async def _renumber(self, revision: Object, number: int) -> Object:
        own, version = key(revision), metadata(revision)["resourceVersion"]
        body: Object = {"metadata": {"resourceVersion": version}, "revision": number}
        return await self.client.patch(CONTROLLER_REVISIONS, own, body)


# --- templates of replicas


def kept_templates(history: History | None, revision: str) -> Object | None:
    return history.templates(revision) if history is not None else None


def templates_to_make(seed_set: Object, history: History | None, revision: str) -> tuple[Object, str]:
    """The templates of a revision, with its name; those of the set, if none are kept."""
    kept = kept_templates(history, revision)
    if kept is not None:
        return kept, revision
    return managed_seed_sets.templates_of(seed_set), history.update if history is not None else ""
