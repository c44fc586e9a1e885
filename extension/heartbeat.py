"""The Lease by which the gardenlet sees that an extension runs: conditions of one that does not are outdated."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kube.clock import format_micro_time
from kube.errors import NotFound
from kube.objects import Key
from kube.resources import LEASES
from kube.runtime.client import Client
from kube.runtime.controller import RequeueAfter, Result
from kube.runtime.loop import ControlLoop
from process.clusters import Cluster

NAME = "gardener-extension-heartbeat"
"""Name of the Lease, in the namespace of the extension."""
_MAX_BACKOFF = 2.0


def declare(seed: Cluster, *, namespace: str, holder: str, seconds: int) -> ControlLoop:
    """Declare the control loop that renews the Lease after so many seconds each."""
    loop = ControlLoop("heartbeat", kind=LEASES, max_backoff=_MAX_BACKOFF, initial_keys=[Key(namespace, NAME)])
    client = seed.client.without_limit()
    return loop.reconciled_by(Heartbeat(client=client, holder=holder, seconds=seconds, clock=seed.clock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    client: Client
    holder: str
    seconds: int
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        renewed = {"holderIdentity": self.holder, "leaseDurationSeconds": self.seconds}
        renewed["renewTime"] = format_micro_time(self.clock())
        try:
            await self.client.patch(LEASES, name, {"spec": renewed})
        except NotFound:
            meta = {"name": name.name, "namespace": name.namespace}
            await self.client.create(LEASES, {**LEASES.type_meta, "metadata": meta, "spec": renewed})
        return RequeueAfter(self.seconds)
