"""Check that this cluster can be a seed, and is the configured one: reads the data that pure functions compare."""

from collections.abc import Sequence

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rules.networks import against_samples, against_shoot_info
from gardener.garden.supported_versions import Support, support, unsupported_text
from kube.objects import Key, Object, string_map
from kube.paths import mapping_at
from kube.resources import CONFIG_MAPS, NODES, PODS, SERVICES, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.server_version import server_version
from process.runner import StartError

_SHOOT_INFO, _NAMESPACE = "shoot-info", "kube-system"
_SAMPLES = 100

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def check(seed: Client, configured: Object, *, pace: Pace) -> None:
    """Check that the cluster fits the configured Seed.

    Raises:
        StartError: its Kubernetes is too old, or it has other networks.
    """
    version = await pace.patiently("read the version of the seed", lambda: server_version(seed))
    match support(version):
        case Support.NONE:
            raise StartError(unsupported_text(version))
        case Support.NEWER:
            log.warning("The seed has a version of Kubernetes that was not tested", version=version)
    networks = mapping_at(configured, "spec", "networks")
    violations = await pace.patiently("read the networks of the seed", lambda: _violations(seed, networks))
    if violations:
        raise StartError("\n".join(violations))


async def _violations(seed: Client, networks: Object) -> Sequence[str]:
    info = await seed.find(CONFIG_MAPS, Key(_NAMESPACE, _SHOOT_INFO))
    if info is not None:
        return list(against_shoot_info(networks, string_map(info.get("data"))))
    nodes, pods, services = [await _sample(seed, each) for each in (NODES, PODS, SERVICES)]
    return list(against_samples(networks, nodes=nodes, pods=pods, services=services))


async def _sample(seed: Client, resource: Resource) -> list[Object]:
    items: list[Object] = (await seed.list_page(resource, Selection(), limit=_SAMPLES))["items"]
    return items
