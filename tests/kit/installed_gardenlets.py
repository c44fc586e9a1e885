"""What there is of a gardenlet in the cluster in which it is installed."""

import contextlib

from devcluster.cluster import Cluster
from kube.errors import NotFound
from kube.objects import Object, metadata
from kube.paths import at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)

GARDEN = "garden"
_KINDS = (
    *(DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, SECRETS, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES, PRIORITY_CLASSES),
    *(ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS),
)


class InstalledGardenlet:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def find(self, resource: Resource, name: str = "gardenlet", *, namespace: str = GARDEN) -> Object | None:
        with contextlib.suppress(NotFound):
            return self.cluster.api.get(resource.path(namespace=namespace if resource.namespaced else "", name=name))
        return None

    def of_gardenlet(self, resource: Resource) -> list[str]:
        """Names."""
        namespace = GARDEN if resource.namespaced else ""
        found = self.cluster.api.get(f"{resource.path(namespace=namespace)}?labelSelector=app=gardener,role=gardenlet")
        return [metadata(each)["name"] for each in found["items"]]

    def installed(self) -> Object:
        """All that has its labels, in short."""
        names = {each.plural: self.of_gardenlet(each) for each in _KINDS}
        return {**names, "configurations": len(self.of_gardenlet(CONFIG_MAPS))}

    def uninstall(self) -> None:
        """As if it had never been there."""
        for resource in (*_KINDS, CONFIG_MAPS):
            namespace = GARDEN if resource.namespaced else ""
            for name in self.of_gardenlet(resource):
                self.cluster.api.delete(resource.path(namespace=namespace, name=name))

    def configuration(self) -> str:
        """Its file."""
        deployment = self.find(DEPLOYMENTS)
        assert deployment is not None
        volumes = at(deployment, "spec", "template", "spec", "volumes")
        (name,) = (each["configMap"]["name"] for each in volumes if each["name"] == "config")
        found = self.find(CONFIG_MAPS, name)
        assert found is not None
        return str(found["data"]["config.yaml"])
