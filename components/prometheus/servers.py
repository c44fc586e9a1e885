"""Common objects of the Prometheus servers of a seed: a pure function of one of them."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from components.access import cluster_role_binding, service_account
from components.entrances import Entrance, ingress
from components.monitors import SERVER
from components.parts import GARDEN, allowed_ports, autoscaler_of, in_seed, made
from components.workloads import REACHES_API_SERVER, SCRAPED_IN_SEED, port, service
from gardener import conditions, keys
from gardener.api.kinds import PROMETHEUSES
from kube.objects import Object
from kube.resources import SECRETS

ROLE = "prometheus"
"""Role of Prometheus servers in the seed, deployed with the operator."""
_PORT, _WEB = 9090, 80
_SCRAPES = f"{keys.NETWORKING_PREFIX}to-all-seed-scrape-targets"
_JOBS = "prometheus.yaml"
_READS = ("podMonitor", "probe", "rule", "scrapeConfig", "serviceMonitor")
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
        reaches: keys of additional labels of its Pods.
        external_labels: of all of its series.
        jobs: further scrape configs, as text.
        more: objects of this server only.
    """

    name: str
    memory: str
    volume: int
    keeps: Mapping[str, str]
    reaches: Sequence[str] = ()
    external_labels: Mapping[str, str] = field(default_factory=dict)
    jobs: str = ""
    more: Sequence[Object] = ()


def name_of(server: str) -> str:
    """Name of a server's component, Service and ServiceAccount."""
    return f"prometheus-{server}"


def objects(server: Server, values: Values) -> list[Object]:
    name = name_of(server.name)
    return in_seed(name, _contents(server, values), condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


def _contents(server: Server, values: Values) -> Iterator[Object]:
    name = name_of(server.name)
    labels = {"app": "prometheus", "name": server.name, "role": "monitoring"}
    yield service_account(name, GARDEN, labels=labels)
    yield cluster_role_binding(name, name, namespace=GARDEN, role=ROLE, labels=labels, is_replaceable=True)
    jobs = {_JOBS: base64.b64encode(server.jobs.encode()).decode()}
    yield made(SECRETS, _jobs_of(name), namespace=GARDEN, labels=labels, type="Opaque", data=jobs)
    yield service(
        name,
        ports=[port("web", _WEB, _PORT)],
        selects={SERVER: server.name},
        labels=labels,
        annotations={SCRAPED_IN_SEED: allowed_ports(_PORT), keys.NAMESPACE_SELECTORS: _shoots()},
    )
    yield _prometheus(server, values, labels)
    yield autoscaler_of(
        {**PROMETHEUSES.type_meta, "name": server.name},
        name,
        GARDEN,
        policies=[
            {
                "containerName": "prometheus",
                "controlledValues": "RequestsOnly",
                "minAllowed": {"memory": server.memory},
            },
            {"containerName": "config-reloader", "mode": "Off"},
        ],
        labels={**labels, **_observed(name)},
    )
    if values.entrance is not None:
        yield ingress(name, values.entrance, port=_WEB, labels=labels)
    yield from server.more


def _jobs_of(name: str) -> str:
    return f"{name}-additional-scrape-configs"


def _observed(name: str) -> Mapping[str, str]:
    return {"observability.gardener.cloud/app": name}


def _shoots() -> str:
    """Selectors of the namespaces of Shoots, whose servers federate from those of the seed."""
    return orjson.dumps([{"matchLabels": {keys.ROLE: keys.ROLE_SHOOT}}]).decode()


def _prometheus(server: Server, values: Values, labels: Mapping[str, str]) -> Object:
    name = name_of(server.name)
    reached = dict.fromkeys((_SCRAPES, *server.reaches), keys.ALLOWED)
    selector = {"matchLabels": {SERVER: server.name}}
    spec: Object = {
        "image": values.image,
        "imagePullPolicy": "IfNotPresent",
        "replicas": 1,
        "shards": 1,
        "podMetadata": {"labels": {**REACHES_API_SERVER, **reached, **_observed(name)}},
        "priorityClassName": "gardener-system-600",
        "resources": {"requests": {"cpu": "300m", "memory": "1000Mi"}},
        "securityContext": {"runAsUser": 0},
        "serviceAccountName": name,
        "reloadStrategy": "HTTP",
        "scrapeInterval": "1m",
        "evaluationInterval": "1m",
        "web": {"maxConnections": 1024},
        **server.keeps,
        "storage": {"volumeClaimTemplate": _claim(server, values)},
        "additionalScrapeConfigs": {"name": _jobs_of(name), "key": _JOBS},
        **{f"{each}Selector": selector for each in _READS},
        **{f"{each}NamespaceSelector": {} for each in _READS},
    }
    # Without a version, the operator assumes the newest one that it knows.
    if (version := _VERSION.search(values.image)) is not None:
        spec["version"] = version[1]
    if server.external_labels:
        spec["externalLabels"] = dict(server.external_labels)
    if values.entrance is not None:
        spec["externalUrl"] = f"https://{values.entrance.host}"
    return made(PROMETHEUSES, server.name, namespace=GARDEN, labels=labels, spec=spec)


def _claim(server: Server, values: Values) -> Object:
    size = f"{server.volume}Gi" if server.volume << 30 >= values.volume else str(values.volume)
    requests = {"requests": {"storage": size}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": requests}
    return {"metadata": {"name": "prometheus-db"}, "spec": spec}
