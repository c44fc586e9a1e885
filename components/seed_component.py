"""Definition of a component of a seed; compare `component` for Shoots."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from components.inputs import Secrets
from components.secrets.configs import Config
from config.gardenlet.schema import GardenletConfiguration, Images
from gardener.api.seed_definitions import Stage
from kube.objects import Object, key, text
from kube.paths import at
from kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedInputs:
    """Attributes:
    config: of the gardenlet.
    seed: the Seed.
    identity: of its cluster.
    installs_autoscaler: whether the gardenlet deploys the vertical Pod autoscaler.
    served: kinds in the component's `asks_for` that are served.
    login_secret: with the users of the monitoring.
    wildcard_certificate: Secret with one for all names below the ingress domain; empty if there is none.
    """

    config: GardenletConfiguration
    seed: Object
    secrets: Secrets
    identity: str = ""
    installs_autoscaler: bool = True
    served: Collection[Resource] = ()
    login_secret: str = ""
    wildcard_certificate: str = ""

    @property
    def images(self) -> Images:
        return self.config.images

    @property
    def name(self) -> str:
        return key(self.seed).name

    @property
    def ingress_domain(self) -> str:
        """Domain of the host names for people; empty if there is none."""
        return text(at(self.seed, "spec", "ingress", "domain"))

    def serves(self, *resources: Resource) -> bool:
        return all(each in self.served for each in resources)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeedComponent:
    """Attributes:
    name: in the configuration, in annotations of its objects, and ID of its task.
    title: in the names of its tasks, which users read: `Deploying <title>`.
    objects: makes all of its objects; pure.
    secrets: to be generated for it.
    images: fields of `images` in the configuration; it is left out unless all are set.
    asks_for: kinds of which it has objects only if they are served.
    is_of_garden: whether a garden in the same cluster deploys it.
    is_wanted: extra condition, in addition to the configuration.
    needs: stages of CRDs that not every seed has.
    after: IDs of tasks before it.
    """

    name: str
    title: str
    objects: Callable[[SeedInputs], Iterable[Object]]
    secrets: Callable[[SeedInputs], Iterable[Config]] = lambda _: ()
    images: Collection[str] = ()
    asks_for: Sequence[Resource] = ()
    is_of_garden: bool = False
    is_wanted: Callable[[SeedInputs], bool] = lambda _: True
    needs: Collection[Stage] = ()
    after: Collection[str] = ()
