"""Which Shoots are replicas of a set: it owns them, or takes over those that look like its own and are nobody's."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gardener.garden.managed_seed_set.replicas import ordinal_of
from kube.objects import (
    Object,
    controller_of,
    is_deleting,
    labels,
    matches_label_selector,
    metadata,
    spec,
    text,
    uid,
)


@dataclass(frozen=True, slots=True)
class Membership:
    """The Shoots that the selector of a set matches."""

    owned: list[Object] = field(default_factory=list)
    adoptable: list[Object] = field(default_factory=list)
    """Without a controller, and with a name as the set gives it."""
    foreign: list[Object] = field(default_factory=list)


def membership_of(seed_set: Object, shoots: Iterable[Object]) -> Membership:
    """Args: shoots: of the namespace of the set. Raises ValueError: the selector has an unknown operator."""
    name, found = text(metadata(seed_set).get("name")), Membership()
    for shoot in shoots:
        if not matches_label_selector(spec(seed_set).get("selector"), labels(shoot)):
            continue
        owner = controller_of(shoot)
        if owner is not None and owner.get("uid") == uid(seed_set):
            found.owned.append(shoot)
        elif owner is None and is_named_by(name, shoot):
            if not is_deleting(shoot):
                found.adoptable.append(shoot)
        else:
            found.foreign.append(shoot)
    return found


def is_named_by(set_name: str, shoot: Object) -> bool:
    """Whether it has a name that the set gives."""
    name = text(metadata(shoot).get("name"))
    return ordinal_of(name) >= 0 and name.rpartition("-")[0] == set_name
