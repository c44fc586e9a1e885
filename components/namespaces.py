"""Namespaces and their labels, by which pods and policies select them.

The gardenlet owns only these fields of existing namespaces; see `kube.apply.shared_objects`.
"""

from collections.abc import Iterable, Mapping, Sequence

from components.gateways import ISTIO, Gateway
from components.parts import GARDEN, made
from gardener import keys
from kube.objects import Object
from kube.resources import NAMESPACES

KUBE_SYSTEM = "kube-system"
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_ROLE = "role"


def objects(*, zones: Sequence[str]) -> list[Object]:
    """Namespaces with the labels and annotations. Args: zones: of the Seed's provider."""
    garden = made(
        NAMESPACES,
        GARDEN,
        labels={_ROLE: GARDEN, _POD_SECURITY: "privileged", keys.HIGH_AVAILABILITY_CONSIDER: "true"},
        annotations={keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)},
    )
    return [garden, made(NAMESPACES, KUBE_SYSTEM, labels={_ROLE: KUBE_SYSTEM})]


def of_istio(*, system: str, gateways: Iterable[Gateway], zones: Sequence[str]) -> list[Object]:
    """Args: system: its name. zones: of the Seed's provider."""
    labels = {
        _POD_SECURITY: "baseline",
        keys.HIGH_AVAILABILITY_CONSIDER: "true",
        "istio-injection": "disabled",
        "istio-operator-managed": "Reconcile",
    }
    notes = {keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)}
    return [
        made(NAMESPACES, system, labels={**labels, keys.ROLE: keys.ROLE_ISTIO_SYSTEM}, annotations=notes),
        *(_of_gateway(each, labels, [each.zone] if each.zone else zones) for each in gateways),
    ]


def _of_gateway(gateway: Gateway, labels: Mapping[str, str], zones: Sequence[str]) -> Object:
    """Namespace of a gateway, with the labels that identify it."""
    known_by = {ISTIO, keys.EXPOSURE_CLASS_HANDLER}
    if keys.EXPOSURE_CLASS_HANDLER in gateway.labels:
        known_by.add(keys.ROLE)
    return made(
        NAMESPACES,
        gateway.namespace,
        labels={
            **labels,
            keys.ROLE: keys.ROLE_ISTIO_INGRESS,
            **{name: text for name, text in gateway.labels.items() if name in known_by},
        },
        annotations={
            keys.HIGH_AVAILABILITY_ZONES: ",".join(zones),
            **({keys.HIGH_AVAILABILITY_ZONE_PINNING: "true"} if len(zones) == 1 else {}),
        },
    )
