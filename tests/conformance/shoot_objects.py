"""The objects of a Shoot without workers, as a gardenlet of v1.104.3 wrote them, at several moments of its life.

As `seed_objects`; that a name has the hash of other content than before is not compared: `<hash-2>` is as `<hash>`.
"""

import json
import lzma
from functools import cache
from pathlib import Path

from conformance.seed_objects import Name, by_name
from gardener.keys import GARBAGE_COLLECTABLE
from kube.objects import Object, labels

_FILE = Path(__file__).parent / "gardenlet/shoot-objects.json.xz"
CREATED, HIBERNATED, WOKEN = "created", "hibernated", "woken"
NAMESPACE = "shoot--local--a"


@cache
def _load() -> Object:
    loaded: Object = json.loads(lzma.decompress(_FILE.read_bytes()))
    return loaded


def moments() -> list[str]:
    """In the order in which they were."""
    return list(_load())


def in_the_seed(moment: str) -> list[Object]:
    objects: list[Object] = _load()[moment]["seed"]
    return objects


def in_the_garden(moment: str) -> dict[Name, Object]:
    return by_name(_load()[moment]["garden"])


def status_of_the_shoot(moment: str) -> Object:
    (shoot,) = (each for each in _load()[moment]["garden"] if each["kind"] == "Shoot")
    status: Object = shoot["status"]
    return status


def managed_resources(moment: str) -> dict[str, Object]:
    return {each["name"]: each for each in _load()[moment]["managedResources"]}


def of_the_secrets_manager(moment: str) -> list[Object]:
    return [each for each in in_the_seed(moment) if _is_managed(each)]


def others(moment: str) -> dict[Name, Object]:
    """In the seed, all but Secrets of the secrets manager, and what is left for the garbage collector."""
    objects = [each for each in in_the_seed(moment) if not _is_managed(each)]
    deployments = json.dumps([each for each in objects if each["kind"] == "Deployment"])
    return by_name(each for each in objects if not _is_collectable(each) or each["metadata"]["name"] in deployments)


def _is_managed(obj: Object) -> bool:
    return labels(obj).get("managed-by") == "secrets-manager"


def _is_collectable(obj: Object) -> bool:
    return GARBAGE_COLLECTABLE in labels(obj)
