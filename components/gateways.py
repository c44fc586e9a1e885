"""The ingress gateways of a seed, and the one of a Shoot.

One serves all, and each handler of the configuration has one for the Shoots of its ExposureClasses. In a Seed with
several zones, each of these has another gateway in each zone, which the gardenlet deploys: a control plane in a single
zone is reached there, so that failures in other zones do not affect it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.gardenlet.schema import ExposureClassHandler, GardenletConfiguration
from gardener import keys
from gardener.error_codes import CONFIGURATION_PROBLEM
from kube.objects import Object, key, mapping, mappings, string_map, text
from kube.paths import at

ISTIO = "istio"
ISTIO_IMAGES = ("istio_discovery", "istio_proxy")
"""The component of the gateways; also a label of their pods."""
_USUAL = "ingressgateway"
_LONGEST_NAME = 63


class GatewayError(ValueError):
    """The configuration has no such gateway."""

    codes = (CONFIGURATION_PROBLEM,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Attributes:
    service: name of the Service with the address.
    labels: of the pods.
    address: requested by the Service; empty: any.
    annotations: of the Service, in addition to those from the Seed.
    zone: the only zone of the gateway; empty: all of the Seed.
    """

    namespace: str
    service: str
    labels: Mapping[str, str]
    address: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""

    def in_zone(self, zone: str) -> "Gateway":
        """The gateway of the same kind in one zone."""
        name = ISTIO if ISTIO in self.labels or keys.ROLE not in self.labels else keys.ROLE
        labels = {**self.labels, name: _of_zone(f"{self.labels.get(name, _USUAL)}--zone", zone)}
        return replace(self, namespace=_of_zone(self.namespace, zone), labels=labels, address="", zone=zone)


def _of_zone(name: str, zone: str) -> str:
    """Name with a zone, which is hashed if the name would be too long for a namespace or label."""
    whole = f"{name}--{zone}"
    return whole if len(whole) <= _LONGEST_NAME else f"{name}--{hashlib.sha256(zone.encode()).hexdigest()[:5]}"


def usual(config: GardenletConfiguration) -> Gateway:
    """Gateway of all Shoots without an ExposureClass."""
    own = config.sni.ingress
    return Gateway(
        namespace=own.namespace, service=own.service_name, labels=own.labels, address=own.service_external_ip
    )


def _of_handler(handler: ExposureClassHandler) -> Gateway:
    own = handler.sni.ingress
    return Gateway(
        namespace=own.namespace or f"istio-ingress-handler-{handler.name}",
        service=own.service_name,
        labels={
            **own.labels,
            keys.ROLE: keys.ROLE_EXPOSURE_CLASS_HANDLER,
            keys.EXPOSURE_CLASS_HANDLER: handler.name,
        },
        address=own.service_external_ip,
        annotations=handler.load_balancer_service.annotations,
    )


def for_all_zones(config: GardenletConfiguration) -> list[Gateway]:
    """Gateways that span all zones, the usual one first."""
    return [usual(config), *map(_of_handler, config.exposure_class_handlers)]


def of_seed(config: GardenletConfiguration, zones: Sequence[str]) -> list[Gateway]:
    """All gateways that the gardenlet deploys. Args: zones: of the Seed."""
    everywhere = for_all_zones(config)
    return [*everywhere, *(each.in_zone(zone) for each in everywhere for zone in zones if len(zones) > 1)]


# --- of a Shoot


def of_shoot(config: GardenletConfiguration, exposure_class: Object | None) -> Gateway:
    """Gateway of a Shoot, for any zone. Args: exposure_class: of the Shoot. Raises GatewayError."""
    if exposure_class is None:
        return usual(config)
    name = text(exposure_class.get("handler"))
    found = next((each for each in config.exposure_class_handlers if each.name == name), None)
    if found is None:
        raise GatewayError(
            f"ExposureClass {key(exposure_class).name} names the handler {name!r}, which is not in"
            " exposureClassHandlers of the configuration of the gardenlet; add it"
        )
    return _of_handler(found)


def of_leaving_shoot(config: GardenletConfiguration, exposure_class: Object | None) -> Gateway | None:
    """Gateway of a Shoot that is deleted, or moves away; None if it is no longer configured.

    Its routes stay until they are deleted with the rest; the gardenlet reaches the API server without it.
    """
    try:
        return of_shoot(config, exposure_class)
    except GatewayError:
        return None


def nearest(gateway: Gateway, config: GardenletConfiguration, *, seed: Object, zones: Sequence[str]) -> Gateway:
    """Args:
    gateway: result of `of_shoot`.
    seed: the Seed.
    zones: of the control plane.
    """
    has_zones = config.deploys(ISTIO, ISTIO_IMAGES) and len(at(seed, "spec", "provider", "zones") or ()) > 1
    return gateway.in_zone(zones[0]) if has_zones and len(zones) == 1 else gateway


# --- its Service


def service_annotations(gateway: Gateway, seed: Object) -> dict[str, str]:
    """Annotations of the Service: those of the zone override those of the handler, which override general ones."""
    settings = mapping(at(seed, "spec", "settings", "loadBalancerServices"))
    of_seed, of_zone = string_map(settings.get("annotations")), _zone_settings(gateway, settings)
    if not gateway.zone:
        return {**of_seed, **gateway.annotations}
    return {**gateway.annotations, **(of_seed if of_zone is None else string_map(of_zone.get("annotations")))}


def traffic_policy(gateway: Gateway, seed: Object) -> str:
    """External traffic policy; empty: the default."""
    settings = mapping(at(seed, "spec", "settings", "loadBalancerServices"))
    of_zone = _zone_settings(gateway, settings)
    return text((settings if of_zone is None else of_zone).get("externalTrafficPolicy"))


def _zone_settings(gateway: Gateway, settings: Object) -> Object | None:
    """Settings of the gateway's zone; None if there are none."""
    if not gateway.zone:
        return None
    return next((each for each in mappings(settings.get("zones")) if each.get("name") == gateway.zone), None)
