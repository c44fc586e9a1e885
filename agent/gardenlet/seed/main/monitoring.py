"""The monitoring of a seed: which of its components there are, with the keys and certificates that they need.

People reach dashboards and series below the Seed's ingress domain, with the users of the garden's monitoring, and the
certificate for all names of that domain, if there is one.
"""

from collections.abc import Callable, Mapping
from functools import partial

from agent.gardenlet.components import plutono, prometheus, prometheus_operator
from agent.gardenlet.components.entrances import Entrance
from agent.gardenlet.components.monitors import AGGREGATE, CACHE, SEED
from agent.gardenlet.components.prometheus.servers import Server
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.secrets_manager.rules.configs import PASSWORD, BasicAuth
from agent.gardenlet.seed.main.operation import SeedOperation
from kube.objects import Object, text
from kube.paths import at
from kube.quantities import parse_quantity

SERVERS: Mapping[str, Callable[[prometheus.Values], Server]] = {
    CACHE: prometheus.cache,
    SEED: prometheus.seed,
    AGGREGATE: prometheus.aggregate,
}
_ADMIN = BasicAuth(name="plutono-admin", user="admin")


async def _entrance(operation: SeedOperation, name: str, letter: str) -> Entrance:
    """Args: name: of the component. letter: by which its host begins."""
    host = f"{letter}-seed.{operation.ingress_domain}"
    certificate = operation.wildcard_certificate
    if not certificate:
        certificate = (await operation.keys.generate(tables.ingress_server(name, host))).current.name
    return Entrance(host=host, login_secret=operation.login_secret, tls_secret=certificate)


async def prometheus_operator_of(operation: SeedOperation) -> list[Object]:
    images = operation.config.images
    values = prometheus_operator.Values(image=images.prometheus_operator, reloader_image=images.config_reloader)
    return prometheus_operator.objects(values)


async def server_of(server: str, operation: SeedOperation) -> list[Object]:
    is_reached = server == AGGREGATE and operation.ingress_domain
    smallest = text(at(operation.seed, "spec", "volume", "minimumSize"))
    values = prometheus.Values(
        image=operation.config.images.prometheus,
        seed=operation.name,
        nodes=text(at(operation.seed, "spec", "networks", "nodes")),
        volume=int(parse_quantity(smallest)) if smallest else 0,
        entrance=await _entrance(operation, prometheus.name_of(server), "p") if is_reached else None,
    )
    return prometheus.objects(SERVERS[server](values), values)


cache_of, seed_of, aggregate_of = (partial(server_of, each) for each in (CACHE, SEED, AGGREGATE))


async def plutono_of(operation: SeedOperation) -> list[Object]:
    admin = (await operation.keys.generate(_ADMIN)).current
    values = plutono.Values(
        image=operation.config.images.plutono,
        refresher_image=operation.config.images.dashboard_refresher,
        entrance=await _entrance(operation, plutono.NAME, "g"),
        admin_secret=admin.name,
        admin_password=admin.data[PASSWORD].decode(),
    )
    return [*plutono.objects(values), plutono.boards()]
