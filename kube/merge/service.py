"""Service: keep allocated addresses and ports.

The manifest's cluster IP is ignored, as it is immutable, unless the Service becomes headless or was of type
ExternalName.
"""

from collections.abc import Callable
from typing import Any

from kube.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mapping_at, mappings_at, with_value

_DEFAULT_TYPE = "ClusterIP"


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    wanted = at(result, "spec", "type") or _DEFAULT_TYPE
    present = at(live, "spec", "type") or _DEFAULT_TYPE
    result = with_value(result, ("spec", "type"), wanted)
    if wanted in ("LoadBalancer", "NodePort"):  # not a set: the type of the value may not be hashable
        result = _with_node_ports(result, live)
        result = _unless_set(result, live, "loadBalancerIP")
    elif wanted == "ExternalName":
        return result
    if at(result, "spec", "clusterIP") != "None" and present != "ExternalName":
        result = with_value(result, ("spec", "clusterIP"), at(live, "spec", "clusterIP"))
    if wanted == present == "LoadBalancer" and _is_local(result) and _is_local(live):
        result = _unless_set(result, live, "healthCheckNodePort")
    return result


def _is_local(service: Object) -> bool:
    return bool(at(service, "spec", "externalTrafficPolicy") == "Local")


def _unless_set(result: Object, live: Object, field: str) -> Object:
    if at(result, "spec", field) or not mapping_at(live, "spec").get(field):
        return result
    return with_value(result, ("spec", field), at(live, "spec", field))


def _with_node_ports(result: Object, live: Object) -> Object:
    """Match ports by number and protocol, then by name; a node port is assigned only once."""
    ports = at(result, "spec", "ports")
    if not isinstance(ports, list):
        return result
    for identity in (_number, _name):
        given = {_node_port(port) for port in ports if isinstance(port, dict)}
        free = [port for port in mappings_at(live, "spec", "ports") if _node_port(port) not in given]
        ports = [_with_node_port(port, free, identity) for port in ports]
    return with_value(result, ("spec", "ports"), ports)


def _node_port(port: Object) -> tuple[Any, Any]:
    return port.get("nodePort") or 0, port.get("protocol") or "TCP"


def _number(port: Object) -> tuple[Any, Any]:
    return port.get("port"), port.get("protocol") or "TCP"


def _name(port: Object) -> Any:
    return port.get("name") or ""


def _with_node_port(port: Any, free: list[Object], identity: Callable[[Object], Any]) -> Any:
    if not isinstance(port, dict) or port.get("nodePort"):
        return port
    node_port = next((other.get("nodePort") for other in free if identity(other) == identity(port)), None)
    return {**port, "nodePort": node_port} if node_port else port
