"""The Prometheus servers of a seed, which the operator deploys.

cache      metrics of Pods from nodes, for a day: the others federate from it
seed       the components of the seed
aggregate  series computed from both, and from the servers of Shoots, for a month: accessible to people

`server.yaml` has the common objects, the manifest with the name of a server its scrape configurations, computed series
and alerts. Shoots are metered in three steps: current usage; sums since the creation of the server's volume; and
increases a day, which tolerate the loss of a volume.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.entrances import Entrance, certificates, entrance, ingress
from components.manifest import manifest, of_kind, template, without
from components.parts import in_seed
from components.secrets.configs import Config
from components.seed_component import SeedComponent, SeedInputs
from gardener import conditions, keys
from gardener.api.kinds import PROMETHEUSES
from kube.objects import Object, labels, text
from kube.paths import at
from kube.quantities import parse_quantity
from kube.resources import NETWORK_POLICIES

CACHE, SEED, AGGREGATE = "cache", "seed", "aggregate"
OF_COMPONENTS = "garden|extension-.+|istio-.+|kube-system"
"""Namespaces other than those of Shoots, as a regular expression."""
_LETTER = "p"
_WEB = 80
_VERSION = re.compile(r":(v\d+\.\d+\.\d+[^@]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    seed: name of the Seed.
    nodes: network of its nodes; empty if unknown.
    volume: smallest volume size of the infrastructure, in bytes.
    entrance: external access for people; None if there is none.
    """

    image: str
    seed: str
    nodes: str = ""
    volume: int = 0
    entrance: Entrance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of the servers.

    Attributes:
        memory: minimum request.
        volume: its size, in GiB.
        keeps: `retention` and `retentionSize`.
        reaches: targets in labels of its Pods, in addition to those in the seed.
        names_seed: whether all its series have a label with the name of the Seed.
        jobs: file with further scrape configs.
    """

    memory: str
    volume: int
    keeps: Mapping[str, str]
    reaches: Sequence[str] = ()
    names_seed: bool = False
    jobs: str = ""


SERVERS: Mapping[str, Server] = {
    CACHE: Server(memory="1G", volume=10, keeps={"retention": "1d", "retentionSize": "5GB"}, jobs="cache_jobs.yaml"),
    SEED: Server(
        memory="400Mi",
        volume=100,
        keeps={"retentionSize": "85GB"},
        reaches=["all-shoots-vpa-recommender-tcp-8942", "extensions-all-seed-scrape-targets"],
    ),
    AGGREGATE: Server(
        memory="1G",
        volume=20,
        keeps={"retention": "30d", "retentionSize": "15GB"},
        reaches=[
            "all-istio-ingresses-all-seed-scrape-targets",
            "all-shoots-prometheus-shoot-tcp-9090",
            "istio-system-all-seed-scrape-targets",
        ],
        names_seed=True,
    ),
}


def name_of(server: str) -> str:
    """Name of a server's component, Service and ServiceAccount."""
    return f"prometheus-{server}"


def objects(name: str, values: Values) -> list[Object]:
    contents = [*_common(name, SERVERS[name], values), *own(name, values)]
    return in_seed(name_of(name), contents, condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


def own(name: str, values: Values) -> list[Object]:
    """Objects of this server only."""
    if name != CACHE:
        return manifest(__file__, f"{name}.yaml", components=OF_COMPONENTS)
    found = manifest(__file__, f"{name}.yaml", nodes=values.nodes)
    return found if values.nodes else without(found, NETWORK_POLICIES.kind)


def _common(name: str, server: Server, values: Values) -> list[Object]:
    jobs = template(__file__, server.jobs) if server.jobs else ""
    found = manifest(
        __file__,
        "server.yaml",
        server=name,
        image=values.image,
        memory=server.memory,
        size=f"{server.volume}Gi" if server.volume << 30 >= values.volume else str(values.volume),
        jobs=base64.b64encode(jobs.encode()).decode(),
    )
    prometheus = of_kind(found, PROMETHEUSES.kind)
    spec: dict[str, Any] = prometheus["spec"]
    spec |= server.keeps
    spec["podMetadata"]["labels"] |= {f"{keys.TO_PREFIX}{each}": keys.ALLOWED for each in server.reaches}
    # Without a version, the operator assumes the newest one that it knows.
    if (version := _VERSION.search(values.image)) is not None:
        spec["version"] = version[1]
    if server.names_seed:
        spec["externalLabels"] = {"seed": values.seed}
    if values.entrance is None:
        return found
    spec["externalUrl"] = f"https://{values.entrance.host}"
    return [*found, ingress(name_of(name), values.entrance, port=_WEB, labels=labels(prometheus))]


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
    return objects(server, values)


def _secrets(server: str, inputs: SeedInputs) -> list[Config]:
    return certificates(inputs, name_of(server), _LETTER) if _is_reached(server, inputs) else []


COMPONENTS = [
    SeedComponent(
        name=name_of(each),
        title=f"{each} Prometheus",
        images=["prometheus"],
        objects=partial(_objects, each),
        secrets=partial(_secrets, each),
    )
    for each in SERVERS
]
