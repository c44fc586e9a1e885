"""Objects in the Secrets of a ManagedResource, before and after: pure functions."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from agent.gardenlet.shoot.dry_run.rules.shown import shown, without_noise
from gardener.difference_reports import ObjectDifference, Place
from gardener.managed_resource.decode import decode_secrets
from kube.objects import Key, Object, group_of, key, spec, string_map, text

_Id = tuple[str, str, Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """Decoded content of a ManagedResource.

    Attributes:
        objects: by group, kind and name.
        secrets: names of its Secrets.
    """

    place: Place
    objects: Mapping[_Id, Object]
    secrets: frozenset[Key]
    problem: str = ""

    @classmethod
    def nothing(cls) -> Self:
        return cls(place=Place.SHOOT, objects={}, secrets=frozenset())


def bundled(managed: Object, secrets: Mapping[Key, Object]) -> Bundled:
    """Decode a ManagedResource; `secrets` has the data of its Secrets."""
    decoded = decode_secrets([(name, _values(data)) for name, data in secrets.items()])
    objects = {
        (group_of(text(each.object.get("apiVersion"))), text(each.object.get("kind")), key(each.object)): each.object
        for each in decoded.objects
    }
    return Bundled(
        place=Place.SEED if spec(managed).get("class") else Place.SHOOT,
        objects=objects,
        secrets=frozenset(secrets),
        problem="; ".join(map(str, decoded.errors)),
    )


def _values(data: Object) -> dict[str, bytes]:
    found = {}
    for name, value in string_map(data).items():
        try:
            found[name] = base64.b64decode(value)
        except binascii.Error:
            continue
    return found


def differences_within(managed: Key, before: Bundled, after: Bundled) -> Iterator[ObjectDifference]:
    """Yield the differences between two states of the ManagedResource `managed`."""
    place = after.place if after.objects else before.place
    for each in [*before.objects, *(each for each in after.objects if each not in before.objects)]:
        old, new = before.objects.get(each), after.objects.get(each)
        if old == new:
            continue
        was, will_be = shown(old, new)
        if was != will_be or (was is None) != (will_be is None):
            yield ObjectDifference(
                place=place,
                api_version=text((new or old or {}).get("apiVersion")),
                kind=each[1],
                name=str(each[2]),
                within=f"ManagedResource {managed}",
                before=was,
                after=will_be,
                problem=after.problem,
            )


def is_reference_only(before: Object | None, after: Object | None) -> bool:
    """Whether two states of a ManagedResource differ in the names of their Secrets only."""
    if before is None or after is None:
        return False
    old, new = ({**without_noise(each), "spec": {**spec(each), "secretRefs": None}} for each in (before, after))
    return old == new
