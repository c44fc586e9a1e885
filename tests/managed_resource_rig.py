"""ManagedResources for tests against an agent that runs as a process: write them, and wait for what comes of them.

Everything is in the test's own namespace and of a resource class of the agent's own, so agents of several test
processes share a cluster without touching each other's objects.
"""

import base64
import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson
from agent_process import AgentProcess

from agent.api import MANAGED_RESOURCES
from devcluster.cluster import Cluster
from kube.errors import Conflict, NotFound
from kube.objects import Object, annotations, condition, is_deleting, labels, uid
from kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES, SECRETS, Resource

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds: on a busy machine the garbage collector of Kubernetes, for one, may take as long as this nearly."""

KINDS = {
    resource.kind: resource
    for resource in (
        CONFIG_MAPS,
        EVENTS,
        NAMESPACES,
        SECRETS,
        MANAGED_RESOURCES,
        Resource("", "v1", "Service", "services", namespaced=True),
        Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True),
        Resource("", "v1", "Pod", "pods", namespaced=True),
        Resource("", "v1", "ResourceQuota", "resourcequotas", namespaced=True),
        Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
        Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True),
        Resource("batch", "v1", "Job", "jobs", namespaced=True),
        Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True),
    )
}


class Agent:
    """The agent of a test process, and what it is called in the cluster."""

    def __init__(self, cluster: Cluster, *, resource_class: str, managed_by: str = "", **sections: Any) -> None:
        self.resource_class = resource_class
        self.managed_by = managed_by or resource_class
        self.user = f"agent-{resource_class}"
        """Who calls, in the audit log."""
        self._cluster = cluster
        self._kubeconfig = cluster.kubeconfig_for(self.user, ["system:masters"])
        controllers = {
            "resourceClass": resource_class,
            "managedResource": {"syncPeriod": "15s", "managedByLabelValue": self.managed_by},
            "health": {"syncPeriod": "15s"},
            **sections,
        }
        self._config = {
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
            "sourceClientConnection": {"qps": 1000, "burst": 1000},
            "targetClientConnection": {"qps": 1000, "burst": 1000},
            "logFormat": "json",
            "controllers": controllers,
        }

    def start(self) -> AgentProcess:
        """To be stopped by whoever started it."""
        return AgentProcess(self._config, kubeconfig=self._kubeconfig).start().wait_until_ready(seconds=PATIENCE)


class Rig:
    """One test's namespace, seen by its administrator."""

    def __init__(self, cluster: Cluster, namespace: str, agent: Agent, process: AgentProcess) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.agent = agent
        self.process = process

    # --- writing

    def write(self, name: str, *objects: Object, **spec: Any) -> None:
        """A ManagedResource and its Secret, both of this name, that hold these objects and no others."""
        self.write_secret(name, *objects)
        self.write_managed_resource(name, secretRefs=[{"name": name}], **spec)

    def write_secret(self, name: str, *objects: Object) -> None:
        documents = b"".join(b"---\n" + orjson.dumps(self.placed(obj)) + b"\n" for obj in objects)
        self.write_data(name, {"objects.yaml": documents})

    def write_data(self, name: str, data: Mapping[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.put(_object(SECRETS, name, data=encoded))

    def write_managed_resource(
        self, name: str, *, annotated: Mapping[str, str] | None = None, resource_class: str = "", **spec: Any
    ) -> None:
        obj = _object(MANAGED_RESOURCES, name, spec={"class": resource_class or self.agent.resource_class, **spec})
        if annotated:
            obj["metadata"]["annotations"] = dict(annotated)
        self.put(obj)

    def put(self, obj: Object) -> Object:
        """Create it or replace its content; finalizers stay."""
        obj = self.placed(obj)
        kind, name = obj["kind"], obj["metadata"]["name"]
        while True:
            live = self.find(kind, name)
            if live is None:
                return self.cluster.api.create(KINDS[kind].path(namespace=self.namespace), obj)
            with contextlib.suppress(Conflict, NotFound):  # somebody wrote to it or removed it meanwhile
                meta = {**live["metadata"], **obj["metadata"]}
                return self.cluster.api.update(self._path(kind, name), {**obj, "metadata": meta})

    def patch(self, kind: str, name: str, patch: Object) -> Object:
        return self.cluster.api.patch(self._path(kind, name), patch)

    def delete(self, kind: str, name: str) -> None:
        self.cluster.api.delete(self._path(kind, name))

    def placed(self, obj: Object) -> Object:
        if not (resource := KINDS.get(obj.get("kind") or "")) or not resource.namespaced:
            return obj
        return {**obj, "metadata": {"namespace": self.namespace, **obj.get("metadata", {})}}

    @contextlib.contextmanager
    def asleep(self) -> Iterator[None]:
        """The agent sees what happens in the block only after it."""
        self.process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.signal(signal.SIGCONT)

    # --- looking

    def get(self, kind: str, name: str) -> Object:
        return self.cluster.api.get(self._path(kind, name))

    def find(self, kind: str, name: str) -> Object | None:
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def uid(self, kind: str, name: str) -> str:
        return uid(self.get(kind, name))

    def origin(self, kind: str, name: str) -> str:
        """The name of the ManagedResource that an object is stamped with; empty if there is none, or no object."""
        stamped = annotations(self.find(kind, name) or {}).get("resources.gardener.cloud/origin", "")
        return stamped.removeprefix(f"{self.namespace}/")

    def applied(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of the condition ResourcesApplied."""
        found = condition(self.find("ManagedResource", name) or {}, "ResourcesApplied") or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def listed(self, name: str) -> set[str]:
        """Names of all objects that the ManagedResource knows it may have in the target."""
        status = self.get("ManagedResource", name).get("status") or {}
        entries = [*(status.get("resources") or []), *(status.get("pendingResources") or [])]
        return {entry["name"] for entry in entries}

    def events(self, name: str, *, kind: str = "Warning") -> list[Object]:
        """Events about a ManagedResource."""
        found = self.cluster.api.get(EVENTS.path(namespace=self.namespace))["items"]
        return [
            event
            for event in found
            if event["involvedObject"]["name"] == name
            and event["involvedObject"]["kind"] == "ManagedResource"
            and event["type"] == kind
        ]

    def _path(self, kind: str, name: str) -> str:
        return KINDS[kind].path(namespace=self.namespace, name=name)

    # --- waiting

    def until(self, found: Callable[[], T], what: str, *, seconds: float = PATIENCE) -> T:
        """What `found` returns once it is true."""
        deadline = time.monotonic() + seconds
        while not (result := found()):
            assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}; {self._state()}"
            assert self.process.process.poll() is None, f"the agent ended:\n{self.process.log[-4000:]}"
            time.sleep(0.02)
        return result

    def until_applied(self, name: str, *, seconds: float = PATIENCE) -> None:
        """All that the ManagedResource holds by now is applied."""

        def is_applied() -> bool:
            obj = self.get("ManagedResource", name)
            seen = (obj.get("status") or {}).get("observedGeneration") == obj["metadata"]["generation"]
            return seen and self.applied(name)[:2] == ("True", "ApplySucceeded")

        self.until(is_applied, f"{name} to be applied", seconds=seconds)

    def until_failed(self, name: str, *texts: str, reason: str = "ApplyFailed", seconds: float = PATIENCE) -> str:
        """The condition has this reason and names all of this; returns its message."""

        def message() -> str:
            _, told, message = self.applied(name)
            return message if told == reason and all(text in message for text in texts) else ""

        return self.until(message, f"{name} to tell {reason} with {texts}", seconds=seconds)

    def until_gone(self, kind: str, name: str, *, seconds: float = PATIENCE) -> None:
        self.until(lambda: self.find(kind, name) is None, f"{kind} {name} to be gone", seconds=seconds)

    def until_data(self, name: str, data: Mapping[str, str], *, seconds: float = PATIENCE) -> None:
        self.until(
            lambda: (self.find("ConfigMap", name) or {}).get("data") == data,
            f"ConfigMap {name} to have {data}",
            seconds=seconds,
        )

    def _state(self) -> str:
        found = self.cluster.api.get(MANAGED_RESOURCES.path(namespace=self.namespace))["items"]
        told = []
        for obj in found:
            name = obj["metadata"]["name"]
            told.append(f"{name}{' (deleting)' if is_deleting(obj) else ''}: {self.applied(name)}")
        log = [line for line in self.process.log.splitlines() if self.namespace in line][-20:]
        return "\n".join([*told, "", *log])


def stamped_by(obj: Object) -> str:
    """The value of the managed-by label."""
    return labels(obj).get("resources.gardener.cloud/managed-by", "")


def resident_peak_bytes(agent: AgentProcess) -> int:
    """The most memory that the process has had so far."""
    for line in Path(f"/proc/{agent.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell")


def config_map(name: str, annotated: Mapping[str, str] | None = None, **data: str) -> Object:
    obj = _object(CONFIG_MAPS, name, data=data or {"k": "v"})
    if annotated:
        obj["metadata"]["annotations"] = dict(annotated)
    return obj


def service(name: str, **spec: Any) -> Object:
    return _object(KINDS["Service"], name, spec={"ports": [{"port": 80}], **spec})


def deployment(name: str) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return _object(KINDS["Deployment"], name, spec=spec)


def stateful_set(name: str) -> Object:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template}
    return _object(KINDS["StatefulSet"], name, spec={**spec, "volumeClaimTemplates": [claim]})


def role(name: str) -> Object:
    return _object(KINDS["Role"], name, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])


def custom_kind(group: str, kind: str) -> tuple[Object, Resource]:
    """A CustomResourceDefinition of a namespaced kind, and how that is reached."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    return definition, Resource(group, "v1", kind, plural, namespaced=True)


def _object(resource: Resource, name: str, **fields: Any) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **fields}
