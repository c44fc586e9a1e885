"""Objects that move between ManagedResources of two agents, as users have to do it: the old one keeps an object until
the new one waits for it. From then on no agent may delete it as long as it stays where it is. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from campaign.model import Model
from gardener.keys import CLAIMED_BY, ORIGIN
from kube.objects import Object, annotations


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An object that its giver still has."""

    giver: str
    entry: dict[str, Any]
    """Of the giver, when it had the object."""
    receiver: str


@dataclass(frozen=True, slots=True)
class Stay:
    """Of an object that was handed over; in seconds since the epoch."""

    reference: str
    begin: float
    end: float = float("inf")


class Moves:
    def __init__(self) -> None:
        self.outgoing: dict[str, Outgoing] = {}
        """By references to objects."""
        self.stays: list[Stay] = []

    def edit(self, before: Model, after: Model, *, now: float) -> None:
        """The model is about to change."""
        former, owners = _owners(before), _owners(after)
        for reference in former.keys() | owners.keys():
            receiver = owners.get(reference)
            if receiver == former.get(reference):
                continue
            self.stays = [
                replace(stay, end=min(stay.end, now)) if stay.reference == reference else stay for stay in self.stays
            ]
            outgoing = self.outgoing.pop(reference, None)
            giver = outgoing.giver if outgoing else former.get(reference)
            if giver is None or receiver is None:
                continue
            entry = outgoing.entry if outgoing else before["managed"][giver]
            if entry["class"] != after["managed"][receiver]["class"]:
                self.outgoing[reference] = Outgoing(giver, entry, receiver)

    def written(self, model: Model) -> Model:
        """The model as users write it by now."""
        managed = dict(model["managed"])
        for reference, outgoing in self.outgoing.items():
            entry = managed.get(outgoing.giver, {**outgoing.entry, "objects": {}})
            version = outgoing.entry["objects"][reference]
            managed[outgoing.giver] = {**entry, "objects": {**entry["objects"], reference: version}}
        return {**model, "managed": managed}

    def seen(self, reference: str, live: Object, *, namespace: str, now: float) -> bool:
        """A live object; whether its receiver waits for it or has it, so that the giver may let it go."""
        outgoing = self.outgoing.get(reference)
        if outgoing is None:  # the model was changed while a user looked
            return True
        if f"{namespace}/{outgoing.receiver}" not in {annotations(live).get(CLAIMED_BY), annotations(live).get(ORIGIN)}:
            return False
        del self.outgoing[reference]
        self.stays.append(Stay(reference, now))
        return True


def _owners(model: Model) -> Mapping[str, str]:
    return {reference: name for name, entry in model["managed"].items() for reference in entry["objects"]}
