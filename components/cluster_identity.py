"""Identity of the seed, a ConfigMap for everything that runs in it. An existing one of another origin is kept."""

from components.namespaces import KUBE_SYSTEM
from components.parts import in_seed, made
from components.seed_component import SeedComponent, SeedInputs
from kube.objects import Object
from kube.paths import at
from kube.resources import CONFIG_MAPS

NAME = "cluster-identity"
_ORIGIN, _SEED = "origin", "seed"


def _objects(inputs: SeedInputs) -> list[Object]:
    data = {NAME: inputs.identity, _ORIGIN: _SEED}
    return in_seed(NAME, [made(CONFIG_MAPS, NAME, namespace=KUBE_SYSTEM, data=data, immutable=True)])


COMPONENT = SeedComponent(name=NAME, title=NAME, objects=_objects)


def is_of_others(live: Object | None) -> bool:
    """Whether the ConfigMap has another origin: the seed is a Shoot, or a garden."""
    return live is not None and at(live, "data", _ORIGIN) != _SEED


def identity_in(live: Object | None) -> str:
    """Identity in the ConfigMap; empty if there is none."""
    return str(at(live or {}, "data", NAME) or "")
