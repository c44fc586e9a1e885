"""The kinds of a seed in a cluster of tests: extensions, Clusters, VerticalPodAutoscalers, ManagedResources.

Those of other projects are left out, usually also Istio's: other tests of the same cluster see what is done when they
come.
"""

from itertools import chain

from devcluster.cluster import Cluster
from gardener.api.seed_definitions import DEFINITIONS, OPEN, Stage, custom_resource_definitions
from kit.kinds import wait_until_served
from kit.managed_resources import install_crd
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS

STAGES = [each for each in Stage if each not in OPEN]


def install_seed_kinds(cluster: Cluster, *, with_istio: bool = False) -> None:
    """They may be there already."""
    stages = [*STAGES, Stage.ISTIO] if with_istio else STAGES
    for definition in chain.from_iterable(map(custom_resource_definitions, stages)):
        name = definition["metadata"]["name"]
        cluster.api.apply(CUSTOM_RESOURCE_DEFINITIONS.path(name=name), definition)
    install_crd(cluster)
    wait_until_served(
        cluster, *(one.resource.path() for one in chain.from_iterable(DEFINITIONS[each] for each in stages))
    )
