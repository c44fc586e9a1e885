"""Routes of the ingress gateway to Services of the seed."""

from collections.abc import Mapping, Sequence

from components.parts import GARDEN, made
from gardener.api.kinds import DESTINATION_RULES, GATEWAYS, VIRTUAL_SERVICES
from kube.objects import Object

GATEWAY = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
"""Labels of the pods of the usual ingress gateway."""
EVERYWHERE = ["*"]


def host_of(service: str, namespace: str = GARDEN) -> str:
    """Host name of a Service within the cluster."""
    return f"{service}.{namespace}.svc.cluster.local"


def destination_rule(service: str, *, namespace: str = GARDEN, labels: Mapping[str, str] | None = None) -> Object:
    """Rule that keeps idle connections open for long, and prefers the nearest zone."""
    alive = {"time": "7200s", "interval": "75s"}
    nearest = {"enabled": True, "failoverPriority": ["topology.kubernetes.io/zone"]}
    spec = {
        "exportTo": EVERYWHERE,
        "host": host_of(service, namespace),
        "trafficPolicy": {
            "connectionPool": {"tcp": {"maxConnections": 5000, "tcpKeepalive": alive}},
            "loadBalancer": {"localityLbSetting": nearest},
            "outlierDetection": {},
            "tls": {},
        },
    }
    return made(DESTINATION_RULES, service, namespace=namespace, labels=labels, spec=spec)


def passed_through(
    service: str,
    hosts: Sequence[str],
    *,
    gateway: Mapping[str, str],
    labels: Mapping[str, str],
    namespace: str = GARDEN,
    routes_name: str = "",
) -> list[Object]:
    """Pass TLS connections for these hosts to port 443 of a Service.

    Args:
        service: name of the Service, and of the objects.
        hosts: names of the server.
        gateway: labels of the gateway's pods.
        labels: of the objects.
        namespace: of all.
        routes_name: of the VirtualService, if it differs.
    """
    server = {"hosts": list(hosts), "port": {"name": "tls", "number": 443, "protocol": "TLS"}, "tls": {}}
    gateways = made(
        GATEWAYS, service, namespace=namespace, labels=labels, spec={"selector": dict(gateway), "servers": [server]}
    )
    destination = {"destination": {"host": host_of(service, namespace), "port": {"number": 443}}}
    routes = {
        "exportTo": EVERYWHERE,
        "gateways": [service],
        "hosts": list(hosts),
        "tls": [{"match": [{"port": 443, "sniHosts": list(hosts)}], "route": [destination]}],
    }
    virtual_service = made(
        VIRTUAL_SERVICES, routes_name or f"{service}-0", namespace=namespace, labels=labels, spec=routes
    )
    return [gateways, virtual_service, destination_rule(service, namespace=namespace, labels=labels)]
