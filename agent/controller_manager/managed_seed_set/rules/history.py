"""The revisions of a set: when there is a new one, and which are kept.

A revision holds the templates; its name is that of the set and a hash. Going back to former templates makes the former
revision the newest again, and no other.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.controller_manager.managed_seed_set.rules.objects import owner_reference
from agent.controller_manager.managed_seed_set.rules.steps import Rollout
from gardener.garden.managed_seed_sets import CHANGE_CAUSE, templates_in
from kube.objects import Object, annotations, integer, key, spec
from kube.paths import mapping_at
from kube.resources import CONTROLLER_REVISIONS

HASH_LABEL = "controller.kubernetes.io/hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME = 2166136261, 16777619


def revision_hash(templates: Object, collisions: int | None) -> str:
    """Hash of the templates and of `status.collisionCount`, if any."""
    data = _canonical({"spec": templates}) + ("" if collisions is None else str(collisions))
    value = _OFFSET
    for byte in data.encode():
        value = (value ^ byte) * _PRIME % 2**32
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def equal(revisions: Sequence[Object], templates: Object) -> Object | None:
    """The newest revision with these templates."""
    wanted = _canonical(templates)
    return next((each for each in reversed(revisions) if _canonical(templates_in(each)) == wanted), None)


def next_number(revisions: Sequence[Object]) -> int:
    return max((integer(each.get("revision")) for each in revisions), default=0) + 1


def new_revision(seed_set: Object, templates: Object, *, number: int, collisions: int | None) -> Object:
    found = revision_hash(templates, collisions)
    cause = annotations(seed_set).get(CHANGE_CAUSE)
    selected = mapping_at(spec(seed_set), "selector", "matchLabels")
    return {
        **CONTROLLER_REVISIONS.type_meta,
        "metadata": {
            "name": f"{key(seed_set).name}-{found}",
            "namespace": key(seed_set).namespace,
            "labels": {**selected, HASH_LABEL: found},
            **({"annotations": {CHANGE_CAUSE: cause}} if cause is not None else {}),
            "ownerReferences": [owner_reference(seed_set)],
        },
        "data": {"spec": templates},
        "revision": number,
    }


def outlived(revisions: Sequence[Object], live: Collection[str], *, limit: int) -> list[Object]:
    """Past revisions beyond the limit, the oldest first; `live` names revisions in use."""
    past = [each for each in revisions if key(each).name not in live]
    return past[: max(len(past) - limit, 0)]


@dataclass(frozen=True, slots=True)
class History:
    """Relevant revisions of a set.

    Attributes:
        update: revision of the present templates.
        current: revision of the replicas that are not updated yet.
        collisions: number of collisions of the name of a new revision; None if there never was one.
    """

    revisions: Sequence[Object]
    update: str
    current: str
    collisions: int | None = None

    def templates(self, name: str) -> Object | None:
        """Return the templates of a revision; None if they were not kept."""
        found = next((each for each in self.revisions if key(each).name == name), None)
        return None if found is None else templates_in(found)


def rollout_of(seed_set: Object, history: History) -> Rollout:
    reported = mapping_at(spec(seed_set), "updateStrategy", "rollingUpdate")
    most = reported.get("maxUnhealthyShoots")
    return Rollout(
        current=history.current,
        update=history.update,
        partition=integer(reported.get("partition")),
        max_unhealthy=most if isinstance(most, int | str) else None,
    )


def _canonical(value: Object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
