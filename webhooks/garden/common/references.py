"""Existence of named objects. As rules for `references`, they accept unchanged references to deleted objects."""

from collections.abc import Iterator

from gardener.api.garden import SHOOTS
from gardener.garden.shoots import seeds_of
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.write import GardenLister


def exists(garden: GardenLister, path: str, resource: Resource, name: str, namespace: str = "") -> Iterator[Denial]:
    """Check that an object exists; an empty name is accepted."""
    if name and garden.need(resource, name, namespace) is None:
        kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        place = f' in namespace "{namespace}"' if resource.namespaced else ""
        yield Denial(f'{path}: {kind} "{name}" not found{place}', path)


def shoots_on(garden: GardenLister, seed: str) -> list[Object]:
    """Shoots that have the Seed in spec or status. Reads `SHOOTS`."""
    return list(garden.by(SHOOTS, seeds_of, seed))
