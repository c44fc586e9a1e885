"""What NetworkPolicies mean: whether a pod may reach another one.

Written from the API's definition, not from what the controller does. A pod that a policy of a direction selects may
only do what one of these policies lets through; a pod that none selects may do everything.
"""

from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from kube.objects import Object, matches_label_selector


@dataclass(frozen=True, slots=True)
class Pod:
    namespace: str
    labels: tuple[tuple[str, str], ...]
    ports: tuple[tuple[str, int], ...] = ()
    """Names of container ports and their numbers."""
    address: str = "10.0.0.1"


@dataclass(slots=True)
class Network:
    namespaces: dict[str, dict[str, str]]
    policies: list[Object]

    def may_reach(self, client: Pod, server: Pod, protocol: str, port: int) -> bool:
        return self._lets("Egress", client, server, server, protocol, port) and self._lets(
            "Ingress", server, client, server, protocol, port
        )

    def _lets(self, direction: str, subject: Pod, peer: Pod, server: Pod, protocol: str, port: int) -> bool:
        chosen = [
            policy["spec"]
            for policy in self.policies
            if policy["metadata"]["namespace"] == subject.namespace
            and direction in policy["spec"]["policyTypes"]
            and matches_label_selector(policy["spec"]["podSelector"], dict(subject.labels))
        ]
        rules, peers = ("ingress", "from") if direction == "Ingress" else ("egress", "to")
        return not chosen or any(
            self._matches_peers(rule.get(peers), peer, subject.namespace)
            and _matches_ports(rule.get("ports"), server, protocol, port)
            for spec in chosen
            for rule in spec.get(rules) or []
        )

    def _matches_peers(self, peers: list[Any] | None, pod: Pod, own_namespace: str) -> bool:
        return not peers or any(self._matches_peer(peer, pod, own_namespace) for peer in peers)

    def _matches_peer(self, peer: Object, pod: Pod, own_namespace: str) -> bool:
        if "ipBlock" in peer:
            network = ip_network(peer["ipBlock"]["cidr"])
            address = ip_address(pod.address)
            return address.version == network.version and address in network
        if "namespaceSelector" in peer:
            if not matches_label_selector(peer["namespaceSelector"], self.namespaces[pod.namespace]):
                return False
        elif pod.namespace != own_namespace:
            return False
        return "podSelector" not in peer or matches_label_selector(peer["podSelector"], dict(pod.labels))


def _matches_ports(ports: list[Any] | None, server: Pod, protocol: str, port: int) -> bool:
    return not ports or any(_matches_port(entry, server, protocol, port) for entry in ports)


def _matches_port(entry: Object, server: Pod, protocol: str, port: int) -> bool:
    if entry["protocol"] != protocol:
        return False
    wanted = entry.get("port")
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return port == dict(server.ports).get(wanted)
    return bool(wanted <= port <= (entry.get("endPort") or wanted))
