"""Who deletes a Shoot that two people have to delete.

Controllers delete it when it has reached its end: its lifetime is over, or it is a replica of a set that is to have
fewer. Reads `MANAGED_SEED_SETS`, and what `approval` and `lifetime` read.
"""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.dual_approval import is_person
from gardener.garden.managed_seed_sets import is_named_by
from kube.objects import annotations, controller_of, integer, is_deleting, mapping, spec, text, uid
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.approval import refusal
from webhooks.garden.shoot.lifetime import has_expired

_SAME_USER = (
    "you are not allowed to both confirm the deletion and send the actual DELETE request - "
    "another subject must perform the deletion"
)


def by_two_people(write: Write) -> Iterator[Denial]:
    """For `deletions`."""
    if is_deleting(write.new) or not (told := refusal(write, write.new)):
        return
    if not is_person(write.user.name) and (has_expired(write) or _is_scaled_in(write)):
        return
    confirmer = annotations(write.new).get(keys.DELETION_CONFIRMED_BY)
    yield Denial(_SAME_USER if confirmer == write.user.name else f"two people have to delete the Shoot: {told}")


def _is_scaled_in(write: Write) -> bool:
    owner = mapping(controller_of(write.new))
    name = text(owner.get("name"))
    seed_set = write.garden.get(MANAGED_SEED_SETS, name, write.namespace)
    if seed_set is None or owner.get("uid") != uid(seed_set) or not is_named_by(name, write.new):
        return False
    there = integer(mapping(seed_set.get("status")).get("replicas"))
    return is_deleting(seed_set) or there > integer(spec(seed_set).get("replicas"))
