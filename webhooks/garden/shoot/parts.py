"""How rules read a Shoot."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

from gardener.api.garden import PROJECTS
from gardener.garden import users
from gardener.garden.versions import Version, parse_version
from kube.objects import Key, Object, mapping, metadata, spec, text, texts
from kube.paths import at
from webhooks.garden.common.lazy import lazy
from webhooks.garden.common.write import Write

T = TypeVar("T")

WORKERS = "spec.provider.workers"
VERSION = "spec.kubernetes.version"
PODS_OF_KUBELET = 110
"""Pods on a node, if kubelet is not told."""
WORKERLESS = "this field should not be set for workerless Shoot clusters"


class Pool(NamedTuple):
    """For validation: mutations may put something in the place of what stands here."""

    path: str
    worker: Object
    name: str
    kubernetes: Object
    machine: Object
    image: Object
    cri: Object
    zones: list[str]
    is_new: bool
    """No pool has been stored under its name."""


class Pools:
    """Some pools of a Shoot."""

    def __init__(self, pools: list[Pool]) -> None:
        self.all = pools

    def found(self, rule: Callable[[Pool], Iterable[T]]) -> Iterable[T]:
        """What a rule, which does not read the name, says about each of them."""
        return _each(rule, self.all) if any(_each(rule, self._distinct)) else ()

    @lazy
    def _distinct(self) -> list[Pool]:
        """Without those that are like the one before them but for their names: rules say the same about both."""
        others = [pool for before, pool in pairwise(self.all) if not _are_alike(before, pool)]
        return [*self.all[:1], *others]


def _are_alike(one: Pool, other: Pool) -> bool:
    return one.is_new == other.is_new and {**one.worker, "name": other.name} == other.worker


def _each(rule: Callable[[Pool], Iterable[T]], pools: list[Pool]) -> Iterator[T]:
    return chain.from_iterable(map(rule, pools))


def workers_of(write: Write) -> list[Object]:
    return write.once(_workers)


def pools_of(write: Write) -> list[Pool]:
    return write.once(_pools).all


def stored_pools(write: Write) -> dict[str, Object]:
    """By name."""
    return write.once(_stored_pools)


def differing_pools(write: Write, *fields: str) -> Pools:
    """Those that are not the same in the object that it is compared with; all of them if a field of the spec is not.

    For `checks` and `references` that read nothing but a pool and these fields: `ratcheted` drops what they find in
    others.
    """
    if fields:
        spec, other = write.spec, write.other_spec
        for field in fields:
            if spec.get(field) != other.get(field):
                return write.once(_pools)
    return write.once(_differing_pools)


def _workers(write: Write) -> list[Object]:
    return _listed(write.spec)


def _listed(shoot_spec: Object) -> list[Object]:
    provider = shoot_spec.get("provider") or {}
    return provider.get("workers") or []


def _pools(write: Write) -> Pools:
    stored = stored_pools(write)
    found: list[Pool] = []
    for index, worker in enumerate(workers_of(write)):
        name, path = worker.get("name") or "", f"{WORKERS}[{index}]"
        machine, cri = worker.get("machine") or {}, worker.get("cri") or {}
        kubernetes, image, zones = worker.get("kubernetes") or {}, machine.get("image") or {}, worker.get("zones") or []
        found.append(Pool(path, worker, name, kubernetes, machine, image, cri, zones, name not in stored))
    return Pools(found)


def _stored_pools(write: Write) -> dict[str, Object]:
    return workers_by_name(write.old_spec)


def _differing_pools(write: Write) -> Pools:
    others = stored_pools(write) if write.other is None else workers_by_name(write.other_spec)
    pools = write.once(_pools)
    return Pools([each for each in pools.all if others.get(each.name) != each.worker]) if others else pools


def workers_by_name(shoot_spec: Object) -> dict[str, Object]:
    return {worker.get("name") or "": worker for worker in _listed(shoot_spec)}


def most_pods(shoot_spec: Object, found: list[Pool]) -> int:
    """On a node of any pool."""
    kubelets = [each for pool in found if (each := pool.kubernetes.get("kubelet"))]
    kubelets.append(at(shoot_spec, "kubernetes", "kubelet") or {})
    return max((most for each in kubelets if (most := each.get("maxPods"))), default=PODS_OF_KUBELET)


def kubernetes_version(shoot_spec: Object) -> Version | None:
    kubernetes = shoot_spec.get("kubernetes") or {}
    return parse_version(kubernetes.get("version") or "")


def is_to_hibernate(shoot_spec: Object) -> bool:
    return at(shoot_spec, "hibernation", "enabled") is True


def status(shoot: Object) -> Object:
    return mapping(shoot.get("status"))


def rotation_phase(shoot: Object, what: str) -> str:
    return text(at(status(shoot), "credentials", "rotation", what, "phase"))


def encrypted_resources(shoot_spec: Object) -> set[str]:
    """That are to be encrypted beside Secrets."""
    return set(texts(at(shoot_spec, "kubernetes", "kubeAPIServer", "encryptionConfig", "resources")))


def ip_families(shoot_spec: Object) -> list[str]:
    return at(shoot_spec, "networking", "ipFamilies") or ["IPv4"]


def project_of(write: Write) -> Object | None:
    """The project whose namespace this is."""
    return write.once(_project)


def _project(write: Write) -> Object | None:
    return next(iter(write.garden.by(PROJECTS, users.namespaces, Key("", write.namespace))), None)


def project_name(write: Write) -> str:
    project = project_of(write)
    return "" if project is None else text(metadata(project).get("name"))


def seed_name(shoot: Object) -> str:
    return text(spec(shoot).get("seedName"))
