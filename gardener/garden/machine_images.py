"""Requirements of a worker pool for the version of a machine image: architecture, container runtimes, kubelet."""

from collections.abc import Iterator

from gardener.garden.versions import Version, parse_constraint
from kube.objects import Object, mapping, mappings, text, texts
from kube.paths import mapping_at

_AMD64, _CONTAINERD = "amd64", "containerd"


def architecture(machine: Object) -> str:
    """Architecture of a pool's machines, or of a machine type."""
    return text(machine.get("architecture")) or _AMD64


def architectures(image_version: Object) -> list[str]:
    return texts(image_version.get("architectures")) or [_AMD64]


def runtimes(image_version: Object) -> dict[str, set[str]]:
    """Types of container runtimes by the interface to them (CRI)."""
    return {
        text(cri.get("name")): {text(each.get("type")) for each in mappings(cri.get("containerRuntimes"))}
        for cri in mappings(image_version.get("cri"))
    } or {_CONTAINERD: set()}


def supports_kubelet(image_version: Object, kubelet: Version | None) -> bool:
    """Whether the image supports a kubelet. Args: kubelet: None, if unknown, is supported by all."""
    constraint = text(image_version.get("kubeletVersionConstraint"))
    if not constraint or kubelet is None:
        return True
    try:
        return parse_constraint(constraint)(kubelet)
    except ValueError:
        return False


def suits(image_version: Object, worker: Object, kubelet: Version | None) -> bool:
    return next(obstacles(image_version, worker, kubelet), None) is None


def obstacles(image_version: Object, worker: Object, kubelet: Version | None) -> Iterator[str]:
    """Reasons against this version of the image for a pool: predicates about the version."""
    wanted = architecture(mapping_at(worker, "machine"))
    if wanted not in architectures(image_version):
        yield f"is not built for the architecture {wanted}"
    cri, supported = mapping(worker.get("cri")), runtimes(image_version)
    interface = text(cri.get("name")) or _CONTAINERD
    if interface not in supported:
        yield f"does not support the container runtime interface {interface}"
    else:
        types = {text(each.get("type")) for each in mappings(cri.get("containerRuntimes"))}
        if missing := sorted(types - supported[interface]):
            yield f"does not have the container runtime {', '.join(missing)}"
    if not supports_kubelet(image_version, kubelet):
        yield f"works with kubelet {text(image_version.get('kubeletVersionConstraint'))} only"
