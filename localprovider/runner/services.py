"""One pass over a Service of a Shoot's namespace: publish its local port, whether or not a process runs."""

from collections.abc import Callable
from dataclasses import dataclass

from kube.objects import Key, Object, annotations, is_deleting, spec
from kube.paths import at
from kube.resources import SERVICES
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.status import StatusWriter
from localprocesses.local import HOST
from localprovider.runner.commands import PROGRAMS
from localprovider.runner.places import Places

PORT = "local.provider/port"
"""Annotation of Services."""


@dataclass(eq=False, kw_only=True, slots=True)
class ServiceReconciler:
    client: Client
    places: Places
    services: Store[Object]
    statuses: StatusWriter
    is_of_shoot: Callable[[str], bool]
    """Whether a namespace belongs to a Shoot."""

    async def reconcile(self, name: Key) -> Result:
        service = self.services.get(name)
        if service is None or is_deleting(service) or name.name not in PROGRAMS:
            return Done()
        if not self.is_of_shoot(name.namespace):
            return Done()
        port = str(self.places.port(name.namespace, name.name))
        if annotations(service).get(PORT) != port:
            service = await self.client.annotate(SERVICES, name, {PORT: port})
            self.services.observe(service)
        if spec(service).get("type") == "LoadBalancer" and not at(service, "status", "loadBalancer", "ingress"):
            await self.statuses.write(service, {"loadBalancer": {"ingress": [{"ip": HOST}]}})
        return Done()
