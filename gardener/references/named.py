"""Where manifests name ConfigMaps and Secrets, kind by kind.

A `Slot` is a field that holds such a name, so that what finds references can also change them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.references.keys import CONFIG_MAP, SECRET
from kube.objects import Object
from kube.paths import mapping_at, mappings_at

Path = tuple[str, ...]

_TEMPLATE: Path = ("spec", "template")
_JOB_TEMPLATE: Path = ("spec", "jobTemplate")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Slot:
    """`holder[field]` is the name of an object of this kind."""

    kind: str
    holder: Object
    field: str

    @property
    def name(self) -> str:
        return str(self.holder[self.field])


@dataclass(frozen=True, slots=True)
class Kind:
    """Where the names are, and which parts of the object carry annotations beside the object itself."""

    slots: Callable[[Object], Iterator[Slot]]
    annotated: tuple[Path, ...] = ()


def kind_of(obj: Object) -> Kind | None:
    """None for kinds whose objects protect nothing."""
    return _KINDS.get((obj.get("apiVersion") or "", obj.get("kind") or ""))


# --- pods


def _pod_slots(spec: Object) -> Iterator[Slot]:
    yield from _container_slots(spec, _CONTAINERS)
    yield from _volume_slots(spec)
    for pull_secret in mappings_at(spec, "imagePullSecrets"):
        yield from _slot(SECRET, pull_secret)


def _container_slots(spec: Object, fields: Iterable[str]) -> Iterator[Slot]:
    for container in (container for field in fields for container in mappings_at(spec, field)):
        for source in mappings_at(container, "envFrom"):
            yield from _slot(SECRET, source.get("secretRef"))
            yield from _slot(CONFIG_MAP, source.get("configMapRef"))
        for variable in mappings_at(container, "env"):
            source = mapping_at(variable, "valueFrom")
            yield from _slot(SECRET, source.get("secretKeyRef"))
            yield from _slot(CONFIG_MAP, source.get("configMapKeyRef"))


def _volume_slots(spec: Object) -> Iterator[Slot]:
    for volume in mappings_at(spec, "volumes"):
        yield from _slot(SECRET, volume.get("secret"), field="secretName")
        yield from _slot(CONFIG_MAP, volume.get("configMap"))
        for source in mappings_at(mapping_at(volume, "projected"), "sources"):
            yield from _slot(SECRET, source.get("secret"))
            yield from _slot(CONFIG_MAP, source.get("configMap"))


def _pods_at(*path: str) -> Callable[[Object], Iterator[Slot]]:
    return lambda obj: _pod_slots(mapping_at(obj, *path))


# --- other kinds


def _prometheus_slots(obj: Object) -> Iterator[Slot]:
    spec = mapping_at(obj, "spec")
    yield from _container_slots(spec, ("initContainers", "containers"))
    yield from _volume_slots(spec)
    for remote in mappings_at(spec, "remoteWrite"):
        login = mapping_at(remote, "basicAuth")
        yield from _slot(SECRET, login.get("username"))
        yield from _slot(SECRET, login.get("password"))


def _managed_resource_slots(obj: Object) -> Iterator[Slot]:
    for secret in mappings_at(mapping_at(obj, "spec"), "secretRefs"):
        yield from _slot(SECRET, secret)


_POD = Kind(_pods_at("spec"))
_WORKLOAD = Kind(_pods_at(*_TEMPLATE, "spec"), (_TEMPLATE,))
_CRON_JOB = Kind(_pods_at(*_JOB_TEMPLATE, *_TEMPLATE, "spec"), (_JOB_TEMPLATE, (*_JOB_TEMPLATE, *_TEMPLATE)))

_KINDS: dict[tuple[str, str], Kind] = {
    ("v1", "Pod"): _POD,
    ("apps/v1", "Deployment"): _WORKLOAD,
    ("apps/v1beta1", "Deployment"): _WORKLOAD,
    ("apps/v1beta2", "Deployment"): _WORKLOAD,
    ("apps/v1", "StatefulSet"): _WORKLOAD,
    ("apps/v1beta1", "StatefulSet"): _WORKLOAD,
    ("apps/v1beta2", "StatefulSet"): _WORKLOAD,
    ("apps/v1", "DaemonSet"): _WORKLOAD,
    ("apps/v1beta2", "DaemonSet"): _WORKLOAD,
    ("batch/v1", "Job"): _WORKLOAD,
    ("batch/v1", "CronJob"): _CRON_JOB,
    ("batch/v1beta1", "CronJob"): _CRON_JOB,
    (MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind): Kind(_managed_resource_slots),
    ("monitoring.coreos.com/v1", "Prometheus"): Kind(_prometheus_slots),
}


# --- manifests are written by people: whatever is not there, or not of the expected form, names nothing


def _slot(kind: str, holder: Any, *, field: str = "name") -> Iterator[Slot]:
    if isinstance(holder, dict) and isinstance(holder.get(field), str) and holder[field]:
        yield Slot(kind, holder, field)
