"""Identity of this gardenlet, for `status.gardener` of the objects that it reconciles, and of its seed."""

import re
import secrets
import socket
from pathlib import Path

from kube.objects import Object
from kube.runtime.client import Form, Selection
from process.clusters import Cluster

_GARDENS = ("operator.gardener.cloud/v1alpha1", "Garden")
_CGROUP = Path("/proc/self/cgroup")
_CONTAINER = re.compile(r"^(?:0:|1:name=systemd):.*?([0-9a-f]{64})", re.MULTILINE)


def gardener(version: str) -> Object:
    """Return id, host and version. The id of a process outside of containers is random."""
    return {"id": _container(_CGROUP) or secrets.token_hex(32), "name": socket.gethostname(), "version": version}


async def is_garden(seed: Cluster) -> bool:
    """Whether the garden runs in the seed cluster."""
    resource = await seed.discovery.kind_if_served(*_GARDENS)
    if resource is None:
        return False
    return bool((await seed.client.list_page(resource, Selection(), form=Form.METADATA, limit=1)).get("items"))


def _container(path: Path) -> str:
    """Id of the container of this process; empty if none."""
    try:
        found = _CONTAINER.findall(path.read_text())
    except OSError:
        return ""
    return str(found[0]) if found else ""
