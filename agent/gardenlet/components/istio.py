"""How a Service of the seed is reached through the ingress gateway."""

from collections.abc import Mapping, Sequence

from agent.gardenlet.components.parts import GARDEN, made
from gardener.api.kinds import DESTINATION_RULES, GATEWAYS, VIRTUAL_SERVICES
from kube.objects import Object

GATEWAY = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
"""Labels of the pods of the usual ingress gateway."""
EVERYWHERE = ["*"]
EXPORT = "networking.istio.io/exportTo"
"""An annotation of Services: in which namespaces they are known."""


def host_of(service: str) -> str:
    """The name of a Service in `garden` within the cluster."""
    return f"{service}.{GARDEN}.svc.cluster.local"


def destination_rule(service: str, *, labels: Mapping[str, str] | None = None) -> Object:
    """Connections stay open though nothing is sent for long, and go to the nearest zone."""
    alive = {"time": "7200s", "interval": "75s"}
    nearest = {"enabled": True, "failoverPriority": ["topology.kubernetes.io/zone"]}
    spec = {
        "exportTo": EVERYWHERE,
        "host": host_of(service),
        "trafficPolicy": {
            "connectionPool": {"tcp": {"maxConnections": 5000, "tcpKeepalive": alive}},
            "loadBalancer": {"localityLbSetting": nearest},
            "outlierDetection": {},
            "tls": {},
        },
    }
    return made(DESTINATION_RULES, service, namespace=GARDEN, labels=labels, spec=spec)


def passed_through(
    service: str, hosts: Sequence[str], *, gateway: Mapping[str, str], labels: Mapping[str, str]
) -> list[Object]:
    """TLS for these hosts goes to port 443 of a Service. Args: gateway: labels of the gateway's pods."""
    server = {"hosts": list(hosts), "port": {"name": "tls", "number": 443, "protocol": "TLS"}, "tls": {}}
    gateways = made(
        GATEWAYS, service, namespace=GARDEN, labels=labels, spec={"selector": dict(gateway), "servers": [server]}
    )
    destination = {"destination": {"host": host_of(service), "port": {"number": 443}}}
    routes = {
        "exportTo": EVERYWHERE,
        "gateways": [service],
        "hosts": list(hosts),
        "tls": [{"match": [{"port": 443, "sniHosts": list(hosts)}], "route": [destination]}],
    }
    virtual_service = made(VIRTUAL_SERVICES, f"{service}-0", namespace=GARDEN, labels=labels, spec=routes)
    return [gateways, virtual_service, destination_rule(service, labels=labels)]
