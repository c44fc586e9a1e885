"""The objects of a Shoot with a worker pool, as a gardenlet of v1.104.3 wrote them until it waited for nodes.

As `seed_objects`. Scripts, keys and long files of operating system configurations are recorded as their kind and size.
"""

import json
import lzma
from functools import cache
from pathlib import Path

from conformance.seed_objects import Name, by_name
from kube.objects import Object

_FILE = Path(__file__).parent / "gardenlet/worker-objects.json.xz"
NAMESPACE = "shoot--local--w"


@cache
def _load() -> Object:
    loaded: Object = json.loads(lzma.decompress(_FILE.read_bytes()))
    found: Object = loaded["worker-waiting-for-tunnel"]
    return found


def in_the_seed() -> dict[Name, Object]:
    """All but Secrets of the secrets manager, and what others write."""
    return by_name(_load()["seed"])


def managed_resources() -> dict[str, Object]:
    return {each["name"]: each for each in _load()["managedResources"]}


def shoot() -> Object:
    found: Object = _load()["garden"][0]
    return found
