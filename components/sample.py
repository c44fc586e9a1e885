"""Requirements of a component, found by making its objects once, for a Shoot that requests everything.

Therefore no list of kinds, images or Secrets is kept for a component.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from components.component import Component
from components.control_plane import Running
from components.inputs import Inputs
from components.results import Result, Results, T
from components.secrets import configs
from components.secrets.stored import Stored
from components.secrets.tables import TOKEN_KUBECONFIG
from components.seed_component import SeedComponent, SeedInputs
from config.gardenlet.schema import GardenletConfiguration, Images
from kube.objects import Object

_CONTENT = dict.fromkeys((configs.CERTIFICATE, configs.KEY, configs.BUNDLE, configs.TUNNEL_KEY, configs.PASSWORD), b"")
_POOL = {"name": "pool", "minimum": 1, "maximum": 2, "machine": {"type": "type"}}
_SHOOT: Object = {
    "metadata": {"name": "shoot", "namespace": "garden-project", "uid": "uid"},
    "spec": {
        "kubernetes": {"version": "1.30.0", "verticalPodAutoscaler": {"enabled": True}},
        "networking": {"pods": "10.3.0.0/16", "services": "10.4.0.0/16", "nodes": "10.250.0.0/16"},
        "provider": {"workers": [_POOL]},
    },
}
_PROFILE: Object = {"metadata": {"name": "profile"}, "spec": {"machineTypes": [{"name": "type"}]}}


@dataclass(frozen=True, slots=True)
class Needs:
    """Attributes:
    kinds: of its objects in the seed, as objects without further fields.
    has_bundles: whether it has the bundle of an authority, or names a Secret that has one.
    images: names of its images that are not part of Kubernetes.
    results: of earlier tasks, which its objects depend on.
    """

    kinds: Collection[Object]
    has_bundles: bool
    images: Collection[str]
    results: Collection[Result[Any]]


@cache
def needs(component: Component) -> Needs:
    secrets, images, results = _Secrets(), _Images(), _Results()
    inputs = Inputs(
        shoot=_SHOOT,
        seed={},
        profile=_PROFILE,
        namespace="shoot--project--shoot",
        host="api.example.com",
        running=Running.AWAKE,
        autoscaled=True,
        images=images,
        secrets=secrets,
        results=results,
        live=dict.fromkeys(component.reads, ()),
    )
    return Needs(
        kinds=_kinds(component.made(inputs)),
        has_bundles=secrets.has_bundles,
        images=sorted(images.requested),
        results=results.requested,
    )


@cache
def kinds_in_seed(component: SeedComponent) -> Sequence[Object]:
    """Same as `Needs.kinds`."""
    images: Object = {each.name: each.name for each in fields(Images) if each.default == ""}
    inputs = SeedInputs(
        config=GardenletConfiguration(images=Images(**images)),
        seed={"metadata": {"name": "seed"}, "spec": {"ingress": {"domain": "example.com"}}},
        secrets=_Secrets(),
        served=component.asks_for,
    )
    return _kinds(component.objects(inputs))


def _kinds(objects: Iterable[Object]) -> list[Object]:
    kinds = {(each["apiVersion"], each["kind"]) for each in objects}
    return [{"apiVersion": version, "kind": kind} for version, kind in sorted(kinds)]


@dataclass(slots=True)
class _Secrets:
    has_bundles: bool = False

    def current(self, config: str, /) -> Stored:
        self.has_bundles |= config == TOKEN_KUBECONFIG
        return Stored(name=config, labels={}, data=_CONTENT)

    def bundle(self, config: str, /) -> Stored:
        self.has_bundles = True
        return Stored(name=f"{config}-bundle", labels={}, data=_CONTENT)


class _Results(Results):
    def __init__(self) -> None:
        super().__init__()
        self.requested = set[Result[Any]]()

    def __getitem__(self, result: Result[T]) -> T:
        self.requested.add(result)
        return result.default


@dataclass(frozen=True, slots=True)
class _Images:
    requested: set[str] = field(default_factory=set)

    def of(self, name: str, /) -> str:
        self.requested.add(name)
        return name

    def of_kubernetes(self, program: str, version: str, /) -> str:
        return f"{program}:v{version}"
