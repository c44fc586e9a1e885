"""What runs beside a gardenlet on a seed with pods, simulated, but for the seed's resource manager, which is a process.

    async with asyncio.TaskGroup() as tasks:
        playing = tasks.create_task(pods(client, namespace, shoot_cluster).play())
        ...
        playing.cancel()

The Shoot's own resource manager has tokens for the Secrets that ask for them; they are for another cluster, which stands
for the Shoot's.
"""

import base64
from datetime import timedelta
from functools import partial

import yaml

from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import MANAGED_RESOURCES
from kit.played_shoots import PLAYED, Do, Player, applies
from kube.clock import format_time, utc_now
from kube.objects import Object, annotations, key, labels, spec, string_map
from kube.resources import DEPLOYMENTS, SECRETS, Resource
from kube.runtime.client import Client


def pods(client: Client, namespace: str, shoot: Cluster) -> Player:
    """Args: client: of the seed. namespace: of the Shoot in the seed. shoot: the cluster that stands for the Shoot's."""
    kinds = {each: PLAYED[each] for each in (DEPLOYMENTS, ETCDS, DNS_RECORDS)}
    more: dict[Resource, Do] = {MANAGED_RESOURCES: _applies_in_shoot, SECRETS: partial(_gives_token, shoot.token)}
    return Player(client, namespace=namespace, played={**kinds, **more})


async def _applies_in_shoot(client: Client, resource: Resource, managed: Object) -> None:
    if not spec(managed).get("class"):
        await applies(client, resource, managed)


async def _gives_token(token: str, client: Client, resource: Resource, secret: Object) -> None:
    if labels(secret).get(keys.PURPOSE) != keys.PURPOSE_TOKEN_REQUESTOR:
        return
    if keys.TOKEN_RENEW_TIMESTAMP in annotations(secret):
        return
    data = {"token": _encoded(token.encode())}
    if kubeconfig := string_map(secret.get("data")).get("kubeconfig"):
        config = yaml.safe_load(base64.b64decode(kubeconfig))
        config["users"][0]["user"] = {"token": token}
        data = {"kubeconfig": _encoded(yaml.safe_dump(config).encode())}
    notes = {keys.TOKEN_RENEW_TIMESTAMP: format_time(utc_now() + timedelta(hours=12))}
    name = key(secret)
    await client.patch(resource, name, {"data": data, "metadata": {"annotations": notes}})


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
