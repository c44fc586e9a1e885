"""Inputs about a Shoot, as its components see them, but for what a test is about."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.control_plane import Running
from components.inputs import Inputs
from components.results import ADDRESS, CLUSTER_IP, INFRASTRUCTURE, WORKER, Namespace, Result, Results
from components.results import NAMESPACE as NAMESPACE_RESULT
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


_RESULTS: dict[str, Result[Any]] = {
    "address": ADDRESS,
    "cluster_ip": CLUSTER_IP,
    "infrastructure": INFRASTRUCTURE,
    "worker": WORKER,
}


def inputs(shoot: Object | None = None, *, namespace_uid: str = "", **known: Any) -> Inputs:
    """Args: known: fields of inputs, or results of tasks as their properties call them."""
    results = {_RESULTS[name]: known.pop(name) for name in list(known) if name in _RESULTS}
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
        "results": Results({NAMESPACE_RESULT: Namespace(uid=namespace_uid), **results}),
    }
    return Inputs(**{**given, **known})
