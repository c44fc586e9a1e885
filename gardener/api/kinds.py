"""Kinds of Gardener, and of others whose objects it creates or reads; those of Kubernetes are in `kube.resources`."""

from gardener.keys import GROUP
from kube.resources import Resource

MANAGED_RESOURCES = Resource(GROUP, "v1alpha1", "ManagedResource", "managedresources", namespaced=True, any_size=True)
DEFINITION = f"manifests/crds/{MANAGED_RESOURCES.plural}.{GROUP}.yaml"
"""File of this project with their definition."""


def _machine_kind(kind: str, plural: str, short_name: str) -> Resource:
    return Resource("machine.sapcloud.io", "v1alpha1", kind, plural, True, (short_name,))


MACHINES = _machine_kind("Machine", "machines", "mc")
MACHINE_SETS = _machine_kind("MachineSet", "machinesets", "mcs")
MACHINE_DEPLOYMENTS = _machine_kind("MachineDeployment", "machinedeployments", "mcd")
MACHINE_CLASSES = _machine_kind("MachineClass", "machineclasses", "mcc")
OF_MACHINES = (MACHINES, MACHINE_SETS, MACHINE_DEPLOYMENTS, MACHINE_CLASSES)
"""Kinds of a provider's machines, dependents first."""


def _vertical_autoscaling(kind: str, short_name: str) -> Resource:
    return Resource("autoscaling.k8s.io", "v1", kind, f"{kind.lower()}s", True, (short_name,))


VERTICAL_POD_AUTOSCALERS = _vertical_autoscaling("VerticalPodAutoscaler", "vpa")
VERTICAL_POD_AUTOSCALER_CHECKPOINTS = _vertical_autoscaling("VerticalPodAutoscalerCheckpoint", "vpacheckpoint")

HVPAS = Resource("autoscaling.k8s.io", "v1alpha1", "Hvpa", "hvpas", namespaced=True)


def _monitoring(kind: str, plural: str, short_name: str, version: str = "v1") -> Resource:
    return Resource("monitoring.coreos.com", version, kind, plural, True, (short_name,))


ALERTMANAGERS = _monitoring("Alertmanager", "alertmanagers", "am")
ALERTMANAGER_CONFIGS = _monitoring("AlertmanagerConfig", "alertmanagerconfigs", "amcfg", "v1alpha1")
POD_MONITORS = _monitoring("PodMonitor", "podmonitors", "pmon")
PROBES = _monitoring("Probe", "probes", "prb")
PROMETHEUSES = _monitoring("Prometheus", "prometheuses", "prom")
PROMETHEUS_AGENTS = _monitoring("PrometheusAgent", "prometheusagents", "promagent", "v1alpha1")
PROMETHEUS_RULES = _monitoring("PrometheusRule", "prometheusrules", "promrule")
SCRAPE_CONFIGS = _monitoring("ScrapeConfig", "scrapeconfigs", "scfg", "v1alpha1")
SERVICE_MONITORS = _monitoring("ServiceMonitor", "servicemonitors", "smon")
THANOS_RULERS = _monitoring("ThanosRuler", "thanosrulers", "ruler")

ISTIO_GROUP = "networking.istio.io"
VIRTUAL_SERVICES = Resource(ISTIO_GROUP, "v1beta1", "VirtualService", "virtualservices", namespaced=True)
GATEWAYS = Resource(ISTIO_GROUP, "v1beta1", "Gateway", "gateways", namespaced=True)
DESTINATION_RULES = Resource(ISTIO_GROUP, "v1beta1", "DestinationRule", "destinationrules", namespaced=True)
ENVOY_FILTERS = Resource(ISTIO_GROUP, "v1alpha3", "EnvoyFilter", "envoyfilters", namespaced=True)
