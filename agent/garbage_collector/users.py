"""The kinds whose objects refer to ConfigMaps and Secrets by annotations."""

from kube.resources import Resource

USERS = (
    Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True),
    Resource("apps", "v1", "DaemonSet", "daemonsets", namespaced=True),
    Resource("batch", "v1", "Job", "jobs", namespaced=True),
    Resource("", "v1", "Pod", "pods", namespaced=True),
    Resource("batch", "v1", "CronJob", "cronjobs", namespaced=True),
    Resource("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", namespaced=True),
    Resource("monitoring.coreos.com", "v1", "Prometheus", "prometheuses", namespaced=True),
)
"""In the order in which they are listed."""


def gvk(resource: Resource) -> str:
    """As errors name a kind: `apps/v1, Kind=Deployment`."""
    return f"{resource.group}/{resource.version}, Kind={resource.kind}"
