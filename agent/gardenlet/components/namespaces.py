"""Namespaces, and their labels: by them pods and policies find the namespaces.

Of those that are there before the gardenlet nothing else is the gardenlet's; see `kube.apply.shared_objects`.
"""

from collections.abc import Mapping, Sequence

from agent.gardenlet.components.parts import GARDEN, made
from gardener import keys
from kube.objects import Object
from kube.resources import NAMESPACES

KUBE_SYSTEM = "kube-system"
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_ROLE = "role"


def objects(*, zones: Sequence[str]) -> list[Object]:
    """The labels and annotations, as Namespaces. Args: zones: of the Seed's provider."""
    garden = made(
        NAMESPACES,
        GARDEN,
        labels={_ROLE: GARDEN, _POD_SECURITY: "privileged", keys.HIGH_AVAILABILITY_CONSIDER: "true"},
        annotations={keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)},
    )
    return [garden, made(NAMESPACES, KUBE_SYSTEM, labels={_ROLE: KUBE_SYSTEM})]


def of_istio(*, system: str, gateway: str, gateway_labels: Mapping[str, str], zones: Sequence[str]) -> list[Object]:
    """Args: system, gateway: names. gateway_labels: of the pods of the gateway. zones: of the Seed's provider."""
    labels = {
        _POD_SECURITY: "baseline",
        keys.HIGH_AVAILABILITY_CONSIDER: "true",
        "istio-injection": "disabled",
        "istio-operator-managed": "Reconcile",
    }
    notes = {keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)}
    by_gateway = {name: text for name, text in gateway_labels.items() if name == "istio"}
    return [
        made(NAMESPACES, system, labels={**labels, keys.ROLE: keys.ROLE_ISTIO_SYSTEM}, annotations=notes),
        made(
            NAMESPACES,
            gateway,
            labels={**labels, keys.ROLE: keys.ROLE_ISTIO_INGRESS, **by_gateway},
            annotations={**notes, keys.HIGH_AVAILABILITY_ZONE_PINNING: "true"},
        ),
    ]
