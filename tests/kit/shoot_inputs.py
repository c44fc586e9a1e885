"""Inputs about a Shoot, as its components see them, but for what a test is about."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.control_plane import Running
from components.inputs import Inputs
from components.secrets.stored import Stored
from kube.objects import Object

NAMESPACE = "shoot--a--b"
_CONTENT = {"tls.crt": b"a", "tls.key": b"b", "bundle.crt": b"c"}


def secret_name(config: str) -> str:
    return f"{config}-12345678"


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Attributes: by_name: others are called as what runs in them."""

    by_name: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, /) -> str:
        return self.by_name.get(name, name)

    def of_kubernetes(self, program: str, version: str, /) -> str:
        return f"registry.k8s.io/{program}:v{version}"


@dataclass(frozen=True, slots=True)
class NamedSecrets:
    """Attributes:
    contents: by config; of others it is a certificate and a bundle.
    plain: configs whose Secrets are called after them.
    """

    contents: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    plain: Collection[str] = ()

    def current(self, config: str, /) -> Stored:
        name = config if config in self.plain else secret_name(config)
        return Stored(name=name, labels={}, data=self.contents.get(config, _CONTENT))

    def bundle(self, config: str, /) -> Stored:
        return self.current(f"{config}-bundle")


def shoot_with(*, version: str = "1.30.1", tolerance: str = "", workers: int = 0, **settings: Object) -> Object:
    """Args: settings: fields of `spec.kubernetes`."""
    failure = {"controlPlane": {"highAvailability": {"failureTolerance": {"type": tolerance}}}} if tolerance else {}
    pools = [{"name": f"pool-{index}", "minimum": 1, "maximum": 2} for index in range(workers)]
    return {
        "metadata": {"name": "b", "namespace": "garden-a", "uid": "u"},
        "spec": {
            "kubernetes": {"version": version, **settings},
            "networking": {"pods": "10.1.0.0/16", "services": "10.0.0.0/16"},
            "provider": {"type": "p", "workers": pools},
            **failure,
        },
    }


def inputs(shoot: Object | None = None, **known: Any) -> Inputs:
    given: dict[str, Any] = {
        "shoot": shoot or shoot_with(),
        "seed": {},
        "profile": {},
        "namespace": NAMESPACE,
        "host": "api.internal",
        "running": Running.AWAKE,
        "autoscaled": True,
        "images": NamedImages(),
        "secrets": NamedSecrets(),
    }
    return Inputs(**{**given, **known})
