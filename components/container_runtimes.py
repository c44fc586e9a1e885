"""Further container runtimes on the nodes of pools, installed by extensions."""

from collections.abc import Iterator

from components.parts import made
from gardener.api.extensions import CONTAINER_RUNTIMES
from gardener.garden.shoots import workers
from kube.objects import Object, spec, text
from kube.paths import mappings_at

_POOL = "worker.gardener.cloud/pool"
_PROGRAMS = "/var/bin/containerruntimes"
"""A directory of nodes."""


def objects(shoot: Object, namespace: str) -> Iterator[Object]:
    """Args: namespace: of the Shoot, in the seed."""
    for pool in workers(spec(shoot)):
        name = text(pool.get("name"))
        for runtime in mappings_at(pool, "cri", "containerRuntimes"):
            wanted: Object = {
                "type": text(runtime.get("type")),
                "binaryPath": _PROGRAMS,
                "workerPool": {"name": name, "selector": {"matchLabels": {_POOL: name}}},
            }
            if runtime.get("providerConfig") is not None:
                wanted["providerConfig"] = runtime["providerConfig"]
            yield made(CONTAINER_RUNTIMES, f"{wanted['type']}-{name}", namespace=namespace, spec=wanted)
