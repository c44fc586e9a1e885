"""One pass over an Etcd: what its operator does, for one member, which is a process.

The data stay when it sleeps, and go with the object. What is asked for is done by the same pass, whether the annotation
that asks is there or not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gardener import keys
from gardener.api.druid import ETCDS
from kube.apply.shared_objects import share
from kube.clock import format_time
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    mapping,
    metadata,
    spec,
    string_map,
    text,
)
from kube.paths import mapping_at
from kube.resources import SECRETS, SERVICES
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter
from localprocesses.local import HOST
from localprovider.runner import conditions
from localprovider.runner.addresses import Here
from localprovider.runner.commands import etcd
from localprovider.runner.pods import Pod, Pods, Standing
from localprovider.runner.probes import Probe
from localprovider.runner.volumes import File, MissingSource, content_of

FINALIZER = "druid.gardener.cloud/etcd-druid"
_MISSING_SECONDS = 1.0
_READY, _NOT_READY = ("Ready", "AllMembersReady"), "NotReady"
_CERTIFICATES = "/certificates"
_PORTS = (("client", 2379), ("server", 2380), ("backuprestore", 8080))


@dataclass(eq=False, kw_only=True, slots=True)
class EtcdReconciler:
    client: Client
    pods: Pods
    secrets: Store[Object]
    is_of_shoot: Callable[[str], bool]
    """Whether a namespace is."""
    clock: Callable[[], datetime]
    etcds: Store[Object] = field(init=False)
    statuses: StatusWriter = field(init=False)

    def begin(self, etcds: Store[Object]) -> None:
        """To be called before the first pass, once the kind is served."""
        self.etcds, self.statuses = etcds, StatusWriter(self.client, etcds)

    async def reconcile(self, name: Key) -> Result:
        found = self.etcds.get(name)
        if found is None or not self.is_of_shoot(name.namespace):
            return Done()
        if is_deleting(found):
            await self.pods.stop(name.namespace, name.name)
            self.pods.places.forget_pod(name.namespace, name.name)
            await remove_finalizer(self.client, ETCDS, found, FINALIZER)
            return Done()
        found = await ensure_finalizer(self.client, ETCDS, found, FINALIZER)
        await share(self.client, SERVICES, _service(found))
        found = await self._taken_up(found)
        if not integer(spec(found).get("replicas")):
            await self.pods.stop(name.namespace, name.name)
            await self._report(found, Standing("", 0.0))
            return Done()
        try:
            standing = await self.pods.run(self._pod(found))
        except MissingSource as error:
            standing = Standing(str(error), _MISSING_SECONDS)
        await self._report(found, standing)
        return RequeueAfter(standing.wait)

    async def _taken_up(self, found: Object) -> Object:
        """Without the annotation that asks for what is done now."""
        if keys.OPERATION not in annotations(found):
            return found
        name, meta = key(found), {"annotations": {keys.OPERATION: None}}
        meta["resourceVersion"] = metadata(found)["resourceVersion"]
        written = await self.client.patch(ETCDS, name.name, {"metadata": meta}, namespace=name.namespace)
        self.etcds.observe(written)
        return written

    def _pod(self, found: Object) -> Pod:
        """Raises MissingSource, LocalProcessError."""
        name, places = key(found), self.pods.places
        clients, peers, metrics = (
            places.port(name.namespace, f"{name.name}-{each}") for each in ("client", "peer", "metrics")
        )
        own = places.of_pod(name.namespace, name.name)
        here = Here(own / "root", (), name.namespace, {})
        tls = mapping_at(spec(found), "etcd", "clientUrlTls")
        authority, server = mapping(tls.get("tlsCASecretRef")), mapping(tls.get("serverTLSSecretRef"))
        files = [
            self._file(name.namespace, authority, text(authority.get("dataKey")) or "ca.crt", "ca/bundle.crt"),
            self._file(name.namespace, server, "tls.crt", "server/tls.crt"),
            self._file(name.namespace, server, "tls.key", "server/tls.key"),
        ]
        return Pod(
            namespace=name.namespace,
            name=name.name,
            here=here,
            command=etcd(
                data=own / "data", certificates=here.path(_CERTIFICATES), peers=peers, clients=clients, metrics=metrics
            ),
            files=files,
            probe=Probe(f"http://{HOST}:{metrics}/health"),
        )

    def _file(self, namespace: str, reference: Object, field: str, path: str) -> File:
        name = text(reference.get("name"))
        secret = self.secrets.get(Key(namespace, name))
        if secret is None:
            raise MissingSource(f"Secret {name} is not there yet")
        return File(f"{_CERTIFICATES}/{path}", content_of(SECRETS, secret)[field], is_fixed=True)

    async def _report(self, found: Object, standing: Standing) -> None:
        wanted = integer(spec(found).get("replicas"))
        ready, moment = 0 if standing.problem else wanted, format_time(self.clock())
        status: Object = {
            "observedGeneration": metadata(found)["generation"],
            "clusterSize": wanted,
            "replicas": wanted,
            "currentReplicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "ready": not standing.problem,
            "serviceName": _service_name(found),
            "conditions": [
                conditions.condition(found, each, is_true=not standing.problem, said=standing.problem, now=moment)
                for each in _READY
            ],
            "lastError": None,
        }
        await self.statuses.write(found, status)


def _service_name(found: Object) -> str:
    return f"{key(found).name}-client"


def _service(found: Object) -> Object:
    owner = {**ETCDS.reference(name=key(found).name, uid=text(metadata(found).get("uid"))), "controller": True}
    having = string_map(mapping(spec(found).get("labels")))
    of_service = mapping_at(spec(found), "etcd", "clientService")
    meta = {
        "name": _service_name(found),
        "namespace": key(found).namespace,
        "labels": {**having, **string_map(mapping(of_service.get("labels")))},
        "annotations": string_map(mapping(of_service.get("annotations"))),
        "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
    }
    ports = [{"name": name, "port": port, "protocol": "TCP", "targetPort": port} for name, port in _PORTS]
    return {**SERVICES.type_meta, "metadata": meta, "spec": {"type": "ClusterIP", "selector": having, "ports": ports}}
