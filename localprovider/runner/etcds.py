"""One pass over an Etcd: the work of its operator, for one member, which is a process.

The data stay during hibernation, and are deleted with the object; `backups` handles their loss. Each pass does the
same, with or without an annotation that requests an operation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from gardener import keys
from gardener.api.druid import ETCDS
from kube.apply.shared_objects import ensure
from kube.clock import format_time
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    mapping,
    mappings,
    metadata,
    spec,
    string_map,
    text,
)
from kube.objects import condition as found_condition
from kube.paths import mapping_at
from kube.resources import SECRETS, SERVICES
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.edits import take_annotation
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter
from localprocesses.confined import OutsideError
from localprocesses.local import HOST, LocalProcessError
from localprovider.runner import conditions
from localprovider.runner.addresses import Here
from localprovider.runner.backups import ASKED, Backups, Place, has_store, said_of, secret_of
from localprovider.runner.commands import NotBuilt, etcd
from localprovider.runner.etcd_client import EtcdClient
from localprovider.runner.pods import ROOT, Pod, Pods, Standing
from localprovider.runner.probes import Probe
from localprovider.runner.sidecars import Sidecars
from localprovider.runner.volumes import File, MissingSource, content_of

NAMES = ("etcd-main", "etcd-events")
"""Etcds that are run: those of a Shoot."""
FINALIZER = "druid.gardener.cloud/etcd-druid"
_MISSING_SECONDS, _LOST_SECONDS = 1.0, 2.0
_READY, _BACKUP = ("Ready", "AllMembersReady"), "BackupReady"
_CERTIFICATES = "/certificates"
_PORTS = (("client", 2379), ("server", 2380), ("backuprestore", 8080))


@dataclass(eq=False, kw_only=True, slots=True)
class EtcdReconciler:
    client: Client
    pods: Pods
    secrets: Store[Object]
    backups: Backups
    sidecars: Sidecars
    is_of_shoot: Callable[[str], bool]
    """Whether a namespace belongs to a Shoot."""
    clock: Callable[[], datetime]
    etcds: Store[Object] = field(init=False)
    statuses: StatusWriter = field(init=False)

    def begin(self, etcds: Store[Object]) -> None:
        """Begin before the first pass, once the kind is served."""
        self.etcds, self.statuses = etcds, StatusWriter(self.client, etcds)

    async def reconcile(self, name: Key) -> Result:
        found = self.etcds.get(name)
        if found is None or name.name not in NAMES or not self.is_of_shoot(name.namespace):
            return Done()
        if is_deleting(found):
            await self._stop(name)
            self.pods.places.forget_pod(name.namespace, name.name)
            await remove_finalizer(self.client, ETCDS, found, FINALIZER)
            return Done()
        found = await ensure_finalizer(self.client, ETCDS, found, FINALIZER)
        await ensure(self.client, SERVICES, _service(found))
        found = await self._taken_up(found)
        if not integer(spec(found).get("replicas")):
            await self._stop(name)
            await self._report(found, Standing("", 0.0))
            return Done()
        try:
            lost = await self._prepare(found)
            standing = Standing(lost, _LOST_SECONDS) if lost else await self._run(found)
        except MissingSource as error:
            lost, standing = "", Standing(str(error), _MISSING_SECONDS)
        except NotBuilt as error:
            lost, standing = "", await self.pods.build(error.release)
        except (LocalProcessError, OSError, OutsideError) as error:
            await self._report(found, Standing(str(error), 0.0), error=str(error))
            raise ReconcileError(str(error)) from error
        if lost:
            await self._report(found, standing, error=lost)
            return RequeueAfter(standing.wait)
        backup = "" if standing.problem else await self._due(found)
        await self._report(found, standing, backup=backup)
        return RequeueAfter(standing.wait)

    async def _prepare(self, found: Object) -> str:
        """Return the reason why it may not run; empty if it may."""
        name, places = key(found), self.pods.places
        own = f"{name.namespace}/{name.name}"
        place = Place(files=places.files_of(name.namespace), own=own, peers=_url("http", self._port(name, "peer")))
        return await self.backups.prepare(
            found, place, self.secrets.get(secret_of(found)), lambda: self.pods.stop(name.namespace, name.name)
        )

    async def _run(self, found: Object) -> Standing:
        """Run its process and its sidecar. Raises MissingSource, LocalProcessError, OSError, OutsideError."""
        name, standing = key(found), await self.pods.run(self._pod(found))
        await self.sidecars.serve(name, self._port(name, "backup"), self._certificates(name), partial(self._take, name))
        return standing

    async def _stop(self, name: Key) -> None:
        await self.sidecars.stop(name)
        await self.pods.stop(name.namespace, name.name)

    async def _due(self, found: Object) -> str:
        """Make due snapshots, and one that its annotation requests. Return the problem."""
        is_asked = ASKED in annotations(found)
        problem = await self._keep(found, is_asked=is_asked)
        if is_asked and not problem:
            await self._without(found, ASKED)
        return problem

    async def _take(self, name: Key) -> str:
        """Take a snapshot now. Return the problem."""
        found = self.etcds.get(name)
        return "the Etcd is gone" if found is None else await self._keep(found, is_asked=True)

    async def _keep(self, found: Object, *, is_asked: bool) -> str:
        name = key(found)
        client = EtcdClient(self.pods.session, _url("https", self._port(name, "client")), self._certificates(name))
        return await self.backups.keep(found, client, self.secrets.get(secret_of(found)), is_asked=is_asked)

    def _certificates(self, name: Key) -> Path:
        return self._here(name).path(_CERTIFICATES)

    def _port(self, name: Key, server: str) -> int:
        return self.pods.places.port(name.namespace, f"{name.name}-{server}")

    def _here(self, name: Key) -> Here:
        return Here(self.pods.places.of_pod(name.namespace, name.name) / ROOT, (), name.namespace, {})

    async def _taken_up(self, found: Object) -> Object:
        """Remove the annotation that requests the operation of this pass."""
        return await self._without(found, keys.OPERATION) if keys.OPERATION in annotations(found) else found

    async def _without(self, found: Object, annotation: str) -> Object:
        written = await take_annotation(self.client, ETCDS, found, annotation)
        self.etcds.observe(written)
        return written

    def _pod(self, found: Object) -> Pod:
        """Return the pod of an Etcd.

        Raises:
            MissingSource: a Secret does not exist yet, or is incomplete.
            NotBuilt: its program has to be built first.
            LocalProcessError: a program is not available, or there are too many namespaces.
        """
        name = key(found)
        clients, peers, metrics = (self._port(name, each) for each in ("client", "peer", "metrics"))
        own, here = self.pods.places.of_pod(name.namespace, name.name), self._here(name)
        tls = mapping_at(spec(found), "etcd", "clientUrlTls")
        authority, server, client = (
            mapping(tls.get(each)) for each in ("tlsCASecretRef", "serverTLSSecretRef", "clientTLSSecretRef")
        )
        files = [
            self._file(name.namespace, authority, text(authority.get("dataKey")) or "ca.crt", "ca/bundle.crt"),
            self._file(name.namespace, server, "tls.crt", "server/tls.crt"),
            self._file(name.namespace, server, "tls.key", "server/tls.key"),
        ]
        if client:
            # Files of the client for snapshots: etcd itself does not read them.
            paths = ((each, f"client/{each}") for each in ("tls.crt", "tls.key"))
            files += (replace(self._file(name.namespace, client, *each), is_fixed=False) for each in paths)
        return Pod(
            namespace=name.namespace,
            name=name.name,
            here=here,
            command=etcd(
                data=own / "data", certificates=self._certificates(name), peers=peers, clients=clients, metrics=metrics
            ),
            files=files,
            probe=Probe(f"http://{HOST}:{metrics}/health"),
        )

    def _file(self, namespace: str, reference: Object, field: str, path: str) -> File:
        name = text(reference.get("name"))
        secret = self.secrets.get(Key(namespace, name))
        if secret is None:
            raise MissingSource(f"Secret {name} does not exist yet")
        if (content := content_of(SECRETS, secret).get(field)) is None:
            raise MissingSource(f"Secret {name} has no {field} yet")
        return File(f"{_CERTIFICATES}/{path}", content, is_fixed=True)

    async def _report(self, found: Object, standing: Standing, *, error: str = "", backup: str = "") -> None:
        """Report the state; `error` is the reason why it may not run, `backup` why there is no snapshot."""
        wanted = integer(spec(found).get("replicas"))
        ready, moment = 0 if standing.problem else wanted, format_time(self.clock())
        reported = [
            conditions.condition(found, each, is_true=not standing.problem, reported=standing.problem, now=moment)
            for each in _READY
        ]
        if wanted and has_store(found) and not (standing.problem and not error):
            problem, good = backup or error, said_of(found)
            reported.append(
                conditions.condition(found, _BACKUP, is_true=not problem, reported=problem, now=moment, good=good)
            )
        else:
            reported += (each for each in [found_condition(found, _BACKUP)] if each)
        status: Object = {
            "observedGeneration": metadata(found)["generation"],
            "clusterSize": wanted,
            "replicas": wanted,
            "currentReplicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "ready": not standing.problem,
            "serviceName": _service_name(found),
            "conditions": reported,
            "lastError": error or None,
        }
        if wanted:
            status["members"] = _members(found, standing, moment)
        await self.statuses.write(found, status)


def _members(found: Object, standing: Standing, moment: str) -> list[Object]:
    """A member stays listed after its first readiness; absent data then means loss."""
    before = mappings(mapping(found.get("status")).get("members"))
    if standing.problem and not before:
        return []
    status = "NotReady" if standing.problem else "Ready"
    is_same = bool(before) and before[0].get("status") == status
    since = text(before[0].get("lastTransitionTime")) if is_same else moment
    named = {"name": f"{key(found).name}-0", "role": "Leader"}
    return [{**named, "status": status, "reason": f"Process{status}", "lastTransitionTime": since}]


def _url(scheme: str, port: int) -> str:
    return f"{scheme}://{HOST}:{port}"


def servers_of(etcd: str) -> tuple[str, ...]:
    """Names of its servers with local ports, in the order of the ports of its Service."""
    return tuple(f"{etcd}-{each}" for each in ("client", "peer", "backup"))


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
    # Its load balancer publishes the local ports.
    kind = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    return {**SERVICES.type_meta, "metadata": meta, "spec": {**kind, "selector": having, "ports": ports}}
