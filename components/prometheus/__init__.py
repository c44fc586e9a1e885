"""The Prometheus servers of a seed, which the operator deploys.

cache      metrics of Pods from nodes, for a day: the others federate from it
seed       the components of the seed
aggregate  series computed from both, and from the servers of Shoots, for a month: accessible to people

servers    common parts
scraped    scrape configurations and computed series of each
"""

from collections.abc import Callable, Mapping
from functools import partial

from components.entrances import certificates, entrance
from components.monitors import AGGREGATE, CACHE, SEED
from components.prometheus.scraped import aggregate, cache, seed
from components.prometheus.servers import ROLE, Server, Values, name_of, objects
from components.secrets.configs import Config
from components.seed_component import SeedComponent, SeedInputs
from gardener.api.seed_definitions import Stage
from kube.objects import Object, text
from kube.paths import at
from kube.quantities import parse_quantity

__all__ = ["COMPONENTS", "ROLE", "SERVERS", "Values", "name_of", "objects"]

SERVERS: Mapping[str, Callable[[Values], Server]] = {CACHE: cache, SEED: seed, AGGREGATE: aggregate}
_LETTER = "p"


def _is_reached(server: str, inputs: SeedInputs) -> bool:
    return server == AGGREGATE and bool(inputs.ingress_domain)


def _objects(server: str, inputs: SeedInputs) -> list[Object]:
    smallest = text(at(inputs.seed, "spec", "volume", "minimumSize"))
    values = Values(
        image=inputs.images.prometheus,
        seed=inputs.name,
        nodes=text(at(inputs.seed, "spec", "networks", "nodes")),
        volume=int(parse_quantity(smallest)) if smallest else 0,
        entrance=entrance(inputs, name_of(server), _LETTER) if _is_reached(server, inputs) else None,
    )
    return objects(SERVERS[server](values), values)


def _secrets(server: str, inputs: SeedInputs) -> list[Config]:
    return certificates(inputs, name_of(server), _LETTER) if _is_reached(server, inputs) else []


COMPONENTS = [
    SeedComponent(
        name=name_of(each),
        title=f"{each} Prometheus",
        images=["prometheus"],
        objects=partial(_objects, each),
        secrets=partial(_secrets, each),
        needs=[Stage.MONITORING],
    )
    for each in SERVERS
]
