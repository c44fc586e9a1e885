"""What may be deleted, if nothing refers to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import CONFIG_MAP, SECRET, Name
from kube.clock import parse_time
from kube.objects import Object, is_deleting, key, metadata, uid
from kube.resources import CONFIG_MAPS, SECRETS

SELECTOR = f"{GARBAGE_COLLECTABLE}=true"
RESOURCES = {SECRET: SECRETS, CONFIG_MAP: CONFIG_MAPS}
"""In the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """As it was listed: it is deleted only if it still is so."""

    name: Name
    uid: str
    resource_version: str


def candidates(kind: str, objects: Iterable[Object], *, now: datetime, minimum_age: float) -> Iterator[Candidate]:
    """Those that are old enough; exactly as old is enough. What is being deleted already is left alone."""
    for obj in objects:
        created: str = metadata(obj).get("creationTimestamp") or ""
        if is_deleting(obj) or not created or parse_time(created) > now - timedelta(seconds=minimum_age):
            continue
        found = key(obj)
        yield Candidate(Name(kind, found.namespace, found.name), uid(obj), metadata(obj).get("resourceVersion") or "")
