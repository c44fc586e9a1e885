"""Comparison of the configured Seed's networks with those of the cluster; messages as in the original.

A cluster that is a Shoot states its networks; of others, some Nodes, Pods and Services are sampled.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from kube.addresses import parse_address, parse_cidr
from kube.objects import Object, annotations, mappings, spec, text, texts
from kube.paths import at

_POOLS = ("cni.projectcalico.org/ipv4pools", "cni.projectcalico.org/ipv6pools")
"""Annotations of Pods with addresses of other networks."""
_MOST = 3
"""Maximum number of reported violations per network."""
_SAID = {"pods": "podNetwork", "services": "serviceNetwork", "nodes": "nodeNetwork"}
_ONE = {"pods": "pod", "services": "service", "nodes": "node"}


def against_shoot_info(networks: Object, info: Mapping[str, str]) -> Iterator[str]:
    """Yield the violations.

    Args:
        networks: of the Seed's spec.
        info: data of the ConfigMap `shoot-info`.
    """
    for network, field in _SAID.items():
        wanted, present = text(networks.get(network)), info.get(field, "")
        if network == "nodes" and not (wanted and present):
            continue
        if wanted != present:
            yield _text(network, f"cluster={_quoted(present)}", wanted)


def against_samples(
    networks: Object, *, nodes: Iterable[Object], pods: Iterable[Object], services: Iterable[Object]
) -> Iterator[str]:
    """Yield a few violations per network, the last with the number of further ones."""
    is_dual = len(set(texts(networks.get("ipFamilies")))) > 1
    nodes_network = text(networks.get("nodes"))
    samples = {
        "nodes": _addresses_of_nodes(nodes, nodes_network) if nodes_network else (),
        "pods": _addresses_of_pods(pods),
        "services": _addresses_of_services(services),
    }
    for network, addresses in samples.items():
        wanted = text(networks.get(network))
        outside = [
            each
            for each in addresses
            if not _contains(wanted, each) and not (is_dual and not _is_of_family(each, wanted))
        ]
        for position, each in enumerate(outside[:_MOST], start=1):
            rest = len(outside) - position if position == _MOST else 0
            more = f" (and of {rest} more)" if rest else ""
            yield _text(network, f"cluster {_ONE[network]}={_quoted(each)}", wanted) + more


def _addresses_of_nodes(nodes: Iterable[Object], network: str) -> Iterator[str]:
    for node in nodes:
        for each in mappings(at(node, "status", "addresses")):
            address = text(each.get("address"))
            if each.get("type") == "InternalIP" and _is_of_family(address, network):
                yield address


def _addresses_of_pods(pods: Iterable[Object]) -> Iterator[str]:
    for pod in pods:
        address = text(at(pod, "status", "podIP"))
        if address and not spec(pod).get("hostNetwork") and not any(each in annotations(pod) for each in _POOLS):
            yield address


def _addresses_of_services(services: Iterable[Object]) -> Iterator[str]:
    for service in services:
        address = text(spec(service).get("clusterIP"))
        if spec(service).get("type") == "ClusterIP" and address not in {"", "None"}:
            yield address


def _contains(network: str, address: str) -> bool:
    cidr, ip = parse_cidr(network), parse_address(address)
    return cidr is not None and ip is not None and ip in cidr


def _is_of_family(address: str, network: str) -> bool:
    """Whether the address has the IP family of the network; true if either is invalid, so that it counts as outside."""
    cidr, ip = parse_cidr(network), parse_address(address)
    return cidr is None or ip is None or cidr.version == ip.version


def _text(network: str, found: str, wanted: str) -> str:
    return f"incorrect {_ONE[network]} network specified in seed configuration ({found} vs. config={_quoted(wanted)})"


def _quoted(value: str) -> str:
    return json.dumps(value)
