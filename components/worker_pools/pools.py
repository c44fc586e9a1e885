"""A worker pool of a Shoot, with all inputs of its objects."""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from components.inputs import InputError
from components.parts import made
from gardener.garden.rotations import rotations_of_nodes
from gardener.garden.shoots import workers
from kube.objects import Object, integer, key, mapping, mappings, spec, string_map, text, texts
from kube.paths import at, mappings_at
from kube.resources import SECRETS
from kube.yaml import Dumper

NODE_AGENT = "gardener-node-agent"
POOL = "worker.gardener.cloud/pool"
VERSION = "worker.gardener.cloud/kubernetes-version"
SECRET_NAME = "worker.gardener.cloud/gardener-node-agent-secret-name"
_ARCHITECTURE, _RUNTIME = "amd64", "containerd"
HASHES = "worker-pools-operatingsystemconfig-hashes"
_KEY_VERSION = 1
_SYSTEM_COMPONENTS = "worker.gardener.cloud/system-components"


class PoolError(InputError):
    """The CloudProfile does not have a requested machine type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Attributes:
    version: of Kubernetes on its nodes, such as `1.30.14`.
    type: of its machines, as in the CloudProfile.
    kubelet: settings.
    rotations: start times of the rotations whose credentials its nodes have.
    """

    name: str
    requested: Object
    """Entry of `spec.provider.workers`."""
    version: str
    type: Object
    kubelet: Object
    rotations: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key of its configuration in the Shoot; a new key means new machines."""
        what = "".join([".".join(str(each) for each in self.minor), self.runtime, *self.rotations])
        return f"{NODE_AGENT}-{self.name}-{hashlib.sha256(what.encode()).hexdigest()[:5]}"

    @property
    def minor(self) -> tuple[int, int]:
        """Major and minor version of Kubernetes."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def runtime(self) -> str:
        return text(at(self.requested, "cri", "name")) or _RUNTIME

    @property
    def architecture(self) -> str:
        return text(at(self.requested, "machine", "architecture")) or _ARCHITECTURE

    @property
    def image(self) -> Object:
        return mapping(at(self.requested, "machine", "image"))

    @property
    def image_name(self) -> str:
        return text(self.image.get("name"))

    @property
    def zones(self) -> list[str]:
        return texts(self.requested.get("zones"))

    @property
    def minimum(self) -> int:
        return integer(self.requested.get("minimum"))

    @property
    def maximum(self) -> int:
        return integer(self.requested.get("maximum"))

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its nodes."""
        found = {
            **string_map(self.requested.get("labels")),
            "kubernetes.io/arch": self.architecture,
            "networking.gardener.cloud/node-local-dns-enabled": "false",
            "node.kubernetes.io/role": "node",
            "worker.garden.sapcloud.io/group": self.name,
            "worker.gardener.cloud/cri-name": self.runtime,
            SECRET_NAME: self.key,
            POOL: self.name,
        }
        for each in mappings(mapping(self.requested.get("cri")).get("containerRuntimes")):
            found[f"containerruntime.worker.gardener.cloud/{text(each.get('type'))}"] = "true"
        if at(self.requested, "systemComponents", "allow") is not False:
            found[_SYSTEM_COMPONENTS] = "true"
        return found


def hashes(namespace: str, pools: Iterable[Pool]) -> Object:
    """A Secret with the version of the algorithm of each pool's key, so that later versions keep existing keys."""
    entries = [
        {"name": each.name, "currentVersion": _KEY_VERSION, "hashVersionToOSCKey": {_KEY_VERSION: each.key}}
        for each in pools
    ]
    written = yaml.dump({"pools": entries}, Dumper=Dumper, sort_keys=True)
    data = {"pools": base64.b64encode(written.encode()).decode()}
    return made(SECRETS, HASHES, namespace=namespace, labels={"persist": "true"}, type="Opaque", data=data)


def pools_of(shoot: Object, profile: Object) -> list[Pool]:
    """Args: profile: its CloudProfile. Raises PoolError."""
    return [_pool(each, shoot, profile) for each in workers(spec(shoot))]


def _pool(requested: Object, shoot: Object, profile: Object) -> Pool:
    wanted = text(at(requested, "machine", "type"))
    types = {text(each.get("name")): each for each in mappings_at(spec(profile), "machineTypes")}
    if wanted not in types:
        raise PoolError(
            f"the CloudProfile {key(profile).name} has no machine type {wanted!r} for worker pool"
            f" {text(requested.get('name'))!r}; choose one of {', '.join(sorted(types)) or 'none'}"
        )
    return Pool(
        name=text(requested.get("name")),
        requested=requested,
        version=text(at(requested, "kubernetes", "version")) or text(at(spec(shoot), "kubernetes", "version")),
        type=types[wanted],
        kubelet=mapping(at(requested, "kubernetes", "kubelet")) or mapping(at(spec(shoot), "kubernetes", "kubelet")),
        rotations=rotations_of_nodes(shoot, text(requested.get("name"))),
    )
