"""One operation on a seed: the input of its tasks, fixed before the first of them starts."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.secrets_manager import SecretsManager
from agent.gardenlet.seed.main.rules.prerequisites import has_vertical_pod_autoscaler
from config.gardenlet.schema import GardenletConfiguration
from gardener import keys
from kube.objects import Object, annotations, key, texts
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

GARDEN = "garden"
"""Namespace of components for the whole seed, in the seed and in the garden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOperation:
    """Input of the tasks.

    Attributes:
        seed: as of the start of the operation.
        cluster: of the seed.
        components: deployed ones of the optional components.
        keys: Secrets of this cluster, generated in this operation.
        identity: of the cluster.
        has_own_identity: whether the cluster has an identity that is not the gardenlet's.
        is_garden: whether the garden runs in this cluster, and provides shared objects.
        login_secret: Secret with the users of the monitoring.
        wildcard_certificate: Secret with a certificate for all names below the ingress domain; empty if none.
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
    def requested(self) -> str:
        """Operation that a user requests by annotation."""
        return annotations(self.seed).get(keys.OPERATION, "")
