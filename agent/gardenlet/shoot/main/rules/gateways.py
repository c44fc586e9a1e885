"""Through which ingress gateway of the seed a Shoot is reached: the usual one, or that of its ExposureClass."""

from collections.abc import Mapping
from dataclasses import dataclass

from config.gardenlet.schema import GardenletConfiguration
from gardener.error_codes import CONFIGURATION_PROBLEM
from kube.objects import Object, key, text


class GatewayError(ValueError):
    """There is no such gateway."""

    codes = (CONFIGURATION_PROBLEM,)


@dataclass(frozen=True, slots=True)
class Gateway:
    """Attributes: service: its name, of the one that has the address; labels: of the pods."""

    namespace: str
    service: str
    labels: Mapping[str, str]


def gateway(config: GardenletConfiguration, exposure_class: Object | None) -> Gateway:
    """Args: exposure_class: that the Shoot names. Raises GatewayError."""
    if exposure_class is None:
        usual = config.sni.ingress
        return Gateway(usual.namespace, usual.service_name, usual.labels)
    name = text(exposure_class.get("handler"))
    found = next((each for each in config.exposure_class_handlers if each.name == name), None)
    if found is None:
        raise GatewayError(
            f"ExposureClass {key(exposure_class).name} names the handler {name!r}, which is not in"
            " exposureClassHandlers of the configuration of the gardenlet; add it"
        )
    own = found.sni.ingress
    return Gateway(own.namespace or f"istio-ingress-handler-{name}", own.service_name, own.labels)
