"""One operation on a seed: what its tasks read and use. It is decided before the first of them starts."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.gardenlet.component_objects import ComponentObjects
from agent.gardenlet.secrets_manager.manager import SecretsManager
from agent.gardenlet.seed.main.rules.prerequisites import has_vertical_pod_autoscaler
from config.gardenlet.schema import GardenletConfiguration
from gardener import keys
from kube.objects import Object, annotations, key, texts
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

GARDEN = "garden"
"""The namespace of what serves the whole seed; also one in the garden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOperation:
    """Attributes:
    seed: as it was when the operation began.
    cluster: of the seed.
    components: those that are deployed, of the ones that may be left out.
    keys: of this cluster, made in this operation.
    identity: of the cluster.
    has_own_identity: whether it has one that is not the gardenlet's.
    is_garden: whether the garden runs in this cluster, and brings what both need.
    login_secret: with the users of the monitoring.
    wildcard_certificate: Secret with one for all names below the ingress domain; empty: there is none.
    """

    config: GardenletConfiguration
    seed: Object
    cluster: Cluster
    garden: Cluster
    objects: ComponentObjects
    waiting: Waiting
    components: Collection[str]
    installations: Store[Object]
    registrations: Store[Object]
    keys: SecretsManager
    identity: str
    has_own_identity: bool
    is_garden: bool
    login_secret: str = ""
    wildcard_certificate: str = ""

    @property
    def name(self) -> str:
        return key(self.seed).name

    @property
    def zones(self) -> list[str]:
        return texts(at(self.seed, "spec", "provider", "zones"))

    @property
    def installs_autoscaler(self) -> bool:
        return has_vertical_pod_autoscaler(self.seed) and not self.is_garden

    @property
    def asked(self) -> str:
        """What a person asks for, by the annotation."""
        return annotations(self.seed).get(keys.OPERATION, "")
