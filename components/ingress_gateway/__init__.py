"""The ingress gateways of a seed: access to API servers of Shoots, their tunnels, and pages for operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from components import istio, istiod
from components.manifest import manifest, of_kind, without
from components.parts import in_seed
from gardener.api.kinds import SERVICE_MONITORS
from kube.objects import Object
from kube.resources import DEPLOYMENTS, SERVICES

NAME = "istio-ingressgateway"
MANAGED_RESOURCE = "istio"
_LEAST_REPLICAS, _MOST_REPLICAS = 2, 9
_MOST_REPLICAS_A_ZONE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    namespace: of the gateway.
    labels: of its pods.
    annotations: of its Service, for the provider of its address.
    address: requested by its Service; empty: any.
    traffic_policy: of its Service: `Local` keeps the addresses of clients; empty: the default.
    zones: number of zones it is spread over; each may have an address of its own.
    monitored: whether there are ServiceMonitors.
    """

    image: str
    namespace: str = "istio-ingress"
    labels: Mapping[str, str] = field(default_factory=lambda: istio.GATEWAY)
    annotations: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    traffic_policy: str = ""
    zones: int = 1
    monitored: bool = True

    @property
    def replicas(self) -> tuple[int, int]:
        """Minimum and maximum."""
        if self.zones > 1:
            return self.zones * _LEAST_REPLICAS, self.zones * _MOST_REPLICAS_A_ZONE
        return _LEAST_REPLICAS, _MOST_REPLICAS


def objects(usual: Values, *others: Values) -> list[Object]:
    """Args: usual: the gateway of all Shoots without an ExposureClass."""
    contents = [*_contents(usual, monitor=NAME)]
    for each in others:
        contents += _contents(each, monitor=f"{NAME}-{each.namespace}")
    return in_seed(MANAGED_RESOURCE, contents, namespace=istiod.NAMESPACE)


def _contents(values: Values, *, monitor: str) -> list[Object]:
    """Args: monitor: name of the ServiceMonitor, unique since all are in one namespace."""
    least, most = values.replicas
    found = manifest(
        __file__,
        image=values.image,
        namespace=values.namespace,
        labels=dict(values.labels),
        expressions=[{"key": name, "operator": "In", "values": [value]} for name, value in values.labels.items()],
        least=least,
        most=most,
        monitor=monitor,
    )
    pod = of_kind(found, DEPLOYMENTS.kind)["spec"]["template"]["metadata"]
    pod["labels"] = {**values.labels, **pod["labels"]}
    service = of_kind(found, SERVICES.kind)
    service["metadata"]["annotations"] = {**values.annotations, **service["metadata"]["annotations"]}
    if values.address:
        service["spec"]["loadBalancerIP"] = values.address
    if values.traffic_policy:
        service["spec"]["externalTrafficPolicy"] = values.traffic_policy
    return found if values.monitored else without(found, SERVICE_MONITORS.kind)
