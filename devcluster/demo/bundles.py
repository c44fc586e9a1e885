"""Objects that the demo has the agent apply: YAML files that become Secrets, and ManagedResources that name them."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import yaml

from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Object

GROUP = f"/apis/{MANAGED_RESOURCES.api_version}"
_KEY = "objects.yaml.br"
_BUNDLES = ("monitoring", "shop", "vouchers")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Objects that belong together, as YAML text."""

    name: str
    text: bytes

    @property
    def objects(self) -> int:
        return sum(1 for document in yaml.safe_load_all(self.text) if document)

    @property
    def compressed(self) -> bytes:
        compressed: bytes = brotli.compress(self.text)
        return compressed

    def secret(self) -> Object:
        return {"metadata": {"name": self.name}, "data": {_KEY: base64.b64encode(self.compressed).decode()}}

    def managed_resource(self) -> Object:
        return {
            **MANAGED_RESOURCES.type_meta,
            "metadata": {"name": self.name},
            "spec": {"secretRefs": [{"name": self.name}]},
        }


def bundles() -> Iterator[Bundle]:
    for name in _BUNDLES:
        yield Bundle(name, (Path(__file__).parent / f"{name}.yaml").read_bytes())


def custom_resource_definitions() -> list[Object]:
    """Definitions that the agent needs, from the manifests for its installation."""
    crds = Path(__file__).resolve().parents[2] / "manifests" / "crds"
    files = [path for path in sorted(crds.glob("*.yaml")) if path.name != "kustomization.yaml"]
    return [document for path in files for document in yaml.safe_load_all(path.read_bytes())]
