"""Version of an API server. Proxies return JSON, too, so an answer without a version does not count."""

from kube.errors import Unreachable
from kube.objects import text
from kube.runtime.client import Client


async def server_version(client: Client) -> str:
    """Version of Kubernetes, such as `v1.30.5`."""
    version = text((await client.read("/version")).get("gitVersion"))
    if not version:
        raise Unreachable("the response to /version has no version, perhaps it is from a proxy")
    return version
