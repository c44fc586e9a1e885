"""Objects for worker pools of a Shoot."""

import orjson

from components.worker_pools import worker
from components.worker_pools.pools import pools_of
from gardener.api.garden import CLOUD_PROFILES, SHOOTS
from kit.garden_objects import garden_object

STORED = 1 << 20
"""Bytes: etcd takes somewhat more in one request."""


def test_an_object_for_many_pools_is_stored() -> None:
    shoot = garden_object(SHOOTS)
    (pool,) = shoot["spec"]["provider"]["workers"]
    shoot["spec"]["provider"]["workers"] = [{**pool, "name": f"pool-{number:03}"} for number in range(500)]
    pools = pools_of(shoot, garden_object(CLOUD_PROFILES))
    made = worker.worker(
        worker.Values(
            namespace="shoot--p--s",
            name="s",
            type="local",
            region="local",
            secret="cloudprovider",
            ssh_key="key",
            status=None,
            pools=[(each, {"name": each.key, "key": "cloud_config"}) for each in pools],
        )
    )
    assert len(orjson.dumps(made)) < STORED
