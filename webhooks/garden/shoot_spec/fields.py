"""Access to fields of a Shoot for rules."""

from typing import NamedTuple

from gardener.api.garden import PROJECTS
from gardener.garden import users
from gardener.garden.versions import Version, parse_version
from kube.objects import Key, Object, mapping, metadata, spec, text, texts
from kube.paths import at
from webhooks.garden.common.write import Write

WORKERS = "spec.provider.workers"
VERSION = "spec.kubernetes.version"
PODS_OF_KUBELET = 110
"""Pods on a node, unless kubelet is configured otherwise."""
WORKERLESS = "this field should not be set for workerless Shoot clusters"


class Pool(NamedTuple):
    path: str
    worker: Object


def workers_of(write: Write) -> list[Object]:
    return _listed(write.spec)


def pools_of(write: Write) -> list[Pool]:
    """Return the pools for validation, since mutations may replace them."""
    return [Pool(f"{WORKERS}[{index}]", worker) for index, worker in enumerate(_listed(write.spec))]


def own_version(worker: Object) -> str:
    """Version of Kubernetes; empty if it is that of the control plane."""
    return (worker.get("kubernetes") or {}).get("version") or ""


def image_of(worker: Object) -> Object:
    return (worker.get("machine") or {}).get("image") or {}


def stored_pools(write: Write) -> dict[str, Object]:
    """Return the stored pools by name."""
    return {worker.get("name") or "": worker for worker in _listed(write.old_spec)}


def _listed(shoot_spec: Object) -> list[Object]:
    provider = shoot_spec.get("provider") or {}
    return provider.get("workers") or []


def most_pods(shoot_spec: Object) -> int:
    """Return the maximum number of Pods on a node of any pool."""
    kubelets = [each for worker in _listed(shoot_spec) if (each := at(worker, "kubernetes", "kubelet"))]
    kubelets.append(at(shoot_spec, "kubernetes", "kubelet") or {})
    return max((most for each in kubelets if (most := each.get("maxPods"))), default=PODS_OF_KUBELET)


def kubernetes_version(shoot_spec: Object) -> Version | None:
    kubernetes = shoot_spec.get("kubernetes") or {}
    return parse_version(kubernetes.get("version") or "")


def is_to_hibernate(shoot_spec: Object) -> bool:
    return at(shoot_spec, "hibernation", "enabled") is True


def status(shoot: Object) -> Object:
    return mapping(shoot.get("status"))


def encrypted_resources(shoot_spec: Object) -> set[str]:
    """Resources that have to be encrypted in addition to Secrets."""
    return set(texts(at(shoot_spec, "kubernetes", "kubeAPIServer", "encryptionConfig", "resources")))


def ip_families(shoot_spec: Object) -> list[str]:
    return at(shoot_spec, "networking", "ipFamilies") or ["IPv4"]


def project_of(write: Write) -> Object | None:
    """Project of the namespace."""
    return next(iter(write.garden.by(PROJECTS, users.namespaces, Key("", write.namespace))), None)


def project_name(write: Write) -> str:
    project = project_of(write)
    return "" if project is None else text(metadata(project).get("name"))


def seed_name(shoot: Object) -> str:
    return text(spec(shoot).get("seedName"))


def kubelet_of(shoot_spec: Object, worker: Object) -> Version | None:
    """Version of the kubelets of a pool."""
    return parse_version(own_version(worker)) or kubernetes_version(shoot_spec)


def is_higher(image: Object, than: Object) -> bool:
    """Whether the version of an image is higher than that of another one."""
    one, other = parse_version(text(image.get("version"))), parse_version(text(than.get("version")))
    return one is not None and other is not None and one > other
