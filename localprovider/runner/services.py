"""One pass over a Service of a Shoot's namespace: publish its local ports, whether or not a process runs."""

from collections.abc import Callable
from dataclasses import dataclass

from kube.objects import Key, Object, is_deleting, spec
from kube.runtime.cache import Store
from kube.runtime.controller import Done, Result
from kube.runtime.status import StatusWriter
from localprocesses.components import APISERVER
from localprocesses.local import HOST
from localprovider.runner.etcds import NAMES as ETCDS
from localprovider.runner.etcds import servers_of
from localprovider.runner.places import Places

_SERVERS = {APISERVER: (APISERVER,), **{f"{etcd}-client": servers_of(etcd) for etcd in ETCDS}}
"""Names of servers with local ports, in the order of the ports of their Service."""


@dataclass(eq=False, kw_only=True, slots=True)
class ServiceReconciler:
    places: Places
    services: Store[Object]
    statuses: StatusWriter
    is_of_shoot: Callable[[str], bool]
    """Whether a namespace belongs to a Shoot."""

    async def reconcile(self, name: Key) -> Result:
        service = self.services.get(name)
        if service is None or is_deleting(service) or spec(service).get("type") != "LoadBalancer":
            return Done()
        if name.name in _SERVERS and self.is_of_shoot(name.namespace):
            ports = [self.places.port(name.namespace, each) for each in _SERVERS[name.name]]
            entry = {"ip": HOST, "ports": [{"port": each, "protocol": "TCP"} for each in ports]}
            await self.statuses.write(service, {"loadBalancer": {"ingress": [entry]}})
        return Done()
