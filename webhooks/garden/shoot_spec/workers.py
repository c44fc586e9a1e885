"""Pools of worker nodes, and fields that a Shoot without any may not have."""

import re
from collections.abc import Iterator

from gardener.garden.certificates import bundle_errors
from kube.names import label_name_problems, label_value_problems
from kube.objects import Object, mappings, text
from kube.paths import at
from kube.validation import (
    FieldError,
    annotation_errors,
    duplicate,
    duplicates,
    forbidden,
    invalid,
    invalid_for,
    label_errors,
    not_supported,
    required,
)
from webhooks.garden.common.amounts import share_problem
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import WORKERLESS, WORKERS, Pool, kubernetes_version, pools_of, workers_of

_RESERVED_TAINT = "node.gardener.cloud/critical-components-not-ready"
"""Taint of nodes until their critical components are ready."""
_ARCHITECTURES = ("amd64", "arm64")
_ROOM_SINCE = (1, 27)
_SYSCTL = re.compile(r"[A-Za-z0-9_*?/-][A-Za-z0-9_*?./:@-]*", re.ASCII)
"""Name in a file of sysctl.d: a pattern, with the name of an interface perhaps, and a hyphen that ignores errors."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_WORKERLESS = (
    ("addons",),
    *(
        ("kubernetes", "kubeControllerManager", field)
        for field in ("horizontalPodAutoscaler", "nodeCIDRMaskSize", "nodeMonitorGracePeriod", "podEvictionTimeout")
    ),
    ("kubernetes", "kubeScheduler"),
    ("kubernetes", "kubeProxy"),
    ("kubernetes", "kubelet"),
    ("kubernetes", "clusterAutoscaler"),
    ("kubernetes", "verticalPodAutoscaler"),
    ("maintenance", "autoUpdate", "machineImageVersion"),
    ("networking", "type"),
    ("networking", "providerConfig"),
    ("networking", "pods"),
    ("networking", "nodes"),
    ("provider", "controlPlaneConfig"),
    ("provider", "infrastructureConfig"),
    ("provider", "workersSettings"),
    ("systemComponents",),
)


def workerless(write: Write) -> Iterator[Finding]:
    if not workers_of(write):
        for path in _NOT_WORKERLESS:
            if at(write.spec, *path) is not None:
                yield forbidden(".".join(("spec", *path)), WORKERLESS)


def room_errors(write: Write) -> Iterator[Finding]:
    """Checked from Kubernetes 1.27 on; older clusters may lack the room."""
    version = kubernetes_version(write.spec)
    if version is None or version >= _ROOM_SINCE:
        yield from _too_small([pool for pool in pools_of(write) if _is_for_system_components(pool.worker)])


def worker_errors(write: Write) -> Iterator[Finding]:
    found = workers_of(write)
    for pool in pools_of(write):
        yield from _pool_errors(pool)
    if found and not any(map(_is_for_system_components, found)):
        detail = "at least one active (workers[i].maximum > 0) worker pool with systemComponents.allow=true needed"
        yield forbidden(WORKERS, detail)


def _sysctl_errors(path: str, sysctls: Object) -> Iterator[FieldError]:
    """Check that each is one line of a file on the nodes."""
    for name, value in sysctls.items():
        if _SYSCTL.fullmatch(name) is None:
            yield invalid(f"{path}[{name}]", name, "must be the name of a kernel parameter such as net.ipv4.ip_forward")
        if _CONTROL.search(text(value)):
            yield invalid(f"{path}[{name}]", text(value), "must be one line; write one entry for each parameter")


def _too_small(pools: list[Pool]) -> Iterator[FieldError]:
    """Refuse pools smaller than their zones, over which components are spread, unless one with equal zones has room."""
    small = [pool for pool in pools if _is_small(pool.worker)]
    if small:
        served = {_zones(pool.worker) for pool in pools if not _is_small(pool.worker)}
        for pool in small:
            if _zones(pool.worker) not in served:
                yield forbidden(
                    f"{pool.path}.maximum",
                    "maximum node count should be greater than or equal to the number of zones specified for this pool",
                )


def _is_small(worker: Object) -> bool:
    return bool(worker["maximum"] < len(worker.get("zones") or ()))


def _zones(worker: Object) -> frozenset[str]:
    return frozenset(worker.get("zones") or ())


def _is_for_system_components(worker: Object) -> bool:
    components = worker.get("systemComponents") or {}
    return bool(worker.get("maximum")) and components.get("allow") is not False


def _pool_errors(pool: Pool) -> Iterator[FieldError]:
    path, worker = pool
    zones, machine, cri = worker.get("zones") or [], worker.get("machine") or {}, worker.get("cri") or {}
    architecture = machine.get("architecture")
    if architecture and architecture not in _ARCHITECTURES:
        yield not_supported(f"{path}.machine.architecture", architecture, _ARCHITECTURES)
    for field in ("maxSurge", "maxUnavailable"):
        if problem := share_problem(worker.get(field), may_exceed=field == "maxSurge"):
            yield invalid(f"{path}.{field}", worker[field], problem)
    if labels := worker.get("labels"):
        yield from label_errors(f"{path}.labels", labels)
    if annotations := worker.get("annotations"):
        yield from annotation_errors(f"{path}.annotations", annotations)
    if taints := worker.get("taints"):
        yield from _taint_errors(f"{path}.taints", taints)
    if bundle := worker.get("caBundle"):
        yield from bundle_errors(f"{path}.caBundle", bundle)
    if sysctls := worker.get("sysctls"):
        yield from _sysctl_errors(f"{path}.sysctls", sysctls)
    if worker.get("dataVolumes") or worker.get("kubeletDataVolumeName"):
        yield from _volume_errors(path, worker)
    if len(set(zones)) < len(zones):
        yield from duplicates(f"{path}.zones", zones)
    if runtimes := cri.get("containerRuntimes"):
        types = [text(each.get("type")) for each in runtimes]
        yield from duplicates(f"{path}.cri.containerRuntimes", types, field="type")


def taint_key_errors(path: str, key: str) -> Iterator[FieldError]:
    yield from invalid_for(path, key, label_name_problems(key))
    if key == _RESERVED_TAINT:
        yield forbidden(path, "taint key is reserved by gardener")


def _taint_errors(path: str, taints: list[Object]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        key, effect = text(taint.get("key")), text(taint.get("effect"))
        yield from taint_key_errors(f"{path}[{index}].key", key)
        value = text(taint.get("value"))
        yield from invalid_for(f"{path}[{index}].value", value, label_value_problems(value))
        if (key, effect) in seen:
            yield duplicate(f"{path}[{index}]", f"{key}:{effect}")
        seen.add((key, effect))


def _volume_errors(path: str, worker: Object) -> Iterator[FieldError]:
    volumes = mappings(worker.get("dataVolumes"))
    wanted = text(worker.get("kubeletDataVolumeName"))
    names = [text(each.get("name")) for each in volumes]
    if volumes and not worker.get("volume"):
        yield required(f"{path}.volume", "a worker pool with data volumes must have a root volume")
    yield from duplicates(f"{path}.dataVolumes", names, field="name")
    if wanted and wanted not in names:
        yield invalid(f"{path}.kubeletDataVolumeName", wanted, "must be the name of a data volume of the pool")
