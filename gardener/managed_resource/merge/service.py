"""Service: addresses and ports that were allocated stay allocated.

Node ports are found again by port number or name, in the order of the live ports; the last that matches wins. The
manifest's cluster IP is not looked at, as it can't be changed, unless the Service becomes headless or comes from
type ExternalName.
"""

from typing import Any

from gardener.managed_resource.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mapping_at, mappings_at, with_value

_DEFAULT_TYPE = "ClusterIP"


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    wanted = at(result, "spec", "type") or _DEFAULT_TYPE
    present = at(live, "spec", "type") or _DEFAULT_TYPE
    result = with_value(result, ("spec", "type"), wanted)
    if wanted in ("LoadBalancer", "NodePort"):  # not a set: it may be of any type
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
    ports = at(result, "spec", "ports")
    if not isinstance(ports, list):
        return result
    present = mappings_at(live, "spec", "ports")
    return with_value(result, ("spec", "ports"), [_with_node_port(port, present) for port in ports])


def _with_node_port(port: Any, present: list[Object]) -> Any:
    if not isinstance(port, dict) or port.get("nodePort"):
        return port
    matching = [
        other
        for other in present
        if other.get("port") == port.get("port") or (other.get("name") or "") == (port.get("name") or "")
    ]
    # Not 'the last one that has a node port': a match without one clears what an earlier match gave.
    node_port = matching[-1].get("nodePort") if matching else None
    return {**port, "nodePort": node_port} if node_port else port
