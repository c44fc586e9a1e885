"""The Worker object: all pools of a Shoot, for the provider that creates their machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.parts import made
from components.worker_pools.pools import Pool
from gardener.api.extensions import WORKERS
from kube.objects import Object, text

_CAPACITY = ("cpu", "gpu", "memory")
_GIVEN = (
    *("annotations", "taints", "volume", "dataVolumes", "kubeletDataVolumeName", "providerConfig"),
    *("machineControllerManager", "clusterAutoscaler"),
)
"""Fields of a pool that are copied from the Shoot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    name: of the Shoot.
    pools: with references to the Secrets with their user data.
    ssh_key: the public one, base64; empty if SSH is disabled.
    status: `providerStatus` of the Infrastructure; None if it has none.
    """

    namespace: str
    name: str
    type: str
    region: str
    secret: str
    ssh_key: str = ""
    status: Any
    pools: Sequence[tuple[Pool, Mapping[str, Any]]]


def worker(values: Values) -> Object:
    spec: Object = {
        "type": values.type,
        "region": values.region,
        "secretRef": {"name": values.secret, "namespace": values.namespace},
        **({"sshPublicKey": values.ssh_key} if values.ssh_key else {}),
        "pools": [_pool(pool, reference) for pool, reference in values.pools],
    }
    if values.status is not None:
        spec["infrastructureProviderStatus"] = values.status
    return made(WORKERS, values.name, namespace=values.namespace, spec=spec)


def _pool(pool: Pool, reference: Mapping[str, Any]) -> Object:
    requested = pool.requested
    given = {name: requested[name] for name in _GIVEN if requested.get(name)}
    return {
        "name": pool.name,
        "architecture": pool.architecture,
        "kubernetesVersion": pool.version,
        "machineType": text(pool.type.get("name")),
        "machineImage": {name: text(pool.image.get(name)) for name in ("name", "version")},
        "minimum": pool.minimum,
        "maximum": pool.maximum,
        "maxSurge": requested.get("maxSurge", 1),
        "maxUnavailable": requested.get("maxUnavailable", 0),
        "labels": pool.labels,
        "nodeTemplate": {"capacity": {name: text(pool.type.get(name)) or "0" for name in _CAPACITY}},
        "userDataSecretRef": dict(reference),
        "zones": pool.zones,
        **given,
    }
