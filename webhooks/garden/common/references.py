"""What an object names must exist. For `references`: what does not change is not refused when its target has gone."""

from collections.abc import Iterator

from gardener.api.garden import SHOOTS
from gardener.garden.shoots import seeds_of
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.write import GardenLister


def exists(garden: GardenLister, path: str, resource: Resource, name: str, namespace: str = "") -> Iterator[Denial]:
    """Nothing is said about an empty name."""
    if name and garden.need(resource, name, namespace) is None:
        kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        place = f' in namespace "{namespace}"' if resource.namespaced else ""
        yield Denial(f'{path}: {kind} "{name}" not found{place}', path)


def shoots_on(garden: GardenLister, seed: str) -> list[Object]:
    """All Shoots that have it in spec or status. Reads `SHOOTS`."""
    return list(garden.by(SHOOTS, seeds_of, seed))
